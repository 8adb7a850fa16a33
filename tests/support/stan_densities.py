"""Stan's distributions and functions by NumPy and SciPy: an opinion on programs that no Stan code has a part in.

Densities are those of `scipy.stats`, with Stan's arguments. Vectors, row vectors and arrays of numbers are all arrays
of one axis; programs whose meaning depends on the difference are not interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import special, stats

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class RejectedError(Exception):
    """The program rejects: ``reject()``, or an argument that a distribution refuses."""


def _positive(value: Any) -> Any:
    if not np.all(np.asarray(value) > 0):
        raise RejectedError("a scale that is not positive")
    return value


def _support(value: Any) -> Any:
    return np.where(np.asarray(value) > 0, value, np.nan)


def _rate(value: Any) -> Any:
    if not np.all(np.asarray(value) < 1e9):
        raise RejectedError("a rate that is too large")
    return _positive(value)


def _share(value: Any) -> Any:
    if not np.all((np.asarray(value) >= 0) & (np.asarray(value) <= 1)):
        raise RejectedError("a probability outside [0, 1]")
    return value


def _normal(x: Any, mean: Any, sd: Any) -> Any:
    return -0.5 * np.square((x - mean) / _positive(sd)) - np.log(sd) - _HALF_LOG_2PI


def _gamma(x: Any, a: Any, b: Any) -> Any:
    _positive(a)
    inside = special.xlogy(a - 1, np.where(np.asarray(x) > 0, x, 1.0)) - b * x + a * np.log(_positive(b))
    return np.where(np.asarray(x) > 0, inside - special.gammaln(a), -np.inf)


def _student(x: Any, df: Any, centre: Any, scale: Any) -> Any:
    z = (x - centre) / _positive(scale)
    constant = special.gammaln((_positive(df) + 1) / 2) - special.gammaln(df / 2) - 0.5 * np.log(df * np.pi)
    return constant - np.log(scale) - (df + 1) / 2 * np.log1p(z * z / df)


def _beta(x: Any, a: Any, b: Any) -> Any:
    inside = special.xlogy(_positive(a) - 1, x) + special.xlog1py(_positive(b) - 1, -np.asarray(x))
    return np.where((np.asarray(x) > 0) & (np.asarray(x) < 1), inside - special.betaln(a, b), -np.inf)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    inside = np.asarray((np.asarray(k) >= 0) & (np.asarray(k) <= n))
    kept = np.where(inside, k, 0)
    choose = special.gammaln(np.add(n, 1)) - special.gammaln(kept + 1) - special.gammaln(n - kept + 1)
    return np.where(
        inside, choose + special.xlogy(kept, _share(p)) + special.xlog1py(n - kept, -np.asarray(p)), -np.inf
    )


def _poisson(k: Any, rate: Any) -> Any:
    return special.xlogy(k, _positive(rate)) - rate - special.gammaln(np.add(k, 1))


def _negative_binomial(k: Any, mean: Any, phi: Any) -> Any:
    return (
        special.gammaln(k + _positive(phi)) - special.gammaln(phi) - special.gammaln(np.add(k, 1))
        + special.xlogy(k, _positive(mean) / (mean + phi)) + phi * np.log(phi / (mean + phi))
    )  # fmt: skip


# Log densities and masses of each element, and generators, with Stan's arguments.
DENSITIES: dict[str, Callable[..., Any]] = {
    "normal": _normal,
    "std_normal": lambda x: _normal(x, 0.0, 1.0),
    "exponential": lambda x, rate: np.where(np.asarray(x) >= 0, np.log(_positive(rate)) - rate * x, -np.inf),
    "lognormal": lambda x, mean, sd: _normal(np.log(_support(x)), mean, sd) - np.log(x),
    "gamma": _gamma,
    "inv_gamma": lambda x, a, b: _gamma(1.0 / _support(x), a, b) - 2 * np.log(x),
    "cauchy": lambda x, centre, scale: _student(x, 1.0, centre, scale),
    "student_t": _student,
    "double_exponential": lambda x, centre, scale: -np.abs(x - centre) / _positive(scale) - np.log(2 * scale),
    "beta": _beta,
    "uniform": lambda x, low, high: np.where(
        (np.asarray(x) >= low) & (np.asarray(x) <= high), -np.log(_positive(np.subtract(high, low))), -np.inf
    ),
    "bernoulli": lambda k, p: _binomial(k, 1, p),
    "bernoulli_logit": lambda k, a: _binomial(k, 1, special.expit(a)),
    "poisson": _poisson,
    "poisson_log": lambda k, log_rate: _poisson(k, np.exp(log_rate)),
    "binomial": _binomial,
    "binomial_logit": lambda k, n, a: _binomial(k, n, special.expit(a)),
    "neg_binomial_2": _negative_binomial,
    "neg_binomial_2_log": lambda k, log_mean, phi: _negative_binomial(k, np.exp(log_mean), phi),
    "normal_id_glm": lambda y, x, alpha, beta, sd: _normal(y, alpha + x @ beta, sd),
    "poisson_log_glm": lambda k, x, alpha, beta: _poisson(k, np.exp(alpha + x @ beta)),
}
GENERATORS: dict[str, Callable[..., Any]] = {
    "normal": lambda r, mean, sd: r.normal(mean, _positive(sd)),
    "std_normal": lambda r: r.normal(),
    "exponential": lambda r, rate: r.exponential(1.0 / _positive(rate)),
    "lognormal": lambda r, mean, sd: r.lognormal(mean, _positive(sd)),
    "gamma": lambda r, a, b: r.gamma(_positive(a), 1.0 / _positive(b)),
    "inv_gamma": lambda r, a, b: 1.0 / r.gamma(_positive(a), 1.0 / _positive(b)),
    "cauchy": lambda r, centre, scale: centre + _positive(scale) * r.standard_cauchy(),
    "student_t": lambda r, df, centre, scale: centre + _positive(scale) * r.standard_t(_positive(df)),
    "double_exponential": lambda r, centre, scale: r.laplace(centre, _positive(scale)),
    "beta": lambda r, a, b: r.beta(_positive(a), _positive(b)),
    "uniform": lambda r, low, high: r.uniform(low, low + _positive(np.subtract(high, low))),
    "bernoulli": lambda r, p: r.binomial(1, _share(p)),
    "bernoulli_logit": lambda r, a: r.binomial(1, special.expit(a)),
    "poisson": lambda r, rate: r.poisson(_rate(rate)),
    "poisson_log": lambda r, log_rate: r.poisson(_rate(np.exp(log_rate))),
    "binomial": lambda r, n, p: r.binomial(n, _share(p)),
    "neg_binomial_2": lambda r, mean, phi: r.poisson(_rate(r.gamma(_positive(phi), _positive(mean) / phi))),
    "neg_binomial_2_log": lambda r, mean, phi: r.poisson(_rate(r.gamma(_positive(phi), np.exp(mean) / phi))),
}
# Distribution functions, where bounds and truncations need them.
LAWS: dict[str, Callable[..., Any]] = {
    "normal": lambda mean, sd: stats.norm(mean, _positive(sd)),
    "cauchy": lambda centre, scale: stats.cauchy(centre, _positive(scale)),
    "student_t": lambda df, centre, scale: stats.t(_positive(df), centre, _positive(scale)),
    "exponential": lambda rate: stats.expon(scale=1.0 / _positive(rate)),
    "lognormal": lambda mean, sd: stats.lognorm(_positive(sd), scale=np.exp(mean)),
    "gamma": lambda a, b: stats.gamma(_positive(a), scale=1.0 / _positive(b)),
    "beta": lambda a, b: stats.beta(_positive(a), _positive(b)),
    "double_exponential": lambda centre, scale: stats.laplace(centre, _positive(scale)),
    "poisson": lambda rate: stats.poisson(_positive(rate)),
    "std_normal": lambda: stats.norm(0.0, 1.0),
}


def log_density(name: str, value: Any, arguments: list[Any]) -> float:
    """Return the log density or mass, summed over elements."""
    if name in DENSITIES:
        with np.errstate(all="ignore"):
            return float(np.sum(DENSITIES[name](value, *arguments)))
    if name == "categorical":
        with np.errstate(divide="ignore"):
            return float(np.sum(np.log(np.asarray(arguments[0]))[np.asarray(value, dtype=int) - 1]))
    if name == "dirichlet":
        a, x = np.asarray(arguments[0], dtype=float), np.asarray(value)
        return float(special.gammaln(a.sum()) - special.gammaln(_positive(a)).sum() + special.xlogy(a - 1, x).sum())
    if name == "ordered_logistic":
        shares = np.atleast_2d(_categories(*arguments))
        return float(np.sum(np.log(shares[np.arange(np.size(value)) % len(shares), np.ravel(value) - 1])))
    if name in ("multi_normal", "multi_normal_cholesky"):
        mean, matrix = arguments
        covariance = matrix @ matrix.T if name.endswith("cholesky") else matrix
        return float(np.sum(stats.multivariate_normal(np.zeros(len(covariance)), covariance).logpdf(value - mean)))
    if name == "lkj_corr_cholesky" and len(value) == 2:  # with (1 + rho) / 2 ~ beta(eta, eta)
        return float(stats.beta(arguments[0], arguments[0]).logpdf((1 + value[1, 0]) / 2) - np.log(2))
    raise NotImplementedError(name)


def distribution_function(name: str, upper: bool, value: Any, arguments: list[Any]) -> float:
    """Return the log of the distribution function, or of its complement, summed over elements."""
    if name not in LAWS:
        raise NotImplementedError(name)
    law = LAWS[name](*arguments)
    return float(np.sum(law.logsf(value) if upper else law.logcdf(value)))


def draw(name: str, arguments: list[Any], rng: Generator) -> Any:
    """Return a random draw."""
    if name in GENERATORS:
        return GENERATORS[name](rng, *arguments)
    if name == "categorical":
        share = np.asarray(arguments[0], dtype=float)
        return int(rng.choice(len(share), p=share / share.sum())) + 1
    if name == "ordered_logistic":
        return int(rng.choice(len(arguments[1]) + 1, p=_categories(*arguments))) + 1
    if name == "dirichlet":
        return rng.dirichlet(arguments[0])
    if name in ("multi_normal", "multi_normal_cholesky"):
        mean, matrix = arguments
        covariance = matrix @ matrix.T if name.endswith("cholesky") else matrix
        mean = np.broadcast_to(mean, len(covariance))
        return rng.multivariate_normal(mean, covariance)
    if name == "lkj_corr_cholesky" and arguments[0] == 2:
        rho = 2 * rng.beta(arguments[1], arguments[1]) - 1
        return np.array([[1.0, 0.0], [rho, np.sqrt(1 - rho**2)]])
    raise NotImplementedError(name)


def _diff_exp(a: float, b: float) -> float:
    return float(a + np.log1p(-np.exp(b - a))) if b > -np.inf else float(a)


def _categories(predictor: Any, cutpoints: Any) -> Any:
    """Return the probabilities of ordered categories, along the last axis."""
    below = special.expit(np.asarray(cutpoints) - np.asarray(predictor)[..., None])
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


def _log_determinant(matrix: Any) -> float:
    return float(np.linalg.slogdet(matrix)[1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "square": np.square, "sum": np.sum, "mean": np.mean,
    "inv_logit": special.expit, "logit": special.logit, "log1m": lambda x: np.log1p(-x), "lgamma": special.gammaln,
    "sort_asc": np.sort, "softmax": special.softmax, "sin": np.sin, "pow": np.power, "fmax": np.fmax, "fmin": np.fmin,
    "log10": np.log10, "identity_matrix": np.eye, "diag_matrix": np.diag, "min": np.min, "max": np.max,
    "diag_pre_multiply": lambda d, m: np.diag(d) @ m, "transpose": np.transpose,
    "cholesky_decompose": np.linalg.cholesky, "negative_infinity": lambda: -np.inf,
    "positive_infinity": lambda: np.inf, "is_inf": np.isinf, "is_nan": np.isnan, "pi": lambda: np.pi,
    "log_sum_exp": lambda *x: special.logsumexp(np.hstack(x)), "log_diff_exp": _diff_exp,
    "lchoose": lambda n, k: special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1),
    "rep_vector": lambda x, n: np.full(int(n), float(x)), "rep_row_vector": lambda x, n: np.full(int(n), float(x)),
    "rep_array": lambda x, *n: np.full([int(one) for one in n], x), "to_vector": lambda x: np.ravel(x, order="F"),
    "size": lambda x: np.size(x) and len(x), "num_elements": np.size, "rows": len, "cols": lambda x: np.shape(x)[1],
    "col": lambda x, k: np.asarray(x)[:, int(k) - 1], "row": lambda x, k: np.asarray(x)[int(k) - 1],
    "log_mix": lambda p, a, b: special.logsumexp([np.log(p) + a, np.log1p(-p) + b]),
    "linspaced_int_array": lambda n, low, high: np.linspace(low, high, int(n)).astype(int),
    "sd": lambda x: np.std(x, ddof=1), "step": lambda x: float(x >= 0), "dot_product": np.dot,
    "append_array": lambda a, b: np.hstack([a, b]), "cumulative_sum": np.cumsum,
    "append_row": lambda a, b: np.hstack([a, b]),
    "log_inv_logit": special.log_expit, "inv_Phi": special.ndtri, "Phi": special.ndtr, "reverse": np.flip,
    "std_normal_log_qf": special.ndtri_exp, "log_determinant": _log_determinant,
    "rep_matrix": lambda x, n, m: np.full((int(n), int(m)), float(x)),
    "diagonal": np.diag, "dot_self": lambda x: float(np.dot(x, x)), "eigenvalues_sym": np.linalg.eigvalsh,
    "mdivide_left_tri_low": np.linalg.solve, "mdivide_right_tri_low": lambda b, a: np.linalg.solve(np.transpose(a), b),
    "quad_form": lambda a, b: np.transpose(b) @ a @ b, "rows_dot_self": lambda a: np.sum(np.square(a), axis=1),
    "log_softmax": special.log_softmax, "lbeta": special.betaln, "inv": lambda x: 1 / x,
    "inv_sqrt": lambda x: 1 / np.sqrt(x), "inv_square": lambda x: 1 / np.square(x),
    "log_modified_bessel_first_kind": lambda v, z: np.log(special.ive(v, z)) + z,
    "log1m_exp": lambda x: np.log(-np.expm1(x)), "log1m_inv_logit": lambda x: special.log_expit(-x),
    "segment": lambda x, i, n: np.asarray(x)[int(i) - 1 : int(i) - 1 + int(n)],
}  # fmt: skip


def _probabilities(x: Any) -> Any:
    filled = np.asarray(x, dtype=float)
    filled = filled[: 1 + int(np.max(np.flatnonzero(~np.isnan(filled)), initial=0))]
    if not (filled.min() >= 0 and abs(filled.sum() - 1) <= 1e-8):
        raise ValueError("no probabilities")
    return filled


def _observed(n: int, missing: Any, left: int) -> Any:
    places = np.asarray(missing, dtype=int) - 1
    if len(np.unique(places)) != len(places) or n - len(places) != left:
        raise RejectedError("indices of missing values")
    observed = np.ones(int(n), dtype=int)
    observed[places] = 0
    return observed


# The helpers of simulators, whose overloads differ by types that arrays do not have.
HELPERS = {
    "bread_at": lambda x, i: x if np.ndim(x) == 0 else x[0] if len(x) == 1 else x[int(i) - 1],
    "bread_vector_at": lambda x, i: x if np.ndim(x) == 1 else x[0] if len(x) == 1 else x[int(i) - 1],
    "bread_reals": lambda x, n: np.array(np.broadcast_to(np.asarray(x, dtype=float), int(n))),
    "bread_integers": lambda x, n: np.array(np.broadcast_to(x, int(n))),
    "bread_limit": lambda y, flag, code, side: (
        np.asarray(y)[np.asarray(flag) == code][0] if np.any(np.asarray(flag) == code) else side * np.inf
    ),
    "bread_probabilities": _probabilities,
    "bread_observed": _observed,
    "bread_recorded": lambda y, flag, code: plain(np.asarray(y)[np.argmax(np.asarray(flag) == code)]),
}


def log_probability(name: str, low: Any, high: Any, given: list[Any]) -> float:
    """Return the log probability of an interval; None is no end."""
    if high is None:
        return distribution_function(name, True, low, given)
    if low is None:
        return distribution_function(name, False, high, given)
    ends = [distribution_function(name, False, end, given) for end in (high, low)]
    return float(FUNCTIONS["log_diff_exp"](*ends))


def operate(operator: str, left: Any, right: Any) -> Any:
    """Return the value of a binary expression."""
    if operator in ("*",) and np.ndim(left) and np.ndim(right):
        return plain(np.asarray(left) @ np.asarray(right))
    with np.errstate(all="ignore"):
        if operator in ("/", "./"):
            if isinstance(left, (int, np.integer)) and isinstance(right, (int, np.integer)):
                return int(left / right)
            return np.divide(left, right)
        return {
            "+": np.add, "-": np.subtract, "*": np.multiply, ".*": np.multiply, "%": np.fmod, "^": np.power,
            ".^": np.power, "<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal,
            "==": np.equal, "!=": np.not_equal, "%/%": np.floor_divide,
        }[operator](left, right)  # fmt: skip


def as_array(value: Any) -> Any:
    """Return data as an array, or as a number."""
    array = np.asarray(value)
    return plain(array) if array.ndim == 0 else array


def plain(value: Any) -> Any:
    """Return an array without axes as a number."""
    return value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value


def copied(value: Any) -> Any:
    """Return a copy of an array."""
    return np.array(value) if np.ndim(value) else value
