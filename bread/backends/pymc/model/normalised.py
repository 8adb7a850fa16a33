"""Priors whose density is known to integrate to one, so that nobody need integrate it."""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np
from pymc.distributions import continuous
from pytensor.tensor.random import basic

from bread.backends.pymc.simulation.restricted import Restrictions

# Distributions of PyMC's own whose log density PyMC's tests compare with SciPy's (or with a closed form) on a grid of
# values and parameters, and whose default transform maps their whole support. Exact types: what a user derives from
# them, or builds from them (CustomDist, Truncated, Mixture), is integrated, and so are LKJ priors, simplices and
# whatever else has a density of many coordinates.
_NAMES = (
    "AsymmetricLaplaceRV", "BetaClippedRV", "BetaRV", "CauchyRV", "ExGaussianRV", "ExponentialRV", "GammaRV",
    "GumbelRV", "HalfCauchyRV", "HalfNormalRV", "HalfStudentTRV", "InvGammaRV", "KumaraswamyRV", "LaplaceRV",
    "LogNormalRV", "LogisticRV", "MoyalRV", "MvNormalRV", "NormalRV", "ParetoRV", "RiceRV", "SkewNormalRV",
    "StudentTRV", "TriangularRV", "UniformRV", "VonMisesRV", "WaldRV", "WeibullBetaRV", "WeibullRV",
)  # fmt: skip
_TESTED = tuple(vars(module)[name] for module in (basic, continuous) for name in _NAMES if name in vars(module))


def log_integral(variable: Any, shape: tuple[int, ...], restrictions: Restrictions) -> float | None:
    """Return the log of what the density of a free variable integrates to, in nats; None where that is not known.

    Parameters
    ----------
    variable : Variable
    shape : tuple of int
    restrictions : Restrictions
    """
    if not variable.type.dtype.startswith("float"):
        return 0.0  # no integral, and sums over values are not looked at
    if type(variable.owner.op) not in _TESTED:
        return None
    if variable.name in restrictions.ascending:  # one of K! orders of each row
        return -int(np.prod(shape[:-1], dtype=int)) * lgamma(shape[-1] + 1)
    return None if variable.name in restrictions.tested else 0.0
