"""Fit of a `bread.paths.nested.NestedReference`: Laplace's method at a grid of values of one coordinate."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Posterior
from bread.fitting.conditional.one_driver_marginal import Laws, laws_like
from bread.fitting.gaussian.families import INFLATION
from bread.fitting.gaussian.laplace import Laplace
from bread.fitting.gaussian.modes import CountedDensity
from bread.paths.mixture import Component, MixtureReference
from bread.paths.nested import NestedReference

LARGEST_DIM = 150  # coordinates: every knot has a Hessian of the others
DEPTH = 20.0  # nats below the largest marginal density to which knots go: beyond them a law is a guess
HEIGHT = 9.0  # nats below it within which there must be a few
END = 6.0  # nats below it that both ends must be: what is beyond them has some thousandths of the mass
MOST_KNOTS = 14  # to each side of the first
STEP = 0.75  # between knots near the start, in standard deviations of the driver
GROWTH = 1.15  # of the steps away from there: the marginal density of a log scale may fall slowly
FEWEST_KNOTS = 6  # within `HEIGHT` of the top
MOST_WALKS = 3  # with smaller or larger steps, until there are enough knots
STEEP, MOST_INSERTED = 3.0, 8  # nats between knots where another is put between them; so many at most
JUMP = 0.1  # of the first step, within which so steep a fall is a jump
MARGINAL_POINTS = 1000  # of a grid, at which the marginal density of the driver is taken
LARGEST_MIXTURE = 4  # normal laws like that density
FEWEST_DRAWS, FAR = 25, 10.0  # draws that show a driver; where the tails of a vague prior are cut, in spreads
LEAST_SIGNAL = 0.02  # mean squared correlation below which no coordinate drives the widths of others


@dataclass(frozen=True)
class Knot:
    """The law of the other coordinates at one value of the driver: their mode, and minus the Hessian there."""

    u: float
    mode: FloatArray
    precision: FloatArray
    log_marginal: float


def middle_and_spread(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the median of each coordinate and half the distance of two quantiles: one sd of a normal law."""
    low, middle, high = np.quantile(draws, [0.16, 0.5, 0.84], axis=0)
    with np.errstate(over="ignore"):
        return middle, np.asarray(0.5 * (high - low))


def rank_drivers(draws: FloatArray, transformed: NDArray[np.bool_]) -> list[int]:
    """Return the coordinates that may drive the widths of others, the likeliest first.

    The score of a coordinate is the mean squared correlation between it and the log squares of what is left of the
    others after a linear regression on it. Coordinates that may be the logarithm of a scale are all candidates,
    another one only if it has the highest score and the score is no noise.
    """
    n, dim = draws.shape
    if not 2 <= dim <= LARGEST_DIM or n < FEWEST_DRAWS:
        return []
    centre, spread = middle_and_spread(draws)
    standard = np.clip((draws - centre) / np.where(spread > 0.0, spread, 1.0), -FAR, FAR)
    standard -= standard.mean(axis=0)
    standard /= np.maximum(standard.std(axis=0), 1e-12)
    correlation = standard.T @ standard / n
    scores = np.zeros(dim)
    for k in range(dim):
        residual = np.delete(standard - standard[:, [k]] * correlation[k], k, axis=1)
        level = np.log(np.maximum(residual**2, 1e-12))
        level -= level.mean(axis=0)
        scale = np.maximum(level.std(axis=0), 1e-12)
        scores[k] = ((standard[:, k] @ level / (n * scale)) ** 2).mean()
    best = int(np.argmax(scores))
    return [int(k) for k in np.argsort(-scores) if transformed[k] or (k == best and scores[k] > LEAST_SIGNAL)]


def _knot(laplace: Laplace, u: float, start: FloatArray) -> Knot | None:
    """Return the law at one value of the driver; None where it has no maximum."""
    found = laplace.at(np.array([u]), start)
    return None if found is None else Knot(u, *found)


def fit_nested(
    posterior: Posterior, driver: int, start: FloatArray, step: float, like: MixtureReference | None = None
) -> tuple[NestedReference | None, int]:
    """Walk up and down the driver from a state, and fit; None where the density of the others has no maximum.

    Parameters
    ----------
    posterior : Posterior
    driver : int
    start : ndarray, shape (dim,)
    step : float
        Between knots near the start; smaller where that leaves too few, larger where it does not reach far enough.
    like : MixtureReference, optional
        The law of the driver on other data.

    Returns
    -------
    reference : NestedReference or None
    n_gradients : int
    """
    if not 2 <= len(start) <= LARGEST_DIM:
        return None, 0
    target = CountedDensity(posterior, len(start))
    laplace = Laplace(target, [driver], len(start))
    u, others = float(start[driver]), np.delete(start, driver)
    for _ in range(MOST_WALKS):
        knots = _walk(laplace, u, others, step)
        if not knots:
            break
        top = max(knot.log_marginal for knot in knots)
        is_fine = sum(knot.log_marginal > top - HEIGHT for knot in knots) >= FEWEST_KNOTS
        # Of a walk that ends while the density is high, the law would be a narrow one, which its own draws cannot tell.
        is_whole = max(knots[0].log_marginal, knots[-1].log_marginal) < top - END
        if is_fine and is_whole:
            refined = _refined(laplace, knots, step)
            return law_through(refined, driver, like), target.n_gradients
        best = max(knots, key=lambda knot: knot.log_marginal)
        u, others, step = best.u, best.mode, 3.0 * step if is_fine else step / 3.0
    return None, target.n_gradients


def _walk(laplace: Laplace, u: float, others: FloatArray, step: float) -> list[Knot]:
    """Return knots in both directions from u, in order, until the marginal density has fallen by `DEPTH`."""
    first = _knot(laplace, u, others)
    if first is None:
        return []
    knots, top = [first], first.log_marginal
    for side in (1.0, -1.0):
        here, previous, width = first, None, step
        for _ in range(MOST_KNOTS):
            ahead = here.mode if previous is None else here.mode + GROWTH * (here.mode - previous.mode)
            found = _knot(laplace, here.u + side * width, ahead)
            if found is None:
                break
            knots.append(found)
            top = max(top, found.log_marginal)
            if found.log_marginal < top - DEPTH:
                break
            here, previous, width = found, here, GROWTH * width
    return sorted(knots, key=lambda knot: knot.u)


def _refined(laplace: Laplace, knots: list[Knot], step: float) -> list[Knot] | None:
    """Return the knots with more between those where the marginal density matters and falls steeply.

    Where it jumps, since the others have two modes there, the side of its peak is kept; None where the other side
    matters too.
    """
    for _ in range(MOST_INSERTED):
        top = max(knot.log_marginal for knot in knots)
        steep = [
            (abs(right.log_marginal - left.log_marginal), index + 1)
            for index, (left, right) in enumerate(itertools.pairwise(knots))
            if max(left.log_marginal, right.log_marginal) > top - HEIGHT
        ]
        fall, index = max(steep)
        if fall < STEEP:
            break
        left, right = knots[index - 1], knots[index]
        if right.u - left.u < JUMP * step:
            sides = sorted((knots[:index], knots[index:]), key=lambda side: max(knot.log_marginal for knot in side))
            if max(knot.log_marginal for knot in sides[0]) > top - HEIGHT or len(sides[1]) < FEWEST_KNOTS:
                return None
            knots = sides[1]
            continue
        found = _knot(laplace, 0.5 * (left.u + right.u), 0.5 * (left.mode + right.mode))
        if found is None:
            break
        knots = [*knots[:index], found, *knots[index:]]
    return knots


def law_through(knots: list[Knot] | None, driver: int, like: MixtureReference | None = None) -> NestedReference | None:
    """Return the law through the knots; None where their precisions are too unlike for floating point."""
    if knots is None:
        return None
    from scipy.interpolate import CubicSpline
    from scipy.linalg import eigh

    u = np.array([knot.u for knot in knots])
    log_marginal = np.array([knot.log_marginal for knot in knots])
    log_marginal = np.maximum(log_marginal - log_marginal.max(), -DEPTH)  # a fall of hundreds would bend the spline
    fine = np.linspace(u[0], u[-1], MARGINAL_POINTS)
    log_density = np.minimum(CubicSpline(u, log_marginal)(fine), 1.0)  # a spline may swing above its knots
    cumulative = np.cumsum(np.exp(log_density))
    cumulative /= cumulative[-1]
    marginal = _marginal(fine, log_density, like)
    low, high = (int(np.argmin(np.abs(u - fine[np.searchsorted(cumulative, q)]))) for q in (0.1, 0.9))
    if low == high:
        low, high = (low - 1, high) if low > 0 else (low, high + 1)
    centre = knots[(low + high) // 2].mode
    try:
        _, vectors = eigh(knots[high].precision, knots[low].precision)
    except np.linalg.LinAlgError:
        return None
    matrix = vectors.T @ knots[low].precision  # the inverse of vectors: both precisions become diagonal
    values = np.empty((len(knots), 2, len(centre)))
    for row, knot in zip(values, knots, strict=True):
        row[0] = matrix @ (knot.mode - centre)
        variance = INFLATION * np.diag(matrix @ np.linalg.solve(knot.precision, matrix.T))
        if not (variance > 0.0).all():
            return None
        row[1] = 0.5 * np.log(variance)
    slopes = np.asarray(CubicSpline(u, values)(u, 1))
    return NestedReference(driver, marginal, centre, matrix, u, values, slopes)


def _marginal(at: FloatArray, log_density: FloatArray, like: MixtureReference | None) -> MixtureReference:
    laws = laws_like(at, log_density, LARGEST_MIXTURE, None if like is None else _laws(like))
    scales = np.sqrt(INFLATION) * laws.scales
    components = tuple(Component(np.array([mean]), np.array([s])) for mean, s in zip(laws.means, scales, strict=True))
    return MixtureReference(components, laws.weights)


def _laws(mixture: MixtureReference) -> Laws:
    """Return the laws of a marginal density, as they were before they were made wider."""
    means, scales = (np.array([getattr(one, name)[0] for one in mixture.components]) for name in ("mean", "scale"))
    return Laws(mixture.weights, means, scales / np.sqrt(INFLATION))
