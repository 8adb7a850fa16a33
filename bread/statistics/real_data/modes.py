"""Does a posterior have a mode that draws miss? Evidence of a region against the share of the draws in it.

Evidences of whole modes cannot be compared: importance sampling at the mode of a funnel reaches into the mass that the
draws do hold, or misses most of it, and either way the comparison rings for posteriors without a second mode. The rule
here compares the mass of a *region* with the share of the draws in that same region. It holds for any region, so the
centre need not be a maximum: a poor one costs power and rings no false alarm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, fdtri, gammaln, logsumexp

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray

DEGREES = 5.0  # of the Student t that proposes
INSIDE = 0.95  # probability of the region under the proposal
PROPOSED = 4000  # draws that weigh a region
FEWEST_EFFECTIVE = 100.0  # below, a log evidence may be wrong by
DOUBT = 3.0  # nats
LEAST_MASS = 0.1  # of a mode that is worth an alarm
LIMIT_LEVEL = 0.999  # of the upper limit of the share of the draws


@dataclass(frozen=True)
class Proposal:
    """A multivariate Student t around a centre, and the region inside its 95% radius.

    Attributes
    ----------
    centre : ndarray, shape (dim,)
    factor : ndarray, shape (dim, dim)
        ``factor factor'`` is the scale matrix.
    """

    centre: FloatArray
    factor: FloatArray

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.centre)

    @property
    def radius(self) -> float:
        """Radius of the region, in units of the scale matrix."""
        return float(np.sqrt(self.dim * fdtri(self.dim, DEGREES, INSIDE)))

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` draws, shape (n, dim)."""
        z = rng.standard_normal((n, self.dim)) / np.sqrt(rng.chisquare(DEGREES, (n, 1)) / DEGREES)
        return np.asarray(self.centre + z @ self.factor.T)

    def distance(self, states: FloatArray) -> FloatArray:
        """Return distances from the centre in units of the scale matrix, shape (n,)."""
        return np.asarray(np.linalg.norm(np.linalg.solve(self.factor, (states - self.centre).T), axis=0))

    def holds(self, states: FloatArray) -> NDArray[np.bool_]:
        """Return which states lie in the region, shape (n,)."""
        return np.asarray(self.distance(states) <= self.radius)

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the log density (nats), shape (n,)."""
        d, square = self.dim, self.distance(states) ** 2
        constant = gammaln((DEGREES + d) / 2) - gammaln(DEGREES / 2) - 0.5 * d * np.log(DEGREES * np.pi)
        constant -= np.linalg.slogdet(self.factor)[1]
        return np.asarray(constant - 0.5 * (DEGREES + d) * np.log1p(square / DEGREES))


def mode_proposal(centre: ArrayLike, precision: ArrayLike, prior_scale: ArrayLike) -> Proposal:
    """Return the proposal at a mode: the inverse Hessian, nowhere wider than the prior.

    Parameters
    ----------
    centre : array_like, shape (dim,)
    precision : array_like, shape (dim, dim)
        Minus the Hessian of the log density there; it may be indefinite.
    prior_scale : array_like, shape (dim,)
        About the standard deviation of each coordinate under the prior.

    Returns
    -------
    Proposal
        Eigenvalues of the precision, in units of the prior's scales, are at least 1.

    Raises
    ------
    InvalidArgumentError
        The precision is not finite, or a scale is not positive.
    """
    scale = np.asarray(prior_scale, dtype=np.float64)
    hessian = np.asarray(precision, dtype=np.float64)
    if not (np.isfinite(hessian).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise InvalidArgumentError(
            f"a mode needs a finite precision and positive finite prior scales, but got {hessian} and {scale}."
        )
    values, vectors = np.linalg.eigh(scale[:, None] * hessian * scale)
    return Proposal(np.asarray(centre, dtype=np.float64), scale[:, None] * vectors / np.sqrt(np.maximum(values, 1.0)))


def bulk_proposal(draws: ArrayLike) -> Proposal:
    """Return the proposal fitted to draws: their mean and covariance, shrunk to its diagonal where draws are few.

    Parameters
    ----------
    draws : array_like, shape (n, dim)
        At least two.
    """
    x = np.asarray(draws, dtype=np.float64)
    n, dim = x.shape
    deviation = x.std(axis=0, ddof=1)
    deviation = np.where(deviation > 0, deviation, 1e-8 * (1.0 + np.abs(x[0])))
    z = (x - x.mean(axis=0)) / deviation
    off = n / (n + dim) if n > 1 else 0.0
    correlation = off * (z.T @ z) / (n - 1) + (1.0 - off) * np.eye(dim)
    return Proposal(x.mean(axis=0), deviation[:, None] * np.linalg.cholesky(correlation))


@dataclass(frozen=True)
class RegionEvidence:
    """The log evidence of a region, by importance sampling.

    Attributes
    ----------
    value, standard_error : float
        Nats; -inf (and an error of infinity) where no proposed draw in the region has a positive density.
    n_effective : float
        Effective number of the proposed draws that fell into the region.
    """

    value: float
    standard_error: float
    n_effective: float

    @property
    def doubt(self) -> float:
        """Nats by which the value may be wrong because too few draws carry it."""
        return DOUBT if self.n_effective < FEWEST_EFFECTIVE else 0.0


def region_evidence(
    proposal: Proposal, states: ArrayLike, log_density: ArrayLike, above: float = -np.inf
) -> RegionEvidence:
    """Return the log evidence of the proposal's region, or of the part of it where the density exceeds a level.

    Parameters
    ----------
    proposal : Proposal
    states : array_like, shape (n, dim)
        Draws from the proposal, all of them.
    log_density : array_like, shape (n,)
        Unnormalised log density (nats) there. NaN counts as zero density.
    above : float
        Level of the log density.
    """
    x, values = np.asarray(states, dtype=np.float64), np.asarray(log_density, dtype=np.float64)
    values = np.where(np.isnan(values), -np.inf, values)
    inside = proposal.holds(x) & (values > above)
    if not inside.any() or not np.isfinite(values[inside]).any():
        return RegionEvidence(-np.inf, np.inf, 0.0)
    log_weights = values[inside] - proposal.log_density(x[inside])
    total, square, n = float(logsumexp(log_weights)), float(logsumexp(2 * log_weights)), len(x)
    relative = max(np.exp(square - 2 * total) - 1.0 / n, 0.0)  # variance of the mean over its square
    return RegionEvidence(total - np.log(n), float(np.sqrt(relative)), float(np.exp(2 * total - square)))


def bulk_evidence(proposal: Proposal, states: ArrayLike, log_density: ArrayLike, draws: ArrayLike) -> float:
    """Return the log evidence (nats) of what the draws hold: that of a region over their share in it.

    -inf where no draw lies in the region.

    Parameters
    ----------
    proposal : Proposal
        From `bulk_proposal`.
    states, log_density : array_like, shapes (n, dim) and (n,)
        Draws from the proposal, with the log density there.
    draws : array_like, shape (n_draws, dim)
        The draws.
    """
    share = float(proposal.holds(np.asarray(draws, dtype=np.float64)).mean())
    if share == 0.0:
        return -np.inf
    return region_evidence(proposal, states, log_density).value - float(np.log(share))


@dataclass(frozen=True)
class Share:
    """How many of some draws lie in a region.

    Attributes
    ----------
    estimate, lower, upper : float
        The share with its limits, each one-sided at 99.9% (Clopper & Pearson).
    """

    estimate: float
    lower: float
    upper: float


def share_of(inside: ArrayLike, n_effective: float | None = None) -> Share:
    """Return the share of draws in a region.

    Parameters
    ----------
    inside : array_like of bool, shape (n,)
    n_effective : float, optional
        Effective number of the draws, where they are correlated: the limits are then those of as many.
    """
    flags = np.asarray(inside, dtype=np.bool_)
    n = float(len(flags)) if n_effective is None else min(float(n_effective), float(len(flags)))
    estimate = float(flags.mean())
    count, error = estimate * n, 1.0 - LIMIT_LEVEL
    lower = 0.0 if count <= 0 else float(betaincinv(count, n - count + 1, error))
    upper = 1.0 if count >= n else float(betaincinv(count + 1, n - count, LIMIT_LEVEL))
    return Share(estimate, lower, upper)


@dataclass(frozen=True)
class WeighedMode:
    """A region of the posterior, its mass, and the draws in it.

    Attributes
    ----------
    evidence : RegionEvidence
        Of the region that decides.
    is_peak : bool
        That region is where the density exceeds that of every draw, rather than all of the mode's.
    mass : float
        The region's share of the posterior, pi, less three nats where its evidence is in doubt.
    mass_lower : float
        The same with the evidence two standard errors lower.
    annealed : Share
        Of the draws that are under test.
    missed : bool
        The mass is above 0.1, and the upper limit of the draws' share is below half of it.
    """

    evidence: RegionEvidence
    is_peak: bool
    mass: float
    mass_lower: float
    annealed: Share
    missed: bool


def weigh_mode(
    proposal: Proposal,
    states: ArrayLike,
    log_density: ArrayLike,
    draws: ArrayLike,
    draws_log_density: ArrayLike,
    log_denominator: float,
) -> WeighedMode:
    """Return whether the draws miss a mode.

    Two regions are looked at: the one inside the proposal's 95% radius, and the part of it where the density exceeds
    that of every draw (a narrow mode inside a wide one). The one that is missed decides, the first where neither is.

    Parameters
    ----------
    proposal : Proposal
        At the mode.
    states, log_density : array_like, shapes (n, dim) and (n,)
        Draws from it, with the unnormalised log density of the posterior (nats).
    draws, draws_log_density : array_like, shapes (n_draws, dim) and (n_draws,)
        Independent draws that should be the posterior's, with its log density.
    log_denominator : float
        Log evidence (nats) of everything else: the largest that is known of a lower bound and of `bulk_evidence`. It
        may count the region itself; the mass is then too small, which rings no alarm.
    """
    x = np.asarray(draws, dtype=np.float64)
    level = float(np.max(draws_log_density))
    inside = proposal.holds(x)
    found = []
    for is_peak, above, flags in ((False, -np.inf, inside), (True, level, np.zeros(len(x), dtype=bool))):
        evidence = region_evidence(proposal, states, log_density, above)
        value = evidence.value - evidence.doubt
        mass = _mass(value, log_denominator)
        lower = _mass(value - 2 * evidence.standard_error, log_denominator)
        share = share_of(flags)
        missed = mass > LEAST_MASS and share.upper < mass / 2
        found.append(WeighedMode(evidence, is_peak, mass, lower, share, missed))
    return next((one for one in found if one.missed), found[0])


def _mass(log_evidence: float, log_denominator: float) -> float:
    """Return exp(a) / (exp(a) + exp(b)); 0 where a is -inf."""
    if not log_evidence > -np.inf:
        return 0.0
    return float(expit(log_evidence - log_denominator))
