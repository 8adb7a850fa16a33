"""PyMC's distributions with parameters to draw at, ordinary ones and those at an edge, which broadcast to all pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pymc as pm

Rows = Mapping[str, tuple[Any, ...]]  # values of each parameter
_CUTS = np.array([-1.0, 0.5, 2.0])


def _mixture(size: Any = None, **at: Any) -> Any:
    parts = [pm.Gamma.dist(at["alpha"], 1.0), pm.HalfNormal.dist(3.0)]
    return pm.Mixture.dist(w=np.array([0.3, 0.7]), comp_dists=parts, size=size)


def _truncated(law: Any, lower: float | None, upper: float | None, **fixed: Any) -> Callable[..., Any]:
    return lambda size=None, **at: pm.Truncated.dist(law.dist(**fixed, **at), lower=lower, upper=upper, size=size)


CONTINUOUS: dict[str, tuple[Any, Rows]] = {
    "AsymmetricLaplace": (pm.AsymmetricLaplace, {"b": (0.5, 3.0), "kappa": (0.2, 1.0, 4.0), "mu": (-1.0,)}),
    "Beta": (pm.Beta, {"alpha": (0.1, 1.0, 1e4), "beta": (0.3, 1.0, 4.0)}),
    "Beta, mu": (pm.Beta, {"mu": (0.1, 0.5), "nu": (1.0, 100.0)}),
    "Cauchy": (pm.Cauchy, {"alpha": (-2.0, 30.0), "beta": (1e-4, 2.0)}),
    "ChiSquared": (pm.ChiSquared, {"nu": (0.05, 1.0, 2.0, 1e4)}),
    "ExGaussian": (pm.ExGaussian, {"mu": (-1.0,), "sigma": (0.01, 2.0), "nu": (0.05, 1.0, 100.0)}),
    "Exponential": (pm.Exponential, {"lam": (1e-3, 1.0, 40.0)}),
    "Gamma": (pm.Gamma, {"alpha": (0.05, 1.0, 1e4), "beta": (0.01, 7.0)}),
    "Gumbel": (pm.Gumbel, {"mu": (-3.0, 2.0), "beta": (1e-3, 5.0)}),
    "HalfCauchy": (pm.HalfCauchy, {"beta": (1e-4, 1.0, 30.0)}),
    "HalfNormal": (pm.HalfNormal, {"sigma": (0.01, 1.0, 30.0)}),
    "HalfStudentT": (pm.HalfStudentT, {"nu": (0.1, 3.0, 1e3), "sigma": (0.1, 25.0)}),
    "HurdleGamma": (pm.HurdleGamma, {"psi": (1.0,), "alpha": (0.5, 2.0), "beta": (3.0,)}),
    "HurdleLogNormal": (pm.HurdleLogNormal, {"psi": (1.0,), "mu": (-1.0, 2.0), "sigma": (0.5,)}),
    "Interpolated": (
        lambda size=None, **at: pm.Interpolated.dist(np.array([0.0, 1.0, 1.5]), np.array([1.0, 3.0, 0.5]), size=size),
        {"one": (0.0,)},
    ),
    "InverseGamma": (pm.InverseGamma, {"alpha": (0.3, 2.0, 1e4), "beta": (0.1, 5.0)}),
    "Kumaraswamy": (pm.Kumaraswamy, {"a": (0.3, 1.0, 5.0), "b": (0.4, 1.0, 6.0)}),
    "Laplace": (pm.Laplace, {"mu": (-1.0, 3.0), "b": (1e-3, 6.0)}),
    "Logistic": (pm.Logistic, {"mu": (-1.0, 3.0), "s": (1e-3, 6.0)}),
    "LogitNormal": (pm.LogitNormal, {"mu": (-9.0, 0.5), "sigma": (0.1, 1.0, 4.0)}),
    "LogNormal": (pm.LogNormal, {"mu": (-9.0, 0.5), "sigma": (0.1, 1.0, 20.0)}),
    "Mixture": (_mixture, {"alpha": (0.3, 9.0)}),
    "Moyal": (pm.Moyal, {"mu": (-1.0, 3.0), "sigma": (1e-3, 5.0)}),
    "Normal": (pm.Normal, {"mu": (-1.0, 300.0), "sigma": (0.01, 6.0)}),
    "NormalMixture": (
        lambda size=None, **at: pm.NormalMixture.dist(
            w=np.array([0.3, 0.7]), mu=np.array([0.0, 3.0]), sigma=np.array([0.1, 2.0]), size=size
        ),
        {"one": (0.0,)},
    ),
    "Pareto": (pm.Pareto, {"alpha": (0.1, 2.0, 1e3), "m": (0.1, 4.0)}),
    "PolyaGamma": (pm.PolyaGamma, {"h": (1.0, 3.0), "z": (0.0, -2.0)}),
    "Rice": (pm.Rice, {"nu": (0.0, 1.0, 1e3), "sigma": (0.5, 3.0)}),
    "SkewNormal": (pm.SkewNormal, {"mu": (-1.0,), "sigma": (0.2, 3.0), "alpha": (-50.0, 0.0, 2.0)}),
    "SkewStudentT": (pm.SkewStudentT, {"a": (0.2, 3.0), "b": (1.0, 100.0), "mu": (1.0,), "sigma": (0.5, 2.0)}),
    "StudentT": (pm.StudentT, {"nu": (0.1, 3.0, 1e3), "mu": (2.0,), "sigma": (0.1, 25.0)}),
    "Triangular": (pm.Triangular, {"lower": (-1.0, 0.0), "c": (0.0, 1.0), "upper": (1.0, 4.0)}),
    "Truncated": (_truncated(pm.Gamma, 0.5, 2.0), {"alpha": (0.5, 3.0), "beta": (1.0, 4.0)}),
    "Truncated, no inverse": (_truncated(pm.Wald, 0.5, 2.0), {"mu": (0.5, 3.0), "lam": (4.0,)}),
    "Truncated, far above": (_truncated(pm.Exponential, 1.0, 3.0), {"lam": (1e-3, 30.0, 45.0, 500.0)}),
    "Truncated, heavy tail": (_truncated(pm.StudentT, 1.0, None, nu=3.0, mu=0.0), {"sigma": (1e-5, 1.0)}),
    "TruncatedNormal": (
        pm.TruncatedNormal, {"mu": (-1.0, 9.0), "sigma": (0.3, 3.0), "lower": (-np.inf, -0.5), "upper": (0.7, np.inf)},
    ),
    "Uniform": (pm.Uniform, {"lower": (-3.0, 0.0), "upper": (1e-3, 100.0)}),
    "VonMises": (pm.VonMises, {"mu": (-1.0, 0.5), "kappa": (1e-3, 1.0, 90.0)}),
    "VonMises, concentrated": (pm.VonMises, {"mu": (0.5,), "kappa": (1e3,)}),
    "Wald": (pm.Wald, {"mu": (0.3, 4.0), "lam": (1e-3, 9.0), "alpha": (0.0, 1.0)}),
    "Weibull": (pm.Weibull, {"alpha": (0.05, 1.0, 9.0), "beta": (0.1, 5.0)}),
}  # fmt: skip
if not find_spec("polyagamma"):  # the package that draws it
    del CONTINUOUS["PolyaGamma"]

COUNTS: dict[str, tuple[Any, Rows]] = {
    "Bernoulli": (pm.Bernoulli, {"p": (0.0, 1e-3, 0.5, 1.0)}),
    "Bernoulli, logit": (pm.Bernoulli, {"logit_p": (-30.0, -2.0, 0.0, 40.0)}),
    "BetaBinomial": (pm.BetaBinomial, {"alpha": (0.1, 2.0, 60.0), "beta": (0.3, 5.0), "n": (0, 1, 30)}),
    "Binomial": (pm.Binomial, {"n": (0, 1, 40), "p": (0.0, 1e-3, 0.7, 1.0)}),
    "Categorical": (
        lambda size=None, **at: pm.Categorical.dist(np.array([[0.2, 0.8, 0.0], [1.0, 0.0, 0.0]]), size=size),
        {"one": (0.0, 1.0)},
    ),
    "Categorical, logit": (
        lambda size=None, **at: pm.Categorical.dist(
            logit_p=np.array([[-800.0, 0.8, 0.0], [0.1, 700.0, 699.0]]), size=size
        ),
        {"one": (0.0, 1.0)},
    ),
    "Censored": (
        lambda size=None, **at: pm.Censored.dist(pm.Poisson.dist(**at), lower=1, upper=6, size=size),
        {"mu": (0.1, 4.0)},
    ),
    "DiracDelta": (pm.DiracDelta, {"c": (-1, 3)}),
    "DiscreteUniform": (pm.DiscreteUniform, {"lower": (-3, 0), "upper": (0, 120)}),
    "DiscreteWeibull": (pm.DiscreteWeibull, {"q": (0.01, 0.5, 0.95), "beta": (0.8, 1.0, 3.0)}),
    "Geometric": (pm.Geometric, {"p": (1e-2, 0.5, 0.999, 1.0)}),
    "HurdleNegativeBinomial": (pm.HurdleNegativeBinomial, {"psi": (1e-2, 0.3), "mu": (0.1, 4.0), "alpha": (0.3, 20.0)}),
    "HurdlePoisson": (pm.HurdlePoisson, {"psi": (1e-2, 0.3, 0.999), "mu": (1e-7, 0.1, 4.0)}),
    "HyperGeometric": (pm.HyperGeometric, {"N": (50, 80), "k": (0, 7, 50), "n": (1, 20, 50)}),
    "NegativeBinomial": (pm.NegativeBinomial, {"mu": (0.1, 3.0, 200.0), "alpha": (0.05, 2.0, 1e5)}),
    "NegativeBinomial, n": (pm.NegativeBinomial, {"n": (0.2, 3.0, 200.0), "p": (0.05, 0.5, 0.99)}),
    "OrderedLogistic": (
        lambda size=None, **at: pm.OrderedLogistic.dist(at["eta"], cutpoints=_CUTS, size=size),
        {"eta": (-3.0, 0.0, 30.0)},
    ),
    "OrderedProbit": (
        lambda size=None, **at: pm.OrderedProbit.dist(at["eta"], _CUTS, 2.0, size=size), {"eta": (-3.0, 0.0, 9.0)},
    ),
    "Poisson": (pm.Poisson, {"mu": (0.0, 1e-3, 1.0, 500.0)}),
    "Truncated": (_truncated(pm.Poisson, 1, 6), {"mu": (0.1, 4.0)}),
    "Truncated, rare": (_truncated(pm.Poisson, 2, None), {"mu": (1e-6, 1e-3, 1.0)}),
    "Truncated, rare below": (_truncated(pm.NegativeBinomial, None, 2, alpha=5.0), {"mu": (3.0, 1e3)}),
    "Truncated, rare successes": (_truncated(pm.Binomial, 1, 6, n=20), {"p": (1e-7, 0.1)}),
    "ZeroInflatedBinomial": (pm.ZeroInflatedBinomial, {"psi": (0.0, 0.3, 1.0), "n": (1, 20), "p": (0.01, 0.6)}),
    "ZeroInflatedNegativeBinomial": (
        pm.ZeroInflatedNegativeBinomial, {"psi": (0.0, 0.3, 1.0), "mu": (0.1, 4.0), "alpha": (0.3, 20.0)},
    ),
    "ZeroInflatedPoisson": (pm.ZeroInflatedPoisson, {"psi": (0.0, 0.3, 1.0), "mu": (0.01, 4.0)}),
}  # fmt: skip

_MEAN, _COVARIANCE = np.array([1.0, 0.0, -2.0]), np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 0.8]])
_FACTOR, _ROWS = np.linalg.cholesky(_COVARIANCE), np.array([[1.0, 0.3], [0.3, 2.0]])
_LINE = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])  # neighbours
_TWO = np.array([2.0, 0.3])
# Of many coordinates, as the free variable "x" of a model.
JOINT: dict[str, Callable[[], Any]] = {
    "AR": lambda: pm.AR("x", [1.0, 0.6, -0.3], 2.0, constant=True, init_dist=pm.Normal.dist(0, 3.0, shape=2), steps=3),
    "AR, two": lambda: pm.AR("x", [[0.6], [0.1]], _TWO, init_dist=pm.Normal.dist(0, 3.0, shape=(2, 1)), steps=2),
    "CAR": lambda: pm.CAR("x", np.ones(3), _LINE, alpha=0.5, tau=2.0),
    "Dirichlet": lambda: pm.Dirichlet("x", np.array([[0.8, 3.0, 1.0], [20.0, 1.0, 1.0]])),
    "EulerMaruyama": lambda: pm.EulerMaruyama(
        "x", 0.1, lambda x, a: (-a * x, 1.0 + 0 * x), (0.7,), init_dist=pm.Normal.dist(1.0, 0.5), steps=3
    ),
    "GARCH11": lambda: pm.GARCH11("x", _TWO, 0.3, 0.4, 1.5, shape=(2, 4)),
    "GaussianRandomWalk": lambda: pm.GaussianRandomWalk(
        "x", mu=_TWO, sigma=_TWO, init_dist=pm.Normal.dist(3.0, 0.5), steps=2, shape=(2, 3)
    ),
    "KroneckerNormal": lambda: pm.KroneckerNormal("x", np.ones(6), covs=[_ROWS, _COVARIANCE], sigma=0.5, shape=6),
    "LKJCholeskyCov": lambda: pm.LKJCholeskyCov("x", 2.0, n=3, sd_dist=pm.LogNormal.dist(0.0, 0.5, shape=3)),
    "LKJCorr": lambda: pm.LKJCorr("x", n=3, eta=1.0),
    "MatrixNormal": lambda: pm.MatrixNormal("x", np.ones((2, 3)), rowcov=_ROWS, colchol=_FACTOR),
    "MvGaussianRandomWalk": lambda: pm.MvGaussianRandomWalk(
        "x", mu=_MEAN, cov=_COVARIANCE, init_dist=pm.MvNormal.dist(np.zeros(3), np.eye(3)), steps=2
    ),
    "MvNormal": lambda: pm.MvNormal("x", _MEAN, np.stack([_COVARIANCE, 2 * np.eye(3)])),
    "MvNormal, tau": lambda: pm.MvNormal("x", np.stack([_MEAN, 0 * _MEAN]), tau=_COVARIANCE),
    "MvNormal, chol": lambda: pm.MvNormal("x", _MEAN, chol=_FACTOR),
    "MvStudentT": lambda: pm.MvStudentT("x", nu=np.array([1.5, 6.0]), mu=_MEAN, scale=_COVARIANCE),
    "MvStudentTRandomWalk": lambda: pm.MvStudentTRandomWalk(
        "x", nu=4.0, mu=_MEAN, scale=_COVARIANCE, init_dist=pm.MvNormal.dist(np.zeros(3), np.eye(3)), steps=1
    ),
    "RandomWalk": lambda: pm.RandomWalk(
        "x", init_dist=pm.Normal.dist(), innovation_dist=pm.Laplace.dist(0.0, 2.0), steps=3
    ),
    "StickBreakingWeights": lambda: pm.StickBreakingWeights("x", alpha=_TWO + 0.5, K=2),
    "Wishart": lambda: pm.Wishart("x", nu=5, V=_COVARIANCE),
    "ZeroSumNormal": lambda: pm.ZeroSumNormal("x", np.array([[1.0], [3.0]]), shape=(2, 3)),
}  # fmt: skip
if int(pm.__version__.split(".")[0]) < 6:
    del JOINT["Wishart"]  # without a transform: its draws fill no space of their own

# Counts of many coordinates: a distribution, and every value that it takes.
_THREES = np.array([[a, b, 3 - a - b] for a in range(4) for b in range(4 - a)])
TABLES: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "Multinomial": (lambda size: pm.Multinomial.dist(3, np.array([0.1, 0.2, 0.7]), size=size), _THREES),
    "DirichletMultinomial": (
        lambda size: pm.DirichletMultinomial.dist(3, np.array([0.3, 2.0, 5.0]), size=size),
        _THREES,
    ),
    "OrderedMultinomial": (lambda size: pm.OrderedMultinomial.dist(0.3, _CUTS[:2], 3, size=size), _THREES),
}

NOT_DRAWN = {
    # no draws, or a density of the user's
    "CustomDist", "DensityDist", "Flat", "HalfFlat", "ICAR", "Simulator",
    # bases; another name; several variables in one
    "Continuous", "Discrete", "Distribution", "SymbolicRandomVariable", "Lognormal", "WishartBartlett",
}  # fmt: skip
