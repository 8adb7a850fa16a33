"""How each distribution of Stan is drawn: its random number generator, its shape and its support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Shape = Literal["scalar", "vector", "matrix"]
Support = Literal["real", "positive", "unit", "counts", "categories", "interval", "inside", "other"]


@dataclass(frozen=True)
class Distribution:
    """One distribution.

    Attributes
    ----------
    shape : "scalar", "vector" or "matrix"
        What one draw is. Vectorised statements of scalars (vectors) are drawn element by element.
    generator : str
        Expression of one draw: ``{0}``, ``{1}``, ... stand for the arguments, ``{variate}`` for the outcome now held
        (sizes and totals come from it). Stan 2.35 to 2.39 has no generator for some; these are drawn by links.
    vector_arguments : tuple of int
        Arguments that are vectors for every single draw; the others are scalars (shape "scalar") or matrices.
    discrete : bool
    support : str
        Where the density is positive.
    location : int or None
        Position of the argument about which the density is symmetric (-1: about 0): cut there, half of it is left.
    integer_arguments : tuple of int
        Scalar arguments that are integers.
    """

    shape: Shape
    generator: str
    vector_arguments: tuple[int, ...] = ()
    discrete: bool = False
    support: Support = "other"
    location: int | None = None
    integer_arguments: tuple[int, ...] = ()


def _scalar(
    name: str,
    n: int,
    support: Support,
    discrete: bool = False,
    location: int | None = None,
    integers: tuple[int, ...] = (),
) -> Distribution:
    arguments = ", ".join(f"{{{i}}}" for i in range(n))
    return Distribution("scalar", f"{name}_rng({arguments})", (), discrete, support, location, integers)


_REAL = {
    "normal": 2,
    "cauchy": 2,
    "double_exponential": 2,
    "logistic": 2,
    "gumbel": 2,
    "skew_normal": 3,
    "exp_mod_normal": 3,
    "student_t": 3,
    "std_normal": 0,
    "skew_double_exponential": 3,
}
_LOCATION = {"normal": 0, "cauchy": 0, "double_exponential": 0, "logistic": 0, "student_t": 1, "std_normal": -1}
_POSITIVE = {
    "exponential": 1,
    "gamma": 2,
    "inv_gamma": 2,
    "lognormal": 2,
    "chi_square": 1,
    "inv_chi_square": 1,
    "weibull": 2,
    "frechet": 2,
    "rayleigh": 1,
    "scaled_inv_chi_square": 2,
    "loglogistic": 2,
}
_UNIT = {"beta": 2, "beta_proportion": 2}
_OTHER = {"uniform": 2, "pareto": 2, "pareto_type_2": 3, "von_mises": 2}
_COUNTS = {
    "poisson": 1,
    "poisson_log": 1,
    "neg_binomial": 2,
    "neg_binomial_2": 2,
    "neg_binomial_2_log": 2,
    "binomial": 2,
    "beta_binomial": 3,
    "bernoulli": 1,
    "bernoulli_logit": 1,
}
_TRIALS = {"binomial": (0,), "beta_binomial": (0,)}

DISTRIBUTIONS: dict[str, Distribution] = {
    **{name: _scalar(name, n, "real", location=_LOCATION.get(name)) for name, n in _REAL.items()},
    **{name: _scalar(name, n, "positive") for name, n in _POSITIVE.items()},
    **{name: _scalar(name, n, "unit") for name, n in _UNIT.items()},
    **{name: _scalar(name, n, "other") for name, n in _OTHER.items()},
    **{name: _scalar(name, n, "counts", True, integers=_TRIALS.get(name, ())) for name, n in _COUNTS.items()},
    "binomial_logit": Distribution(
        "scalar", "binomial_rng({0}, inv_logit({1}))", (), True, "counts", integer_arguments=(0,)
    ),
    "beta_neg_binomial": _scalar("beta_neg_binomial", 3, "counts", True),
    "yule_simon": _scalar("yule_simon", 1, "other", True),
    "discrete_range": _scalar("discrete_range", 2, "other", True, integers=(0, 1)),
    # Stan's own generator (2.35, 2.39) takes its two counts for each other.
    "hypergeometric": Distribution(
        "scalar", "bread_hypergeometric_rng({0}, {1}, {2})", (), True, "counts", integer_arguments=(0, 1, 2)
    ),
    "categorical": Distribution("scalar", "categorical_rng({0})", (0,), True, "categories"),
    "categorical_logit": Distribution("scalar", "categorical_logit_rng({0})", (0,), True, "categories"),
    "ordered_logistic": Distribution("scalar", "ordered_logistic_rng({0}, {1})", (1,), True, "categories"),
    "ordered_probit": Distribution("scalar", "ordered_probit_rng({0}, {1})", (1,), True, "categories"),
    "multi_normal": Distribution("vector", "multi_normal_rng({0}, {1})", (0,), support="real"),
    "multi_normal_cholesky": Distribution("vector", "multi_normal_cholesky_rng({0}, {1})", (0,), support="real"),
    "multi_normal_prec": Distribution("vector", "multi_normal_rng({0}, inverse_spd({1}))", (0,), support="real"),
    "multi_student_t": Distribution("vector", "multi_student_t_rng({0}, {1}, {2})", (1,), support="real"),
    "multi_student_t_cholesky": Distribution(
        "vector", "multi_student_t_cholesky_rng({0}, {1}, {2})", (1,), support="real"
    ),
    "dirichlet": Distribution("vector", "dirichlet_rng({0})", (0,), support="unit"),
    "multinomial": Distribution("vector", "multinomial_rng({0}, sum({variate}))", (0,), True, "counts"),
    "multinomial_logit": Distribution("vector", "multinomial_logit_rng({0}, sum({variate}))", (0,), True, "counts"),
    "dirichlet_multinomial": Distribution(
        "vector", "dirichlet_multinomial_rng({0}, sum({variate}))", (0,), True, "counts"
    ),
    "lkj_corr": Distribution("matrix", "lkj_corr_rng({size}, {0})"),
    "lkj_corr_cholesky": Distribution("matrix", "lkj_corr_cholesky_rng({size}, {0})"),
    "wishart": Distribution("matrix", "wishart_rng({0}, {1})"),
    "inv_wishart": Distribution("matrix", "inv_wishart_rng({0}, {1})"),
    "wishart_cholesky": Distribution("matrix", "wishart_cholesky_rng({0}, {1})"),
    "inv_wishart_cholesky": Distribution("matrix", "inv_wishart_cholesky_rng({0}, {1})"),
}

# Regressions in one statement, as the distribution of each row and its arguments: {0} is the matrix of predictors.
GENERALISED_LINEAR: dict[str, tuple[str, tuple[str, ...]]] = {
    "bernoulli_logit_glm": ("bernoulli_logit", ("({1}) + ({0}) * ({2})",)),
    "binomial_logit_glm": ("binomial_logit", ("{0}", "({2}) + ({1}) * ({3})")),
    "poisson_log_glm": ("poisson_log", ("({1}) + ({0}) * ({2})",)),
    "neg_binomial_2_log_glm": ("neg_binomial_2_log", ("({1}) + ({0}) * ({2})", "{3}")),
    "normal_id_glm": ("normal", ("({1}) + ({0}) * ({2})", "{3}")),
    "ordered_logistic_glm": ("ordered_logistic", ("({0}) * ({1})", "{2}")),
}

_DISCRETE_WITHOUT_GENERATOR = {"categorical_logit_glm", "hmm_marginal", "poisson_binomial"}


def is_discrete(name: str) -> bool:
    """Return whether a distribution of Stan's has a mass function (``_lpmf``)."""
    if name in DISTRIBUTIONS:
        return DISTRIBUTIONS[name].discrete
    if name in GENERALISED_LINEAR:
        return DISTRIBUTIONS[GENERALISED_LINEAR[name][0]].discrete
    return name in _DISCRETE_WITHOUT_GENERATOR
