"""Stan programs made by rule in which an outcome stands inside its own law, each with its likelihood by NumPy.

As trials, rate, sd, mean, bound, index, weight, ..., put there in many ways; and, as a control, the outcome before it,
which a simulator can draw.

Every program has one parameter, ``theta``. Its posterior given data is computed on a grid from the likelihood that is
written here by hand, so that the rank of ``theta`` among the posterior's quantiles is uniform if draws of ``theta``
and data are joint draws. Neither bread's simulator nor its density has a part in that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

N = 4
Likelihood = Callable[[Any, Mapping[str, Any]], Any]  # theta (a column), data -> log density, up to a factor of data


@dataclass(frozen=True)
class Parameter:
    """The parameter: how it is declared, its prior in Stan, and the same by SciPy."""

    declared: str
    prior: str
    law: Any

    def grid(self) -> np.ndarray:
        """Return quantiles of the prior, densely."""
        return np.asarray(self.law.ppf((np.arange(4000) + 0.5) / 4000))


SHARE = Parameter("real<lower=0, upper=1> theta;", "theta ~ beta(2, 2);", stats.beta(2, 2))
SCALE = Parameter("real<lower=0> theta;", "theta ~ gamma(3, 3);", stats.gamma(3, scale=1 / 3))
PLACE = Parameter("real theta;", "theta ~ normal(0, 1);", stats.norm(0, 1))


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes
    ----------
    name, text : str
    parameter : Parameter
    data : dict of str to Any
    likelihood : callable
    is_sound : bool
        Whether a simulator could draw it, element after element.
    observed : tuple of str
    """

    name: str
    text: str
    parameter: Parameter
    data: dict[str, Any]
    likelihood: Likelihood
    is_sound: bool
    observed: tuple[str, ...] = ("y",)

    def rank(self, theta: float, data: Mapping[str, Any]) -> float:
        """Return the probability of values below ``theta`` in the posterior given data."""
        grid = self.parameter.grid()  # of equal prior mass each
        with np.errstate(all="ignore"):
            log_likelihood = np.broadcast_to(self.likelihood(grid[:, None], data), (len(grid), N)).sum(axis=1)
        weight = np.exp(log_likelihood - np.nanmax(log_likelihood))
        weight = np.where(np.isnan(weight), 0.0, weight)
        return float(weight[grid < theta].sum() / weight.sum())


# ---- an outcome inside its own law ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """What is computed of an outcome: in Stan, of one outcome or (``whole``) of all, and by NumPy."""

    stan: str
    numpy: Callable[[Any], Any]
    is_whole: bool = True
    kind: str = "real"


ABOUT = Slot("(0.5 + abs({y}))", lambda y: 0.5 + np.abs(y))
HALF = Slot("(0.5 * {y})", lambda y: 0.5 * y)
WEIGHT = Slot("inv_logit({y})", special.expit)
COUNTED = Slot("(0.5 * (1 + {y}))", lambda y: 0.5 * (1 + y), is_whole=False)
INVERSE = Slot("(1.0 / (1 + {y}))", lambda y: 1 / (1 + y), is_whole=False)
TRIALS = Slot("(3 + {y})", lambda y: 3 + y, is_whole=False, kind="int")
POSITION = Slot("(1 + ({y} > 0))", lambda y: 1 + (y > 0), is_whole=False, kind="int")
CATEGORY = Slot("(1 + ({y} > 1))", lambda y: 1 + (y > 1), is_whole=False, kind="int")


@dataclass(frozen=True)
class Place:
    """A place in a law.

    Attributes
    ----------
    law : str
        The statement for one outcome, ``{y}`` and ``{e}`` what is computed of an outcome; or "name(arguments)".
    slot : Slot
    log_density : callable
        Of theta, y and e.
    is_real : bool
        Whether outcomes are real.
    more : str
        More of the program: "functions: ..." or "transformed parameters: ...".
    """

    law: str
    slot: Slot
    parameter: Parameter
    log_density: Callable[[Any, Any, Any], Any]
    is_real: bool = True
    functions: str = ""
    transformed: str = ""
    start: tuple[float, ...] = (1, 2, 0, 3)
    is_vectorised: bool = True


def _mixed(weight: Any, one: Any, other: Any) -> Any:
    return np.logaddexp(np.log(weight) + one, np.log1p(-weight) + other)


_norm = stats.norm.logpdf


def _pick(t: Any, e: Any) -> Any:
    return np.where(e == 1, t, 0.5 * t)


PLACES: dict[str, Place] = {
    "trials": Place("binomial({e}, theta)", TRIALS, SHARE, lambda t, y, e: stats.binom.logpmf(y, e, t), False),
    "rate": Place("poisson(theta * {e})", COUNTED, SCALE, lambda t, y, e: stats.poisson.logpmf(y, t * e), False),
    "dispersion": Place("neg_binomial_2(theta, {e})", COUNTED, SCALE,
                        lambda t, y, e: stats.nbinom.logpmf(y, e, e / (e + t)), False),
    "mean": Place("normal(theta + {e}, 1)", HALF, PLACE, lambda t, y, e: _norm(y, t + e, 1)),
    "sd": Place("normal(theta, {e})", ABOUT, PLACE, lambda t, y, e: _norm(y, t, e)),
    "proportional sd": Place("normal(theta, sqrt(square(theta) + square({e})))", ABOUT, SCALE,
                             lambda t, y, e: _norm(y, t, np.sqrt(t**2 + e**2))),
    "degrees of freedom": Place("student_t(2 * {e}, theta, 1)", ABOUT, PLACE,
                                lambda t, y, e: stats.t.logpdf(y, 2 * e, t, 1)),
    "bounds": Place("uniform(theta - {e}, theta + {e})", ABOUT, PLACE,
                    lambda t, y, e: stats.uniform.logpdf(y, t - e, 2 * e)),
    "exponent": Place("gamma({e}, theta)", ABOUT, SCALE, lambda t, y, e: stats.gamma.logpdf(y, e, scale=1 / t)),
    "index": Place("bernoulli(q[{e}])", POSITION, SHARE, lambda t, y, e: stats.bernoulli.logpmf(y, _pick(t, e)), False,
                   transformed="vector[2] q = [theta, 0.5 * theta]';", start=(1, 0, 0, 1), is_vectorised=False),
    "weight": Place("target += log_mix({e}, normal_lpdf({y} | theta, 1), normal_lpdf({y} | 3, 2));", WEIGHT, PLACE,
                    lambda t, y, e: _mixed(e, _norm(y, t, 1), _norm(y, 3, 2))),
    "log weight": Place(
        "target += log_sum_exp(log({e}) + normal_lpdf({y} | theta, 1), log1m({e}) + normal_lpdf({y} | 3, 2));",
        WEIGHT, PLACE, lambda t, y, e: _mixed(e, _norm(y, t, 1), _norm(y, 3, 2))),
    "component": Place("target += log_mix(0.3, normal_lpdf({y} | theta, {e}), normal_lpdf({y} | 3, 2));", ABOUT, PLACE,
                       lambda t, y, e: _mixed(0.3, _norm(y, t, e), _norm(y, 3, 2))),
    "gathered": Place("{{ vector[2] lp; lp[1] = log(0.3) + normal_lpdf({y} | theta, {e}); "
                      "lp[2] = log(0.7) + normal_lpdf({y} | 3, 2); target += log_sum_exp(lp); }}", ABOUT, PLACE,
                      lambda t, y, e: _mixed(0.3, _norm(y, t, e), _norm(y, 3, 2))),
    "inflated": Place("if ({y} == 0) target += log_sum_exp(log(0.3) + poisson_lpmf({y} | theta * {e}), log(0.7)); "
                      "else target += log(0.3) + poisson_lpmf({y} | theta * {e});", COUNTED, SCALE,
                      lambda t, y, e: np.where(y == 0, np.log(0.7 + 0.3 * np.exp(-t * e)),
                                               np.log(0.3) + stats.poisson.logpmf(y, t * e)), False),
    "points": Place("if ({y} == 0) target += log(0.3); else target += log(0.7) + gamma_lpdf({y} | {e}, theta);", ABOUT,
                    SCALE, lambda t, y, e: np.where(y == 0, 0.0, stats.gamma.logpdf(y, e, scale=1 / t))),
    "truncation": Place("{y} ~ normal(theta, 1) T[-{e}, ];", ABOUT, PLACE,
                        lambda t, y, e: _norm(y, t, 1) - stats.norm.logsf(-e, t, 1)),
    "sd of a truncated": Place("{y} ~ normal(theta, {e}) T[0, ];", ABOUT, PLACE,
                               lambda t, y, e: _norm(y, t, e) - stats.norm.logsf(0, t, e)),
    "censored": Place("if (flag[n] == 1) target += normal_lccdf(limit[n] | theta, {e}); "
                      "else target += normal_lpdf({y} | theta, {e});", ABOUT, PLACE,
                      lambda t, y, e: _norm(y, t, e)),
    "own density": Place("own({e}, theta)", ABOUT, PLACE, lambda t, y, e: _norm(y, t, e),
                         functions="real own_lpdf(real x, real s, real m) { return normal_lpdf(x | m, s); }",
                         is_vectorised=False),
    "own mass": Place("own({e}, theta)", COUNTED, SCALE, lambda t, y, e: stats.poisson.logpmf(y, t * e), False,
                      functions="real own_lpmf(int x, real s, real m) { return poisson_lpmf(x | m * s); }",
                      is_vectorised=False),
    "own mass of two": Place("own({e}, theta)", INVERSE, SHARE, lambda t, y, e: stats.bernoulli.logpmf(y, t * e), False,
                             functions="real own_lpmf(int x, real s, real m) { return bernoulli_lpmf(x | m * s); }",
                             start=(0, 0, 0, 0), is_vectorised=False),
    "category": Place("categorical(q[{e}])", CATEGORY, SHARE,
                      lambda t, y, e: np.where(y == 1, np.log(_pick(t, e)), np.log1p(-_pick(t, e))), False,
                      transformed="array[2] vector[2] q; q[1] = [theta, 1 - theta]'; "
                                  "q[2] = [0.5 * theta, 1 - 0.5 * theta]';", start=(1, 2, 2, 1), is_vectorised=False),
    "looked up": Place("target += log(q[{e}, {y}]);", CATEGORY, SHARE,
                       lambda t, y, e: np.where(y == 1, np.log(_pick(t, e)), np.log1p(-_pick(t, e))), False,
                       transformed="array[2] vector[2] q; q[1] = [theta, 1 - theta]'; "
                                   "q[2] = [0.5 * theta, 1 - 0.5 * theta]';", start=(1, 2, 2, 1), is_vectorised=False),
    "glm": Place("normal_id_glm(x, {e}, [theta]', 1)", HALF, PLACE, lambda t, y, e: _norm(y, t + e, 1),
                 is_vectorised=True),
    "glm of counts": Place("poisson_log_glm(x, {e}, [theta]')", HALF, PLACE,
                           lambda t, y, e: stats.poisson.logpmf(y, np.exp(t + e)), False),
}  # fmt: skip
_ONLY_WHOLE = ("glm", "glm of counts")


def _statement(place: Place, y: str, e: str, as_target: bool = False) -> str:
    law = place.law
    if law.endswith(("; ", ";", "}}")):
        return law.format(y=y, e=e)
    name, _, rest = law.format(y=y, e=e).partition("(")
    if as_target:
        return f"target += {name}_{'lpdf' if place.is_real else 'lpmf'}({y} | {rest};"
    return f"{y} ~ {name}({rest};"


def _own(which: str, place: Place, way: str, back: int) -> Case | None:
    """Return the program in which an outcome (``back`` 0) or the one before it (1) enters a law in one way."""
    slot, first = place.slot, 1 + back
    before = "y[n - 1]" if back else "y[n]"
    value = slot.stan.format(y=before)
    loop = f"for (n in {first}:N)"
    model, functions, data_more, moved = "", place.functions, "", place.transformed
    tail = "y[1:(N - 1)]" if back else "y"
    rows = "y[2:N]" if back else "y"
    if which in _ONLY_WHOLE and way not in ("local vector", "transformed data", "transformed parameters", "whole"):
        return None
    if which in _ONLY_WHOLE and way != "whole":
        sliced = "e[2:N]" if back else "e"
        statement = _statement(place, rows, sliced).replace("(x,", "(x[2:N]," if back else "(x,")
    else:
        statement = f"{loop} {{ {_statement(place, 'y[n]', 'e[n]')} }}"
    numeric = slot.numpy
    declared = f"{'array[N] int' if slot.kind == 'int' else 'vector[N]'} e;"
    if slot.kind == "int":
        declared = "array[N] int e = rep_array(1, N);"
    fill = f"{loop} e[n] = {value};" + (f" e[1] = {'1' if slot.kind == 'int' else '0.5'};" if back else "")
    if way == "direct":
        model = f"{loop} {{ {_statement(place, 'y[n]', value)} }}"
    elif way == "target":
        if place.law.endswith((";", "}}")):
            return None
        model = f"{loop} {{ {_statement(place, 'y[n]', value, as_target=True)} }}"
    elif way == "local":
        model = f"{loop} {{ {slot.kind} e = {value}; {_statement(place, 'y[n]', 'e')} }}"
    elif way == "local vector":
        model = f"{declared} {fill} {statement}"
    elif way == "transformed data":
        data_more, model = f"{declared} {fill}", statement
    elif way == "transformed parameters":
        if slot.kind == "int":
            return None
        moved, model = f"{moved} {declared} {fill}", statement
    elif way == "function":
        kind = "real" if place.is_real else "int"
        functions += f" {slot.kind} of({kind} v) {{ return {slot.stan.format(y='v')}; }}"
        model = f"{loop} {{ {_statement(place, 'y[n]', f'of({before})')} }}"
    elif way == "function of all":
        kind = "vector" if place.is_real else "array[] int"
        functions += f" {slot.kind} of({kind} v, int n) {{ return {slot.stan.format(y='v[n]')}; }}"
        model = f"{loop} {{ {_statement(place, 'y[n]', f'of(y, {before[2:-1]})')} }}"
    elif way == "whole":
        if not slot.is_whole or not place.is_vectorised or place.law.endswith((";", "}}")):
            return None
        whole = slot.stan.format(y=tail if place.is_real else f"to_vector({tail})")
        model = _statement(place, rows, whole).replace("(x,", "(x[2:N]," if back else "(x,")
    elif way == "branch":
        if slot.kind == "int" or which in _ONLY_WHOLE:
            return None
        low, high = ("0.4", "0.8") if slot in (WEIGHT, INVERSE) else ("1", "2")
        cut = 0 if slot is INVERSE else 1
        model = f"{loop} {{ real e = {low}; if ({before} > {cut}) e = {high}; {_statement(place, 'y[n]', 'e')} }}"
        numeric = lambda y: np.where(y > cut, float(high), float(low))  # noqa: E731
    elif way == "count":
        if place.is_real or slot.kind == "int":
            return None
        model = f"{loop} {{ real e = 0.5; for (j in 1:{before}) e += 0.5; {_statement(place, 'y[n]', 'e')} }}"
        numeric = lambda y: 0.5 + 0.5 * y  # noqa: E731
    kind = "vector[N] y;" if place.is_real else "array[N] int y;"
    extra = "matrix[N, 1] x;" if which in _ONLY_WHOLE else ""
    extra += " array[N] int flag; vector[N] limit;" if which == "censored" else ""
    text = "\n".join([
        *([f"functions {{ {functions} }}"] if functions else []),
        f"data {{ int N; {kind} {extra} }}",
        *([f"transformed data {{ {data_more} }}"] if data_more else []),
        f"parameters {{ {place.parameter.declared} }}",
        *([f"transformed parameters {{ {moved} }}"] if moved.strip() else []),
        f"model {{ {place.parameter.prior} {model} }}",
    ])  # fmt: skip

    def likelihood(theta: Any, data: Mapping[str, Any]) -> Any:
        y = np.asarray(data["y"])
        e = numeric(y[:-1] if back else y)
        if which == "censored":
            flag = np.asarray(data["flag"])[back:]
            limit = np.asarray(data["limit"])[back:]
            found = np.where(flag == 1, stats.norm.logsf(limit, theta, e), place.log_density(theta, y[back:], e))
        else:
            found = place.log_density(theta, y[back:], e)
        return np.broadcast_to(found, (len(theta), N - back)) if back == 0 else padded(found)

    values: dict[str, Any] = {"N": N, "y": list(place.start)}
    if which in _ONLY_WHOLE:
        values["x"] = np.ones((N, 1))
    observed: tuple[str, ...] = ("y",)
    if which == "censored":
        values |= {"flag": [0, 1, 0, 0], "limit": [2.0, 2.0, 2.0, 2.0]}
        observed = ("y", "flag")
    name = f"{'before' if back else 'own'} {which}, {way}"
    return Case(name, text, place.parameter, values, likelihood, bool(back), observed)


def padded(found: Any) -> Any:
    return np.concatenate([np.zeros((len(found), 1)), np.asarray(found)], axis=1)


WAYS = (
    "direct", "target", "local", "local vector", "transformed data", "transformed parameters", "function",
    "function of all", "whole", "branch", "count",
)  # fmt: skip


def own_laws() -> Iterator[Case]:
    """Yield programs in which an outcome enters its own law, and those in which the one before it does."""
    for which, place in PLACES.items():
        for way in WAYS:
            for back in (0, 1):
                case = _own(which, place, way, back)
                if case is not None:
                    yield case
