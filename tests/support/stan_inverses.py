"""Stan programs made by rule that give a density to a function of an outcome and of the parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special, stats

from tests.support.stan_own_outcomes import SCALE, Case, N, Parameter

_norm = stats.norm.logpdf


@dataclass(frozen=True)
class Left:
    """A left side: in Stan for one outcome, whether it is written for a vector, by NumPy, its law and its parameter."""

    stan: str
    numpy: Callable[[Any, Any], Any]
    parameter: Parameter = SCALE
    law: str = "normal(0.5, 1)"
    log_density: Callable[[Any], Any] = field(default=lambda x: _norm(x, 0.5, 1))
    is_sound: bool = False


_LN10 = np.log(10)
LEFTS: dict[str, Left] = {
    "log of a sum": Left("log({y} + theta)", lambda y, t: np.log(y + t)),
    "log of a difference": Left("log({y} - theta)", lambda y, t: np.log(y - t)),
    "log of what is left": Left("log(theta - {y})", lambda y, t: np.log(t - y)),
    "log of a product": Left("log(theta * {y})", lambda y, t: np.log(t * y)),
    "log of a share": Left("log({y} / theta)", lambda y, t: np.log(y / t)),
    "log of 2 y + theta": Left("log(2 * {y} + theta)", lambda y, t: np.log(2 * y + t)),
    "log of log, less theta": Left("log(log({y}) - theta)", lambda y, t: np.log(np.log(y) - t)),
    "log of log y + theta": Left("log(log({y} + theta))", lambda y, t: np.log(np.log(y + t))),
    "log10 of a sum": Left("log10({y} + theta)", lambda y, t: np.log10(y + t)),
    "logit of a product": Left("logit({y} * theta)", lambda y, t: special.logit(y * t)),
    "logit of a share": Left("logit({y} / theta)", lambda y, t: special.logit(y / t)),
    "logit of a difference": Left("logit({y} - theta)", lambda y, t: special.logit(y - t)),
    "share": Left("{y} / theta", lambda y, t: y / t),
    "product": Left("theta * {y}", lambda y, t: y * t),
    "scaled difference": Left("({y} - 1) / theta", lambda y, t: (y - 1) / t),
    "scaled log": Left("log({y}) / theta", lambda y, t: np.log(y) / t),
    "square of a share": Left("square({y} / theta)", lambda y, t: (y / t) ** 2, law="gamma(2, 1)",
                              log_density=lambda x: stats.gamma.logpdf(x, 2)),
    "power": Left("({y} / theta)^2", lambda y, t: (y / t) ** 2, law="gamma(2, 1)",
                  log_density=lambda x: stats.gamma.logpdf(x, 2)),
    "exp of a share": Left("exp(-{y} / theta)", lambda y, t: np.exp(-y / t), law="beta(2, 2)",
                           log_density=lambda x: stats.beta.logpdf(x, 2, 2)),
    "difference": Left("{y} - theta", lambda y, t: y - t, is_sound=True),
    "negative difference": Left("theta - {y}", lambda y, t: t - y, is_sound=True),
    "log less theta": Left("log({y}) - theta", lambda y, t: np.log(y) - t, is_sound=True),
    "half the log, plus theta": Left("0.5 * log({y}) + theta", lambda y, t: 0.5 * np.log(y) + t, is_sound=True),
    "logit less theta": Left("logit({y}) - theta", lambda y, t: special.logit(y) - t, is_sound=True),
    "log of y + 1, plus theta": Left("log({y} + 1) + theta", lambda y, t: np.log(y + 1) + t, is_sound=True),
}  # fmt: skip
LEFT_WAYS = ("direct", "whole", "target", "local", "local vector", "transformed parameters", "whole in parameters",
             "function", "through a parameter", "error of a vector")  # fmt: skip


def _inverse(which: str, left: Left, way: str) -> Case | None:
    loop, functions, moved = "for (n in 1:N)", "", ""
    one, every = left.stan.format(y="y[n]"), left.stan.format(y="y")
    if way in ("whole", "whole in parameters") and "^" in left.stan:
        return None
    if way == "direct":
        model = f"{loop} {one} ~ {left.law};"
    elif way == "whole":
        model = f"{every} ~ {left.law};"
    elif way == "target":
        name, _, rest = left.law.partition("(")
        model = f"{loop} target += {name}_lpdf({one} | {rest};"
    elif way == "local":
        model = f"{loop} {{ real z = {one}; z ~ {left.law}; }}"
    elif way == "local vector":
        model = f"vector[N] z; {loop} z[n] = {one}; z ~ {left.law};"
    elif way == "transformed parameters":
        moved, model = f"vector[N] z; {loop} z[n] = {one};", f"z ~ {left.law};"
    elif way == "whole in parameters":
        moved, model = f"vector[N] z = {every};", f"z ~ {left.law};"
    elif way == "function":
        functions = f"real of(real v, real theta) {{ return {left.stan.format(y='v')}; }}"
        model = f"{loop} of(y[n], theta) ~ {left.law};"
    elif way == "through a parameter":
        moved = "real c = 1 * theta;"
        model = f"{loop} {one.replace('theta', 'c')} ~ {left.law};"
    else:
        model = f"vector[N] z; {loop} {{ real m = theta; z[n] = {one.replace('theta', 'm')}; }} z ~ {left.law};"
    unit = "logit" in left.stan
    text = "\n".join([
        *([f"functions {{ {functions} }}"] if functions else []),
        "data { int N; vector[N] y; }",
        f"parameters {{ {left.parameter.declared} }}",
        *([f"transformed parameters {{ {moved} }}"] if moved else []),
        f"model {{ {left.parameter.prior} {model} }}",
    ])  # fmt: skip

    def likelihood(theta: Any, data: Mapping[str, Any]) -> Any:
        found = left.log_density(left.numpy(np.asarray(data["y"]), theta))
        return np.where(np.isnan(found), -np.inf, found)

    values = {"N": N, "y": [0.2, 0.3, 0.5, 0.4] if unit else [1.5, 2.0, 3.0, 4.0]}
    return Case(f"{which}, {way}", text, left.parameter, values, likelihood, left.is_sound)


def inverses() -> Iterator[Case]:
    """Yield programs that give a density to a function of an outcome and the parameter."""
    for which, left in LEFTS.items():
        for way in LEFT_WAYS:
            case = _inverse(which, left, way)
            if case is not None:
                yield case
