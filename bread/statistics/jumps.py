"""Where a log density jumps along a segment: Stein's identity, and derivatives under an integral, fail there.

A jump is what halving does not make smaller. Of a smooth function the value at the middle differs from the mean of
those at the ends by a quarter as much in each half; at a jump, in one half, by half of the jump for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bread.statistics.bounds import FloatArray

SMALLEST = 0.05  # nats: a test of a thousand draws notices larger ones alone
GRID = 8  # parts of a segment that are looked at first
HALVINGS = 20  # of the part that bends most
ALARM = 0.01  # of a test: from here on jumps are looked for
MOST_SUSPECTS, MOST_SEGMENTS, SEGMENTS = 30, 600, 100  # coordinates, segments of all of them, of one
LENGTHS = np.array([1.0, 0.4, 0.15, 0.05])  # of segments, over the distance of two draws
NEGLIGIBLE = 12.0  # nats below the start of the segment, where a density may end without being missed


def jumping_coordinates(
    states: FloatArray, suspects: NDArray[np.bool_], log_density: Callable[[FloatArray], FloatArray]
) -> NDArray[np.int64]:
    """Return the coordinates among ``suspects`` along which a log density jumps between draws.

    Parameters
    ----------
    states : ndarray, shape (n, d)
        Exact draws.
    suspects : ndarray of bool, shape (d,)
        Those that fail a test; the first 30 are looked at.
    log_density : callable
        Takes states near the first m draws, shape (m, d), and returns values in nats, shape (m,).
    """
    chosen = np.flatnonzero(suspects)[:MOST_SUSPECTS]
    n = min(SEGMENTS, max(1, MOST_SEGMENTS // max(1, len(chosen))), len(states))
    start = states[:n]
    step = (np.roll(states, 1, axis=0)[:n] - start) * lengths(n)[:, None]
    found = []
    for coordinate in chosen:

        def along(place: FloatArray, coordinate: int = coordinate) -> FloatArray:
            moved = start.copy()
            moved[:, coordinate] += place * step[:, coordinate]
            return log_density(moved)

        if jumps_along(along, n).any():
            found.append(coordinate)
    return np.array(found, dtype=np.int64)


def failing(p_value: float, p_values: FloatArray, pooled: FloatArray, groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which coordinates fail a score test, or are of a group that does, shape (d,).

    Parameters
    ----------
    p_value : float
        Of the whole test; above `ALARM` nothing fails.
    p_values, pooled : ndarray, shapes (d, f) and (g, 2)
        Not adjusted; NaN where not tested.
    groups : ndarray of int, shape (d,)
        The group of each coordinate.
    """
    if not p_value <= ALARM:
        return np.zeros(len(p_values), dtype=bool)
    level = ALARM / max(1, int(np.isfinite(p_values).sum() + np.isfinite(pooled).sum()))
    fails = np.asarray((np.nan_to_num(p_values, nan=1.0) <= level).any(axis=1))
    if len(pooled):
        fails |= np.asarray((np.nan_to_num(pooled, nan=1.0) <= level).any(axis=1))[groups]
    return fails


def lengths(n: int) -> FloatArray:
    """Return a share of the distance of two draws for each of ``n`` segments: jumps on slopes show on short ones."""
    return LENGTHS[np.arange(n) // 4 % len(LENGTHS)]


def jumps_along(log_density: Callable[[FloatArray], FloatArray], n: int) -> NDArray[np.bool_]:
    """Return on which of ``n`` segments a log density jumps by `SMALLEST` or more, shape (n,).

    A bound, beyond which the density is zero, is a jump unless the density has all but vanished there. A jump may be
    missed on a segment along which the density bends much more: take segments of several lengths.

    Parameters
    ----------
    log_density : callable
        Takes a place on each segment, shape (n,), from 0 (the start) to 1, and returns values in nats, shape (n,). It
        is called 49 times. NaN counts as minus infinity.
    n : int
    """

    def values_at(place: FloatArray) -> FloatArray:
        values = np.asarray(log_density(place), dtype=np.float64)
        return np.where(np.isnan(values), -np.inf, values)

    rows = np.arange(n)
    places = np.linspace(0.0, 1.0, GRID + 1)
    values = np.column_stack([values_at(np.full(n, place)) for place in places])
    start = values[:, 0]
    best = 1 + np.argmax(_bend(values[:, :-2], values[:, 1:-1], values[:, 2:]), axis=1)
    place = [places[best + step] for step in (-1, 0, 1)]
    value = [values[rows, best + step] for step in (-1, 0, 1)]
    for _ in range(HALVINGS):
        low, high = (place[0] + place[1]) / 2.0, (place[1] + place[2]) / 2.0
        at_low, at_high = values_at(low), values_at(high)
        is_left = _bend(value[0], at_low, value[1]) >= _bend(value[1], at_high, value[2])
        place = [np.where(is_left, *pair) for pair in ((place[0], place[1]), (low, high), (place[1], place[2]))]
        value = [np.where(is_left, *pair) for pair in ((value[0], value[1]), (at_low, at_high), (value[1], value[2]))]
    bend = _bend(*value)
    largest = np.max(value, axis=0)
    return np.where(np.isinf(bend), largest > start - NEGLIGIBLE, 2.0 * bend >= SMALLEST)


def _bend(low: FloatArray, middle: FloatArray, high: FloatArray) -> FloatArray:
    """Return how far the middle is from the mean of the ends: infinite at a bound, 0 where all densities are zero."""
    zero = np.isinf(low).astype(int) + np.isinf(middle) + np.isinf(high)
    with np.errstate(invalid="ignore"):
        bend = np.abs(middle - (low + high) / 2.0)
    return np.where(zero == 0, bend, np.where(zero == 3, 0.0, np.inf))
