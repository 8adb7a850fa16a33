"""Stan programs in which outcomes stand as indices, bounds, sizes and conditions, each with its likelihood by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from tests.support.stan_own_outcomes import PLACE, Case, Likelihood, N, Parameter, padded

_norm = stats.norm.logpdf


def _two(x: Callable[[Any, Any, Any], Any], y: Callable[[Any, Any, Any], Any]) -> Likelihood:
    return lambda t, data: (
        x(t, np.asarray(data["x"]), np.asarray(data["y"])) + y(t, np.asarray(data["x"]), np.asarray(data["y"]))
    )


def _free(t: Any, x: Any, y: Any) -> Any:
    return np.zeros((len(t), N))


_bern = stats.bernoulli.logpmf
_XY = "data { int N; array[N] int y; vector[N] x; }"
_VALUES = {"N": N, "y": [1, 0, 1, 1], "x": [0.5, -0.3, 1.2, 0.1]}
_THETA = PLACE.declared
_PRIOR = PLACE.prior


def positions() -> Iterator[Case]:
    """Yield programs in which outcomes are indices, bounds, sizes and conditions."""

    def case(name: str, text: str, likelihood: Likelihood, sound: bool, parameter: Parameter = PLACE,
             observed: tuple[str, ...] = ("y", "x"), values: dict[str, Any] = _VALUES) -> Case:  # fmt: skip
        return Case(f"position: {name}", text, parameter, values, likelihood, sound, observed)

    def program(model: str, data: str = _XY, moved: str = "", declared: str = _THETA, prior: str = _PRIOR) -> str:
        more = f"transformed parameters {{ {moved} }}\n" if moved else ""
        return f"{data}\nparameters {{ {declared} }}\n{more}model {{ {prior} {model} }}"

    def chosen(t: Any, x: Any, y: Any) -> Any:
        return _norm(x, np.where(y == 1, t, -t), 1)

    two = "vector[2] m = [-theta, theta]';"
    known = "for (n in 1:N) y[n] ~ bernoulli(0.5); "
    yield case("index", program(known + "for (n in 1:N) x[n] ~ normal(m[1 + y[n]], 1);", moved=two),
               _two(chosen, _free), True)  # fmt: skip
    yield case("index by function of x", program(known + "for (n in 1:N) x[n] ~ normal(m[1 + (x[n] > 0)], 1);",
                                                 moved=two),
               _two(lambda t, x, y: _norm(x, np.where(x > 0, t, -t), 1), _free), False)  # fmt: skip
    yield case("index of each other", program(
        "for (n in 1:N) { y[n] ~ bernoulli_logit(theta + x[n]); x[n] ~ normal(m[1 + y[n]], 1); }", moved=two),
        _two(chosen, lambda t, x, y: _bern(y, special.expit(t + x))), False)  # fmt: skip
    yield case("ternary of another", program(known + "for (n in 1:N) x[n] ~ normal(y[n] == 1 ? theta : -theta, 1);"),
               _two(chosen, _free), True)  # fmt: skip
    yield case("ternary of itself", program(known + "for (n in 1:N) x[n] ~ normal(x[n] > 0 ? theta : -theta, 1);"),
               _two(lambda t, x, y: _norm(x, np.where(x > 0, t, -t), 1), _free), False)  # fmt: skip
    yield case("branch of another", program(
        known + "for (n in 1:N) { if (y[n] == 1) x[n] ~ normal(theta, 1); else x[n] ~ normal(-theta, 1); }"),
        _two(chosen, _free), True)  # fmt: skip
    yield case("branch of itself", program(
        known + "for (n in 1:N) { if (x[n] > 0) x[n] ~ normal(theta, 1); else x[n] ~ normal(-theta, 1); }"),
        _two(lambda t, x, y: _norm(x, np.where(x > 0, t, -t), 1), _free), False)  # fmt: skip
    yield case("never what it is", program(
        "for (n in 1:N) { real p = y[n] == 0 ? 1 : 0; y[n] ~ bernoulli(p); } x ~ normal(theta, 1);"),
        _two(lambda t, x, y: _norm(x, t, 1), lambda t, x, y: -np.inf + 0 * x), False)  # fmt: skip
    yield case("size", program(known + "for (n in 1:N) x[n] ~ normal(theta * size(y), 1);"),
               _two(lambda t, x, y: _norm(x, N * t, 1), _free), True)  # fmt: skip
    yield case("own size", program(known + "x ~ normal(rep_vector(theta, size(x)), 1);"),
               _two(lambda t, x, y: _norm(x, t, 1), _free), True)  # fmt: skip
    yield case("sum as sd", program(known + "x ~ normal(theta, 1 + sum(y));"),
               _two(lambda t, x, y: _norm(x, t, 1 + y.sum()), _free), True)  # fmt: skip
    yield case("own sum as sd", program(known + "x ~ normal(theta, 1 + abs(sum(x)));"),
               _two(lambda t, x, y: _norm(x, t, 1 + np.abs(x.sum())), _free), False)  # fmt: skip
    yield case("own mean as mean", program(known + "x ~ normal(theta + mean(x), 1);"),
               _two(lambda t, x, y: _norm(x, t + x.mean(), 1), _free), False)  # fmt: skip
    yield case("own largest as bound", program(known + "x ~ uniform(-10, max(x) + exp(theta));"),
               _two(lambda t, x, y: -np.log(10 + x.max() + np.exp(t)) + 0 * x, _free), False)  # fmt: skip
    yield case("loop to an outcome", program(
        known + "for (n in 1:N) { real m = 0; for (k in 1:y[n]) m += theta; x[n] ~ normal(m, 1); }"),
        _two(lambda t, x, y: _norm(x, t * y, 1), _free), True)  # fmt: skip
    yield case("while", program(
        known + "for (n in 1:N) { real m = 0; int k = 0; while (k < y[n]) { m += theta; k += 1; } "
        "x[n] ~ normal(m, 1); }"), _two(lambda t, x, y: _norm(x, t * y, 1), _free), True)  # fmt: skip
    yield case("while of itself", program(
        known + "for (n in 1:N) { real m = 0; int k = 0; while (k < x[n]) { m += theta; k += 1; } "
        "x[n] ~ normal(m, 1); }"),
        _two(lambda t, x, y: _norm(x, t * np.maximum(np.ceil(x), 0), 1), _free), False)  # fmt: skip
    yield case("for each", program(known + "for (v in x) v ~ normal(theta, 1);"),
               _two(lambda t, x, y: _norm(x, t, 1), _free), True)  # fmt: skip
    yield case("drawn to an outcome", program(known + "for (n in 1:y[1]) x[n] ~ normal(theta, 1);"),
               _two(lambda t, x, y: np.where(np.arange(N) < y[0], _norm(x, t, 1), 0), _free), False)  # fmt: skip
    yield case("drawn where another is one", program(known + "for (n in 1:N) if (y[n]) x[n] ~ normal(theta, 1);"),
               _two(lambda t, x, y: np.where(y == 1, _norm(x, t, 1), 0), _free), False)  # fmt: skip
    yield case("drawn at an index", program(known + "for (n in 1:N) x[1 + y[n]] ~ normal(theta, 1);"),
               _two(lambda t, x, y: _norm(x[y], t, 1), _free), False)  # fmt: skip
    yield case("left index", program(
        known + "for (n in 1:N) { vector[2] m = [0.0, 0.0]'; m[1 + y[n]] = theta; x[n] ~ normal(m[2], 1); }"),
        _two(lambda t, x, y: _norm(x, t * y, 1), _free), True)  # fmt: skip
    yield case("left index of itself", program(
        known + "for (n in 1:N) { vector[2] m = [0.0, 0.0]'; m[1 + (x[n] > 0)] = theta; x[n] ~ normal(m[2], 1); }"),
        _two(lambda t, x, y: _norm(x, t * (x > 0), 1), _free), False)  # fmt: skip
    yield case("truncated at another", program(known + "for (n in 1:N) x[n] ~ normal(theta, 1) T[y[n] - 1, ];"),
               _two(lambda t, x, y: np.where(x < y - 1, -np.inf, _norm(x, t, 1) - stats.norm.logsf(y - 1, t, 1)),
                    _free), True)  # fmt: skip
    yield case("truncated at itself", program(known + "for (n in 1:N) x[n] ~ normal(theta, 1) T[x[n] - 1, ];"),
               _two(lambda t, x, y: _norm(x, t, 1) - stats.norm.logsf(x - 1, t, 1), _free), False)  # fmt: skip
    yield case("bound of the parameter", program(
        known + "x ~ normal(theta, 1);", declared="real<lower=-abs(x[1]) - 3> theta;"),
        _two(lambda t, x, y: np.where(t < -np.abs(x[0]) - 3, -np.inf, _norm(x, t, 1)), _free), False)  # fmt: skip
    yield case("sd of the prior", program(known + "x ~ normal(theta, 1);", prior="theta ~ normal(0, 1 + sum(y));"),
               _two(lambda t, x, y: _norm(x, t, 1),
                    lambda t, x, y: (_norm(t, 0, 1 + y.sum()) - _norm(t, 0, 1)) / N + 0 * x), False)  # fmt: skip
    yield case("one vector, of itself", program(known + "x ~ multi_normal(theta + 0.5 * x, identity_matrix(N));"),
               _two(lambda t, x, y: _norm(x, t + 0.5 * x, 1), _free), False)  # fmt: skip
    yield case("one vector, its covariance", program(
        known + "x ~ multi_normal(rep_vector(theta, N), diag_matrix(0.5 + abs(x)));"),
        _two(lambda t, x, y: _norm(x, t, np.sqrt(0.5 + np.abs(x))), _free), False)  # fmt: skip
    yield case("one vector, of another", program(
        known + "x ~ multi_normal(theta * to_vector(y), identity_matrix(N));"),
        _two(lambda t, x, y: _norm(x, t * y, 1), _free), True)  # fmt: skip
    rows = "data { int N; array[N] vector[2] x; array[N] int y; }"
    values = {**_VALUES, "x": [[0.1, 0.2], [1.0, 0.4], [-0.3, 0.2], [0.8, 0.5]]}
    yield case("rows, of themselves", program(
        known + "for (n in 1:N) x[n] ~ multi_normal(theta + 0.5 * x[n], identity_matrix(2));", rows),
        lambda t, data: _norm(np.asarray(data["x"])[:, 0], t + 0.5 * np.asarray(data["x"])[:, 0], 1)
        + _norm(np.asarray(data["x"])[:, 1], t + 0.5 * np.asarray(data["x"])[:, 1], 1),
        False, values=values)  # fmt: skip
    yield case("rows, of the row before", program(
        known + "for (n in 2:N) x[n] ~ multi_normal(theta + 0.5 * x[n - 1], identity_matrix(2));", rows),
        lambda t, data: padded(_norm(np.asarray(data["x"])[1:, 0], t + 0.5 * np.asarray(data["x"])[:-1, 0], 1)
                                + _norm(np.asarray(data["x"])[1:, 1], t + 0.5 * np.asarray(data["x"])[:-1, 1], 1)),
        True, values=values)  # fmt: skip
    yield case("the element after", program(known + "for (n in 1:(N - 1)) x[n] ~ normal(theta + 0.5 * x[n + 1], 1);"),
               _two(lambda t, x, y: padded(_norm(x[:-1], t + 0.5 * x[1:], 1)), _free), True)  # fmt: skip
    yield case("round in a ring", program(known + "for (n in 1:N) x[n] ~ normal(theta + 0.5 * x[n % N + 1], 1);"),
               _two(lambda t, x, y: _norm(x, t + 0.5 * np.roll(x, -1), 1), _free), False)  # fmt: skip
    yield case("record", program(
        known + "{ real top = 0; for (n in 1:N) { x[n] ~ normal(theta + top, 1); top = fmax(top, x[n]); } }"),
        _two(lambda t, x, y: _norm(x, t + np.maximum.accumulate(np.append(0, np.maximum(x, 0)))[:-1], 1), _free),
        True)  # fmt: skip
    yield case("record, too early", program(
        known + "{ real top = 0; for (n in 1:N) { top = fmax(top, x[n]); x[n] ~ normal(theta + top, 1); } }"),
        _two(lambda t, x, y: _norm(x, t + np.maximum.accumulate(np.maximum(x, 0)), 1), _free), False)  # fmt: skip
    yield case("error with itself", program(
        known + "{ vector[N] err; for (n in 1:N) err[n] = x[n] - (theta + 0.5 * x[n]); err ~ normal(0, 1); }"),
        _two(lambda t, x, y: _norm(0.5 * x, t, 1), _free), False)  # fmt: skip
    yield case("error scaled", program(
        known + "{ vector[N] err; for (n in 1:N) err[n] = theta - exp(theta) * x[n]; err ~ normal(0, 1); }"),
        _two(lambda t, x, y: _norm(t - np.exp(t) * x, 0, 1), _free), False)  # fmt: skip
    yield case("error after error", program(
        known + "{ vector[N] err; err[1] = x[1] - theta; for (n in 2:N) err[n] = x[n] - theta - 0.5 * err[n - 1]; "
        "err ~ normal(0, 1); }"),
        _two(lambda t, x, y: _norm(_errors(t, x), 0, 1), _free), True)  # fmt: skip
    yield case("density times a factor of theta", program(
        known + "for (n in 1:N) target += normal_lpdf(x[n] | theta, 1) + log(1 + square(theta));"),
        _two(lambda t, x, y: _norm(x, t, 1) + np.log1p(t**2), _free), False)  # fmt: skip
    yield case("Jacobian by hand", program(
        known + "for (n in 1:N) { log(abs(x[n]) + exp(theta)) ~ normal(0, 1); "
        "target += -log(abs(x[n]) + exp(theta)); }"),
        _two(lambda t, x, y: _norm(np.log(np.abs(x) + np.exp(t)), 0, 1) - np.log(np.abs(x) + np.exp(t)), _free),
        False)  # fmt: skip
    yield case("difference of outcomes", program(
        "x ~ normal(theta, 1); for (n in 1:N) y2[n] - x[n] ~ normal(theta, 1);",
        "data { int N; vector[N] x; vector[N] y2; }"),
        lambda t, data: _norm(np.asarray(data["x"]), t, 1) + _norm(np.asarray(data["y2"]) - data["x"], t, 1),
        True, observed=("x", "y2"), values={**_VALUES, "y2": [0.3, 0.2, 0.9, 1.4]})  # fmt: skip
    yield case("share of outcomes", program(
        "x ~ normal(theta, 1); for (n in 1:N) y2[n] / x[n] ~ normal(theta, 1);",
        "data { int N; vector[N] x; vector[N] y2; }"),
        lambda t, data: _norm(np.asarray(data["x"]), t, 1) + _norm(np.asarray(data["y2"]) / data["x"], t, 1),
        True, observed=("x", "y2"), values={**_VALUES, "y2": [0.3, 0.2, 0.9, 1.4]})  # fmt: skip
    outcome = _two(lambda t, x, y: _norm(x, t, 1), _free)
    yield case("multiplier", program(known + "x ~ normal(theta, 1);", declared="real<multiplier=1 + abs(x[1])> theta;"),
               outcome, False)  # fmt: skip
    yield case("prior of itself", program(known + "x ~ normal(theta, 1);", prior="theta ~ normal(0, 1 + abs(theta));"),
               _two(lambda t, x, y: _norm(x, t, 1),
                    lambda t, x, y: (_norm(t, 0, 1 + np.abs(t)) - _norm(t, 0, 1)) / N + 0 * x), False)  # fmt: skip
    yield case("prior of itself, in parameters", program(
        known + "x ~ normal(theta, 1);", prior="theta ~ normal(0, s);", moved="real s = 1 + abs(theta);"),
        _two(lambda t, x, y: _norm(x, t, 1),
             lambda t, x, y: (_norm(t, 0, 1 + np.abs(t)) - _norm(t, 0, 1)) / N + 0 * x), False)  # fmt: skip
    yield case("size of what an outcome sizes", program(
        "for (n in 1:N) y[n] ~ bernoulli(0.5); x ~ normal(theta * size(w), 1);",
        _XY + " transformed data { array[1 + y[1]] int w; }"),
        _two(lambda t, x, y: _norm(x, t * (1 + y[0]), 1), _free), False)  # fmt: skip
    yield case("log of a sum of outcomes", program(
        known + "for (n in 1:N) log(x[n] + y[n] + 1) - theta ~ normal(0, 1);"),
        _two(lambda t, x, y: _norm(np.log(x + y + 1) - t, 0, 1), _free), True)  # fmt: skip
    yield case("scaled by data", program(
        "for (n in 1:N) (x[n] - theta) * s[n] ~ normal(0, 1);",
        "data { int N; vector[N] x; vector[N] s; }"),
        lambda t, data: _norm((np.asarray(data["x"]) - t) * np.asarray(data["s"]), 0, 1), True,
        observed=("x",), values={**_VALUES, "s": [1.0, 2.0, -1.5, 0.5]})  # fmt: skip
    yield case("product of a matrix", program(
        "vector[N] a = rep_vector(theta, N); diag_matrix(exp(a)) * x ~ normal(0, 1);",
        "data { int N; vector[N] x; }"),
        lambda t, data: _norm(np.exp(t) * np.asarray(data["x"]), 0, 1), False, observed=("x",))  # fmt: skip
    yield case("left division", program(
        "vector[N] a = rep_vector(theta, N); diag_matrix(exp(a)) \\ x ~ normal(0, 1);",
        "data { int N; vector[N] x; }"),
        lambda t, data: _norm(np.exp(-t) * np.asarray(data["x"]), 0, 1), False, observed=("x",))  # fmt: skip
    yield case("truncated logarithm", program(
        "for (n in 1:N) log(x[n]) - theta ~ normal(0, 1) T[-1, ];", "data { int N; vector[N] x; }"),
        lambda t, data: np.where(np.log(data["x"]) - t < -1, -np.inf, _norm(np.log(data["x"]) - t, 0, 1)), True,
        observed=("x",), values={**_VALUES, "x": [0.5, 1.3, 1.2, 2.1]})  # fmt: skip
    yield case("hidden, sd of itself", _HIDDEN.format(sd="0.5 + abs(x[{t}])"), _hidden_density, False,
               observed=("x",))  # fmt: skip


_HIDDEN_TEXT = """data {{ int N; vector[N] x; }}
parameters {{ real theta; }}
model {{ theta ~ normal(0, 1);
  matrix[N, 2] g; vector[2] acc; vector[2] m = [theta, -theta]';
  for (k in 1:2) g[1, k] = log(0.5) + normal_lpdf(x[1] | m[k], {first});
  for (t in 2:N) for (k in 1:2) {{ for (j in 1:2) acc[j] = g[t - 1, j] + log(0.5) + normal_lpdf(x[t] | m[k], {next});
    g[t, k] = log_sum_exp(acc); }}
  target += log_sum_exp(g[N]); }}"""


class _Hidden:
    def format(self, sd: str) -> str:
        return _HIDDEN_TEXT.format(first=sd.format(t=1), next=sd.format(t="t"))


_HIDDEN = _Hidden()


def _hidden_density(t: Any, data: Mapping[str, Any]) -> Any:
    x = np.asarray(data["x"])
    sd = 0.5 + np.abs(x)
    return np.logaddexp(np.log(0.5) + _norm(x, t, sd), np.log(0.5) + _norm(x, -t, sd))


def _errors(t: Any, x: Any) -> Any:
    errors = [x[0] - t[:, 0]]
    for value in x[1:]:
        errors.append(value - t[:, 0] - 0.5 * errors[-1])
    return np.stack(errors, axis=1)
