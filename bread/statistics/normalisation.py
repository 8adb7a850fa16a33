"""Does a density integrate to one? Bridge sampling between its own random draws and a fitted Student t law."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln

from bread.errors import DensityError, InvalidArgumentError
from bread.statistics.bounds import FloatArray

DEGREES = (1.0, 200.0)  # of freedom
EM_STEPS = 30
DRAWS_A_DIMENSION = 20
LARGEST_STEP = 1e5  # nats


class Normalisation(NamedTuple):
    """Result of `log_constant`.

    Attributes
    ----------
    log_constant : float
        Log of the integral of exp(log density), in nats; 0 for a normalised density.
    standard_error : float
        In nats.
    n_zero : int
        Proposals where the density is zero; they count as that.
    """

    log_constant: float
    standard_error: float
    n_zero: int


class StudentT(NamedTuple):
    """A multivariate Student t law: location (d,), lower Cholesky factor of the scale matrix (d, d), degrees."""

    location: FloatArray
    factor: FloatArray
    degrees: float

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return n draws, shape (n, d)."""
        normal = rng.standard_normal((n, len(self.location)))
        mixing = np.sqrt(rng.chisquare(self.degrees, n) / self.degrees)
        return np.asarray(self.location + (normal @ self.factor.T) / mixing[:, None], dtype=np.float64)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return the normalised log density at points (n, d), in nats."""
        d, nu = len(self.location), self.degrees
        constant = gammaln((nu + d) / 2.0) - gammaln(nu / 2.0) - d / 2.0 * np.log(np.pi * nu)
        constant -= np.log(np.diagonal(self.factor)).sum()
        distance = _distance(points, self.location, self.factor)
        return np.asarray(constant - (nu + d) / 2.0 * np.log1p(distance / nu), dtype=np.float64)


def log_constant(draws: ArrayLike, log_density: Callable[[FloatArray], ArrayLike], rng: Generator) -> Normalisation:
    """Return the log integral of a density of which exact draws are at hand.

    The first half of the draws fits a Student t law by maximum likelihood, the second half and as many draws of that
    law are bridged. One variable given its parents at a time: jointly, a hierarchy looks like no t law.

    Parameters
    ----------
    draws : array_like, shape (n, d)
        Independent draws from the normalised density, in unconstrained coordinates; n >= 40 d, 10000 for an error
        below 0.005 nats.
    log_density : callable
        Takes points (m, d) and returns (m,) log densities, Jacobian included, in nats. -inf is allowed away from the
        draws.
    rng : numpy.random.Generator
        For the proposals.

    Returns
    -------
    Normalisation
        A log_constant beyond 4 standard errors is a constant that the density lacks (or has too many): a bug, or known
        (log 2 for each half-normal of a Stan program). The draws are assumed to be right: the score test asks that.

    Raises
    ------
    InvalidArgumentError
        Too few draws, draws that are not finite, or that span no volume.
    DensityError
        A density that is NaN or +inf, or zero at an exact draw.

    References
    ----------
    Meng & Wong (1996), "Simulating ratios of normalizing constants via a simple identity", Statistica Sinica 6, 831.
    Fruehwirth-Schnatter (2004), "Estimating marginal likelihoods ... using bridge sampling", Econometrics J. 7, 143.
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] == 0 or len(x) < 2 * DRAWS_A_DIMENSION * x.shape[1] or not np.isfinite(x).all():
        raise InvalidArgumentError(
            f"draws must be finite with shape (n, d), d >= 1 and n >= {2 * DRAWS_A_DIMENSION} d, but got shape "
            f"{x.shape} with {int((~np.isfinite(x)).sum())} values that are not finite."
        )
    half = len(x) // 2
    law = fit_student_t(x[:half])
    own = x[half:]
    proposals = law.sample(len(own), rng)
    at_draws = np.asarray(log_density(own), dtype=np.float64)
    at_proposals = np.asarray(log_density(proposals), dtype=np.float64)
    for name, values in (("draws", at_draws), ("proposals", at_proposals)):
        if values.shape != (len(own),) or np.isnan(values).any() or np.isposinf(values).any():
            raise DensityError(
                f"log_density at {name} must be {len(own)} numbers below infinity, but got shape {values.shape} with "
                f"{int(np.isnan(values).sum())} NaN and {int(np.isposinf(values).sum())} +inf."
            )
    if np.isneginf(at_draws).any():
        raise DensityError(
            f"log_density is -inf at {int(np.isneginf(at_draws).sum())} of {len(own)} exact draws: draws and density "
            "do not belong together."
        )
    return bridge(at_draws - law.log_density(own), at_proposals - law.log_density(proposals))


def bridge(at_draws: FloatArray, at_proposals: FloatArray) -> Normalisation:
    """Return the log constant from log ratios density / proposal, with the optimal bridge.

    Parameters
    ----------
    at_draws, at_proposals : ndarray, shape (n,) and (m,)
        Log ratios in nats at draws of the density (finite) and at draws of the proposal (finite or -inf).

    Returns
    -------
    Normalisation
        The constant c that makes the expected number of draws among all points, each judged by its own ratio, equal to
        n: Bennett's equation, whose solution is the fixed point of Meng and Wong's iteration.
    """
    n, m = len(at_draws), len(at_proposals)
    offset = np.log(n) - np.log(m)

    def excess(c: float) -> float:
        # logistic(offset + ratio - c) is the probability that a point is one of the draws
        is_draw = np.exp(-np.logaddexp(0.0, -(offset + np.concatenate([at_draws, at_proposals]) - c)))
        return float(is_draw.sum() - n)

    n_zero = int(np.isneginf(at_proposals).sum())
    low = high = float(np.median(at_draws))
    step = 1.0
    while excess(low) <= 0.0 or excess(high) >= 0.0:
        low, high, step = low - step * (excess(low) <= 0.0), high + step * (excess(high) >= 0.0), 2.0 * step
        if step > LARGEST_STEP:
            raise DensityError(
                f"draws and proposals have nothing in common, with {n_zero} of {m} proposals of density zero: the "
                "integral cannot be estimated. Leave out this variable, or test its parts."
            )
    constant = float(brentq(excess, low, high, xtol=1e-9))
    # Relative variances of the two means whose ratio the constant is, independent draws on both sides.
    share_proposal = np.exp(-np.logaddexp(0.0, offset + at_draws - constant))
    share_draw = np.exp(-np.logaddexp(0.0, -(offset + at_proposals - constant)))
    variance = _relative_variance(share_proposal) / n + _relative_variance(share_draw) / m
    return Normalisation(constant, float(np.sqrt(variance)), n_zero)


def fit_student_t(draws: FloatArray) -> StudentT:
    """Fit location, scale matrix and degrees of freedom (1 to 200) by maximum likelihood: EM, then one search a step.

    References
    ----------
    Liu & Rubin (1995), "ML estimation of the t distribution using EM and its extensions", Statistica Sinica 5, 19-39.
    """
    n, d = draws.shape
    location = np.median(draws, axis=0)
    spread = np.median(np.abs(draws - location), axis=0)
    weights = 1.0 / (1.0 + (((draws - location) / np.where(spread > 0.0, spread, 1.0)) ** 2).sum(axis=1) / d)
    degrees, factor = 5.0, np.eye(d)
    for _ in range(EM_STEPS):
        location = weights @ draws / weights.sum()
        centred = draws - location
        scale = (weights[:, None] * centred).T @ centred / n
        try:
            factor = cholesky(scale, lower=True)
        except LinAlgError:
            raise InvalidArgumentError(
                f"draws must span {d} dimensions, but their scale matrix is singular. Leave out coordinates that are "
                "constant or functions of others."
            ) from None
        distance = _distance(draws, location, factor)
        degrees = _degrees(distance, d)
        weights = (degrees + d) / (degrees + distance)
    return StudentT(location, factor, degrees)


def _degrees(distance: FloatArray, d: int) -> float:
    """Return the degrees of freedom that maximise the likelihood given location and scale."""

    def cost(log_degrees: float) -> float:
        nu = np.exp(log_degrees)
        constant = gammaln((nu + d) / 2.0) - gammaln(nu / 2.0) - d / 2.0 * np.log(nu)
        return float((nu + d) / 2.0 * np.log1p(distance / nu).mean() - constant)

    found = minimize_scalar(cost, bounds=tuple(np.log(DEGREES)), method="bounded", options={"xatol": 1e-2})
    return float(np.exp(found.x))


def _distance(points: FloatArray, location: FloatArray, factor: FloatArray) -> FloatArray:
    """Return squared Mahalanobis distances, (n,)."""
    solved = solve_triangular(factor, (points - location).T, lower=True)
    return np.asarray((solved**2).sum(axis=0), dtype=np.float64)


def _relative_variance(values: FloatArray) -> float:
    """Return variance / mean^2."""
    return float(values.var(ddof=1) / values.mean() ** 2)
