"""Whether a density is one of a factor model, found from gradients alone: `bread.paths.factors.Couplings`.

Where rotations leave a density alone, and the columns of what they rotate fall into two sides of which no two columns
have to do with each other, each column can only couple to one of the other side by their inner product. If the density
is quadratic in one side, three numbers a pair say all. They are read from gradients with one column at a time away
from zero; how they depend on scales shows in their values elsewhere; and what was read is compared with the density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.exact_given_scales.precision_structure import OFF_POWER, POWERS, STEP, ZERO
from bread.fitting.gaussian.modes import CountedDensity
from bread.fitting.search.work import FitWork
from bread.paths.factors import Couplings, Powers

MOST_REST = 12  # coordinates that the couplings may depend on
CHECKS = 3  # states at which what was read is compared with the density
AGREES = 1e-6  # of the sizes of what is added, by which it may be off
ROUNDING = 1e-9  # relative difference of numbers that are the same
SEED = 12  # of what is always the same


class _Probe:
    """Gradients of a log density with some columns of factors set, all others at zero."""

    def __init__(self, work: FitWork, places: NDArray[np.int64], rest: NDArray[np.int64]) -> None:
        self._work, self._places, self._rest = work, places, rest
        self.target = CountedDensity(work.posterior, work.dim)

    def along(self, rest: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the derivatives by the first coordinate of each column, shape (P,), where that is ``columns``."""
        state = np.zeros(self._work.dim)
        state[self._rest] = rest
        state[self._places[0]] = columns
        return np.asarray(-self.target(state)[1][self._places[0]])

    def own(self, rest: FloatArray, size: float, side: NDArray[np.int64]) -> FloatArray:
        """Return how fast the derivative of each column of one side falls, while the other side is at zero."""
        columns = np.zeros(self._places.shape[1])
        columns[side] = size
        return -self.along(rest, columns)[side] / size

    def slopes(self, rest: FloatArray, size: float, inner: NDArray[np.int64], outer: NDArray[np.int64]) -> FloatArray:
        """Return the derivatives by inner columns at zero, in units of one outer column alone, shape (m, n)."""
        alone = size * np.eye(self._places.shape[1])[outer]
        return np.array([self.along(rest, columns)[inner] / size for columns in alone]).T


def find_couplings(
    work: FitWork, places: NDArray[np.int64], state: FloatArray, like: Couplings | None = None
) -> Couplings | None:
    """Return how two sides of factors are coupled; None where the density is not one of a factor model.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    places : ndarray of int, shape (K, P)
        A matrix whose columns may be rotated.
    state : ndarray, shape (dim,)
        Where to look.
    like : Couplings, optional
        Of other data, on which only the linear part is looked for.
    """
    rest = np.setdiff1d(np.arange(work.dim), places)
    if len(rest) > MOST_REST or places.shape[1] < 2:
        return None
    probe = _Probe(work, places, rest)
    at = state[rest]
    size = float(np.sqrt(np.mean(state[places] ** 2))) or 1.0
    found = None
    if like is not None:
        slopes = _linear_like(probe, like, at, size, places)
        found = None if slopes is None else replace(like, slopes=slopes)
    elif (sides := _sides(probe.target, places, state)) is not None:
        found = _read(probe, places, sides, at, size)
    if found is not None and not _agrees(work, probe.target, found, state):
        found = None
    work.n_gradients += probe.target.n_gradients
    return found


def _sides(target: CountedDensity, places: NDArray[np.int64], state: FloatArray) -> NDArray[np.bool_] | None:
    """Return which columns are of the larger side, shape (P,); None where they do not fall into two sides."""
    n = places.shape[1]
    rng = np.random.default_rng(SEED)
    middle = target(state)[1]
    meets = np.zeros((n, n), dtype=bool)
    for column in range(n):
        moved = state.copy()
        moved[places[:, column]] += rng.uniform(0.5, 1.5, len(places))
        after = target(moved)[1]
        sizes = np.abs(after) + np.abs(middle)
        meets[column] = (np.abs(after - middle)[places] > ZERO * (sizes[places] + 1e-6 * sizes.max())).any(axis=0)
    meets = (meets | meets.T) & ~np.eye(n, dtype=bool)
    side = np.full(n, -1)
    is_inner = np.zeros(n, dtype=bool)
    for first in range(n):
        if side[first] >= 0:
            continue
        side[first], queue = 0, [first]
        for column in queue:
            neighbours = np.flatnonzero(meets[column])
            if (side[neighbours] == side[column]).any():
                return None
            queue += [int(other) for other in neighbours if side[other] < 0]
            side[neighbours] = 1 - side[column]
        part = np.array(queue)
        larger = int(2 * (side[part] == 1).sum() > len(part))
        is_inner[part] = side[part] == larger
    return is_inner if 0 < is_inner.sum() < n else None


def _read(
    probe: _Probe, places: NDArray[np.int64], is_inner: NDArray[np.bool_], at: FloatArray, size: float
) -> Couplings | None:
    """Return the couplings, each a multiple of one exponential."""
    inner, outer = np.flatnonzero(is_inner), np.flatnonzero(~is_inner)
    n, m = len(outer), len(inner)

    def numbers(rest: FloatArray) -> FloatArray:
        columns = np.zeros(places.shape[1])
        columns[inner] = size
        own = probe.own(rest, size, inner)
        slopes, curvature = probe.slopes(rest, size, inner, outer), np.empty((m, n))
        for index, column in enumerate(outer):
            both = columns.copy()
            both[column] = size
            together = probe.along(rest, both)[inner] / size
            curvature[:, index] = (slopes[:, index] - own - together) / size**2
        return np.concatenate([own, curvature.ravel(), slopes.ravel()])

    middle = numbers(at)
    scale = np.repeat([np.abs(part).max() for part in np.split(middle, [m, m + m * n])], [m, m * n, m * n])
    exponents = np.zeros((len(middle), len(at)))
    is_zero = ~(np.abs(middle) > ZERO * scale)
    for index in range(len(at)):
        step = np.zeros(len(at))
        step[index] = STEP
        ends = numbers(at + step), numbers(at - step)
        powers = _power(middle, ends, is_zero)
        if powers is None:
            return None
        exponents[:, index] = powers
    if not (np.isfinite(middle).all() and (middle[:m] > 0.0).all()):
        return None
    values = np.where(is_zero, 0.0, middle * np.exp(-exponents @ at))
    own, curvature, slopes = (
        _powers(exponents[part], values[part]) for part in (slice(m), slice(m, m + m * n), slice(m + m * n, None))
    )
    own, curvature = (Powers(part.exponents, _alike(part.values)) for part in (own, curvature))
    return Couplings(
        places.size + len(at), places[:, inner], places[:, outer], own,
        Powers(curvature.exponents, curvature.values.reshape(-1, m, n)),
        Powers(slopes.exponents, slopes.values.reshape(-1, m, n)),
        _units(lambda rest: probe.own(rest, size, outer), at),
    )  # fmt: skip


def _units(own: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray | None:
    """Return the logarithm of the prior width of outer factors as a linear function of the rest; None if it is none."""
    middle, exponents = own(at), np.zeros(len(at))
    if not (np.isfinite(middle).all() and (middle > 0.0).all()):
        return None
    for index, step in enumerate(STEP * np.eye(len(at))):
        powers = _power(middle, (own(at + step), own(at - step)), np.zeros(len(middle), dtype=bool))
        if powers is None or np.ptp(powers) > 0.0:
            return None
        exponents[index] = powers[0]
    return np.asarray(-0.5 * exponents)


def _power(middle: FloatArray, ends: tuple[FloatArray, FloatArray], is_zero: NDArray[np.bool_]) -> FloatArray | None:
    """Return the exponent along one coordinate of each number, by its values ahead and behind; None if not so."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.log(ends[0] / middle) / STEP, np.log(middle / ends[1]) / STEP
    result = np.round(rates[0] * POWERS) / POWERS
    is_so = (np.abs(rates[0] - result) < OFF_POWER) & (np.abs(rates[1] - result) < OFF_POWER)
    return np.where(is_zero, 0.0, result) if (is_so | is_zero).all() else None


def _powers(exponents: FloatArray, values: FloatArray) -> Powers:
    """Return numbers that are each a multiple of one exponential, by exponent."""
    is_used = values != 0.0
    unique = np.unique(exponents[is_used], axis=0) if is_used.any() else exponents[:1]
    which = (exponents[None] == unique[:, None]).all(axis=2) & is_used
    return Powers(unique, np.where(which, values, 0.0))


def _alike(values: FloatArray) -> FloatArray:
    """Return the numbers, of which those that rounding alone tells apart are the same.

    Precision matrices of factors are then the same, as where no observation is missing, and need only one factor.
    """
    unique, where = np.unique(values, return_inverse=True)
    for index in range(1, len(unique)):
        if abs(unique[index] - unique[index - 1]) <= ROUNDING * abs(unique[index]):
            unique[index] = unique[index - 1]
    return np.asarray(unique[where].reshape(values.shape))


def _linear_like(
    probe: _Probe, like: Couplings, at: FloatArray, size: float, places: NDArray[np.int64]
) -> Powers | None:
    """Return the linear couplings on other data, which depend on the rest as they do on those of ``like``."""
    exponents = like.slopes.exponents
    if len(exponents) != 1:
        return None
    inner, outer = (np.flatnonzero(np.isin(places[0], side[0])) for side in (like.inner, like.outer))
    values = probe.slopes(at, size, inner, outer) * np.exp(-exponents[0] @ at)
    return Powers(exponents, np.where(np.abs(values) > ZERO * np.abs(values).max(), values, 0.0)[None])


def _agrees(work: FitWork, target: CountedDensity, found: Couplings, state: FloatArray) -> bool:
    """Return whether the density of u at other states is what the couplings say."""
    rng = np.random.default_rng(SEED)
    spread = float(np.sqrt(np.mean(state[found.places] ** 2))) or 1.0
    for _ in range(CHECKS):
        at = state.copy()
        at[found.rest] += STEP * rng.uniform(-1.0, 1.0, len(found.rest))
        at[found.inner] = spread * rng.standard_normal(found.inner.shape)
        at[found.outer] = spread * rng.standard_normal(found.outer.shape)
        origin = at.copy()
        origin[found.inner] = 0.0
        u = at[found.inner]
        form = found.form(at[found.drivers])
        linear, square = (form.linear * u).sum(), 0.5 * np.einsum("ki,kli,li->", u, form.matrix, u)
        values = -target(at)[0], -target(origin)[0]
        size = np.abs(values).sum() + np.abs(form.linear * u).sum() + abs(square)
        if not abs(values[0] - values[1] - (linear - square)) <= AGREES * size:
            return False
    return True
