"""Where a log density jumps along a segment: Stein's identity, and derivatives under an integral, fail there.

A jump is what halving does not make smaller. Of a smooth function the value at the middle differs from the mean of
those at the ends by a quarter as much in each half; at a jump, in one half, by half of the jump for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.score import ScoreTest

SMALLEST = 0.05  # nats: a test of a thousand draws notices larger ones alone
GRID = 8  # parts of a segment that are looked at first
HALVINGS = 20  # of the part that bends most
ALARM = 0.01  # of a test: from here on jumps are looked for
MOST_SUSPECTS, MOST_SEGMENTS, SEGMENTS = 30, 600, 100  # coordinates, segments of all of them, of one
LENGTHS = np.array([1.0, 0.4, 0.15, 0.05, -1.0, -0.4])  # of segments, over the distance of two draws; outwards too
NEGLIGIBLE = 12.0  # nats below the start of the segment, where a density may end without being missed


def beside_jumps(
    test: Callable[[NDArray[np.bool_]], ScoreTest],
    tested: NDArray[np.bool_],
    states: FloatArray,
    log_density: Callable[[FloatArray], FloatArray],
    groups: NDArray[np.int64] | None = None,
) -> tuple[ScoreTest, NDArray[np.bool_]]:
    """Run a score test without the coordinates that fail it and along which the density jumps.

    Parameters
    ----------
    test : callable
        Takes which coordinates are tested, bool (d,).
    tested : ndarray of bool, shape (d,)
        Those to begin with.
    states : ndarray, shape (n, d)
        Exact draws.
    log_density : callable
        Takes states near the first m draws, shape (m, d), and returns values in nats, shape (m,).
    groups : ndarray of int, shape (d,), optional
        The groups of the test; one of all by default.

    Returns
    -------
    ScoreTest
    ndarray of bool, shape (d,)
        What was tested in the end.
    """
    while True:
        result = test(tested)
        suspects = failing(result.p_values, result.pooled_p_values, groups) & tested
        jumping = _jumping(states, suspects, log_density)
        if not jumping.any():
            return result, tested
        tested = tested & ~jumping


def failing(
    p_values: FloatArray, pooled: FloatArray | None = None, groups: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Return which rows have a p-value that is small after Bonferroni over all, or are of a group that has one.

    Parameters
    ----------
    p_values : ndarray, shape (d, f)
        Not adjusted; NaN where not tested.
    pooled : ndarray, shape (g, 2), optional
        The same of groups.
    groups : ndarray of int, shape (d,), optional
        The group of each row; the first by default.
    """
    pooled = np.empty((0, 2)) if pooled is None else pooled
    level = ALARM / max(1, int(np.isfinite(p_values).sum() + np.isfinite(pooled).sum()))
    rows, of_groups = ((np.nan_to_num(part, nan=1.0) <= level).any(axis=1) for part in (p_values, pooled))
    fails = np.asarray(rows, dtype=bool)
    if len(pooled):
        fails |= np.asarray(of_groups)[np.zeros(len(fails), dtype=np.int64) if groups is None else groups]
    return fails


def _jumping(
    states: FloatArray, suspects: NDArray[np.bool_], log_density: Callable[[FloatArray], FloatArray]
) -> NDArray[np.bool_]:
    """Return along which of the first `MOST_SUSPECTS` suspects the density jumps between draws, shape (d,)."""
    chosen = np.flatnonzero(suspects)[:MOST_SUSPECTS]
    n = min(SEGMENTS, max(1, MOST_SEGMENTS // max(1, len(chosen))), len(states))
    start = states[:n]
    step = (np.roll(states, 1, axis=0)[:n] - start) * lengths(n)[:, None]
    found = np.zeros(len(suspects), dtype=bool)
    for coordinate in chosen:

        def along(place: FloatArray, coordinate: int = coordinate) -> FloatArray:
            moved = start.copy()
            moved[:, coordinate] += place * step[:, coordinate]
            return log_density(moved)

        found[coordinate] = jumps_along(along, n).any()
    return found


def lengths(n: int) -> FloatArray:
    """Return a share of the distance of two draws for each of ``n`` segments.

    Jumps on slopes show on short ones, and jumps beyond which there are few draws on those that lead outwards.
    """
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
