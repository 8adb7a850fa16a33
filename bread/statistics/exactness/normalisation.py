"""Does a density integrate to one? Bridge sampling between its own random draws and a fitted Student t law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln
from scipy.stats import norm

from bread.errors import DensityError, InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray

DEGREES = (1.0, 200.0)  # of freedom
EM_STEPS = 30  # of the fit of the proposal
DRAWS_A_DIMENSION = 20  # in each half
LARGEST_STEP = 1e5  # nats
SMALLEST_SAMPLE = 100.0  # effective points on each side, for a normal limit


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
    p_value : float
        Of "the draws follow the density", whatever its constant: see `draws_p_value`.
    """

    log_constant: float
    standard_error: float
    n_zero: int
    p_value: float = 1.0


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

    def standardised(self, points: FloatArray) -> FloatArray:
        """Return points in coordinates of location 0 and scale matrix 1, (n, d)."""
        return _standardised(points, self.location, self.factor)

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
        (log 2 for each half-normal of a Stan program). It means nothing where ``p_value`` is small: the draws follow
        another law.

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
    return log_constants([draws], lambda points: np.asarray(log_density(points[0]))[:, None], rng)[0]


def log_constants(
    draws: Sequence[ArrayLike], log_densities: Callable[[list[FloatArray]], ArrayLike], rng: Generator
) -> list[Normalisation]:
    """Return the log integrals of independent densities that are evaluated together; see `log_constant`.

    Parameters
    ----------
    draws : sequence of array_like, each (n, d)
        Of each density, all with the same n.
    log_densities : callable
        Takes a list of points (m, d), one array a density, and returns (m, density) log densities in nats. Column i
        must depend on points i alone.
    rng : numpy.random.Generator
        For the proposals.
    """
    arrays = [np.asarray(one, dtype=np.float64) for one in draws]
    for x in arrays:
        _require_draws(x)
    laws = [fit_student_t(x[: len(x) // 2]) for x in arrays]
    own = [x[len(x) // 2 :] for x in arrays]
    proposals = [law.sample(len(x), rng) for law, x in zip(laws, own, strict=True)]
    at_draws, at_proposals = (np.asarray(log_densities(points), dtype=np.float64) for points in (own, proposals))
    shape = (len(own[0]), len(own))
    for name, values in (("draws", at_draws), ("proposals", at_proposals)):
        if values.shape != shape or np.isnan(values).any() or np.isposinf(values).any():
            raise DensityError(
                f"log_density at {name} must be {shape[0]} numbers below infinity, but got shape {values.shape} with "
                f"{int(np.isnan(values).sum())} NaN and {int(np.isposinf(values).sum())} +inf."
            )
    if np.isneginf(at_draws).any():
        raise DensityError(
            f"log_density is -inf at {int(np.isneginf(at_draws).sum())} of {at_draws.size} exact draws: draws and "
            "density do not belong together."
        )
    results = []
    for i, law in enumerate(laws):
        ratios = at_draws[:, i] - law.log_density(own[i]), at_proposals[:, i] - law.log_density(proposals[i])
        found = bridge(*ratios)
        p_value = draws_p_value(law.standardised(own[i]), law.standardised(proposals[i]), *ratios, found.log_constant)
        results.append(found._replace(p_value=p_value))
    return results


def _require_draws(x: FloatArray) -> None:
    if x.ndim != 2 or x.shape[1] == 0 or len(x) < 2 * DRAWS_A_DIMENSION * x.shape[1] or not np.isfinite(x).all():
        raise InvalidArgumentError(
            f"draws must be finite with shape (n, d), d >= 1 and n >= {2 * DRAWS_A_DIMENSION} d, but got shape "
            f"{x.shape} with {int((~np.isfinite(x)).sum())} values that are not finite."
        )


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
    share_proposal, share_draw = shares(at_draws, at_proposals, constant)
    variance = _relative_variance(share_proposal) / n + _relative_variance(share_draw) / m
    return Normalisation(constant, float(np.sqrt(variance)), n_zero)


def effective_size(at_draws: FloatArray, at_proposals: FloatArray, log_constant: float) -> float:
    """Return how many points the bridge rests on, at the end where they are fewer; see `bridge` for the arguments.

    Below `SMALLEST_SAMPLE` the two laws have too little in common for a normal limit.
    """
    return min(float(w.sum() ** 2 / (w**2).sum()) for w in shares(at_draws, at_proposals, log_constant))


def shares(at_draws: FloatArray, at_proposals: FloatArray, constant: float) -> tuple[FloatArray, FloatArray]:
    """Return q / (p + q) at the draws and p / (p + q) at the proposals: p the normalised density, q the proposal's."""
    offset = np.log(len(at_draws)) - np.log(len(at_proposals)) - constant
    return np.exp(-np.logaddexp(0.0, offset + at_draws)), np.exp(-np.logaddexp(0.0, -(offset + at_proposals)))


def draws_p_value(
    draws: FloatArray,
    proposals: FloatArray,
    at_draws: FloatArray,
    at_proposals: FloatArray,
    log_constant: float,
    *,
    unseen: float = 0.0,
) -> float:
    """Return the p-value of "the draws follow the density", from what the bridge has evaluated; no gradient is needed.

    For any function f, density p and proposal q, E_p[f q / (p + q)] = E_q[f p / (p + q)]: both are the integral of
    f p q / (p + q). The weights lie between 0 and 1, and are small where one of the two laws does not reach, so that
    the normal limit holds. As ratios to f = 1 the two sides agree whatever p integrates to.

    Parameters
    ----------
    draws, proposals : ndarray, shape (n, d) and (m, d)
        In coordinates of about unit scale, all independent.
    at_draws, at_proposals : ndarray, shape (n,) and (m,)
        Log ratios density / proposal (nats).
    log_constant : float
        What the density integrates to, about (nats).
    unseen : float
        Points of weight 1 that are added to standard errors: rare ones that none may have been seen of, where the
        p-value is to hold far below 0.001.

    Returns
    -------
    float
        Two-sided, after Bonferroni's correction over tanh of each coordinate, of its square, and products of two; 1
        where the laws have too little in common.
    """
    if effective_size(at_draws, at_proposals, log_constant) < SMALLEST_SAMPLE:
        return 1.0
    sides = []
    for points, weights in zip((draws, proposals), shares(at_draws, at_proposals, log_constant), strict=True):
        values = _functions(points)
        means = weights @ values / weights.sum()
        errors = np.sqrt(weights**2 @ (values - means) ** 2 + (2.0 * unseen) ** 2) / weights.sum()  # values: in [-1, 1]
        sides.append((means, errors))
    (left, left_error), (right, right_error) = sides
    scores = np.abs(left - right) / np.maximum(np.hypot(left_error, right_error), np.finfo(float).tiny)
    return float(min(1.0, 2.0 * norm.sf(scores.max()) * len(scores)))


def _functions(points: FloatArray) -> FloatArray:
    """Return bounded functions of standardised points, (n, function)."""
    bounded = np.tanh(points)
    first, second = np.triu_indices(points.shape[1], 1)
    squares = np.tanh(points**2 - 1.0)
    return np.concatenate([bounded, squares, bounded[:, first] * bounded[:, second]], axis=1)


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


def _standardised(points: FloatArray, location: FloatArray, factor: FloatArray) -> FloatArray:
    inverse = solve_triangular(factor, np.eye(len(location)), lower=True)  # ten times faster than solving for each
    return np.asarray((points - location) @ inverse.T, dtype=np.float64)


def _distance(points: FloatArray, location: FloatArray, factor: FloatArray) -> FloatArray:
    """Return squared Mahalanobis distances, (n,)."""
    return np.asarray((_standardised(points, location, factor) ** 2).sum(axis=1), dtype=np.float64)


def _relative_variance(values: FloatArray) -> float:
    """Return variance / mean^2."""
    return float(values.var(ddof=1) / values.mean() ** 2)
