"""Two samplers on the same data sets: paired differences and ratios of means, at equal steps or at equal cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.intervals import Interval, mean_interval

FloatArray = NDArray[np.float64]

_STEP, _STEPS = 1.3, 50  # of the search for the end of an interval: up to 500,000 times the estimate
_BISECTIONS = 22
_NAN = float("nan")
_FEWEST = 2  # values that have an interval


class AtCost(NamedTuple):
    """Values at one cost, and by how much of the way between two costs they were interpolated (0: not at all)."""

    values: FloatArray
    share: float


def difference_interval(first: ArrayLike, second: ArrayLike, level: float) -> Interval:
    """Return the mean of ``first - second`` with limits, both sides allowing for skewness.

    Parameters
    ----------
    first, second : array_like, shape (simulation,)
        Values of two samplers on the same data sets, such as V_r of `bread.statistics.bounds.certificate`.
    level : float
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        NaN limits with one data set. Negative: the first is the smaller one.

    Raises
    ------
    InvalidArgumentError
        Different numbers of values, or a value that is not finite.
    """
    a, b = _pair(first, second)
    return _both_sides(a - b, level)


def ratio_interval(first: ArrayLike, second: ArrayLike, level: float) -> Interval:
    """Return the ratio of the means of paired positive values, with limits by Fieller's method.

    A ratio c is held possible where zero lies in the interval of the mean of ``first - c second``; the limits are
    the smallest and the largest of these. Nothing is divided by a noisy mean, and the data sets' common part cancels.

    Parameters
    ----------
    first, second : array_like, shape (simulation,)
        Non-negative values of two samplers on the same data sets, such as gaps in nats.
    level : float
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        Below 1: the first is the smaller one. 0 or inf as a limit: there is none on this side. All NaN where both
        means are zero; limits NaN with one data set.

    Raises
    ------
    InvalidArgumentError
        Different numbers of values, or a value that is negative or not finite.

    References
    ----------
    Fieller (1954), "Some problems in interval estimation", JRSS B 16, 175-185.
    """
    a, b = _pair(first, second)
    if (a < 0).any() or (b < 0).any():
        raise InvalidArgumentError(
            f"ratio_interval takes values >= 0, but the smallest are {a.min()} and {b.min()}. Use difference_interval."
        )
    if not a.any() and not b.any():
        return Interval(_NAN, _NAN, _NAN)
    estimate = float(np.divide(a.mean(), b.mean())) if b.any() else np.inf
    if len(a) < _FEWEST:
        return Interval(estimate, _NAN, _NAN)

    def is_possible(ratio: float) -> bool:
        _, lower, upper = _both_sides(a - ratio * b, level)
        return lower <= 0.0 <= upper

    centre = estimate if np.isfinite(estimate) and estimate > 0 else 1.0
    lower, upper = (_edge(is_possible, centre, factor) for factor in (1.0 / _STEP, _STEP))
    return Interval(estimate, min(lower, estimate), max(float(upper), estimate))


def at_cost(values: ArrayLike, costs: ArrayLike, cost: float) -> AtCost:
    """Return values of each data set at a cost between those that were run.

    The mean is interpolated linearly in the logarithms of mean and cost: exact where the mean falls by a power of the
    cost, as B does where T is large. Each data set's value moves as its own values do to first order, so that the
    mean of what is returned is that interpolation, and its spread is that of the interpolated mean.

    Parameters
    ----------
    values : array_like, shape (n_costs, simulation)
        Non-negative.
    costs : array_like, shape (n_costs,)
        Increasing and positive.
    cost : float

    Returns
    -------
    AtCost
        NaN values where ``cost`` lies outside of ``costs``.
    """
    table, grid = np.asarray(values, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    nothing = np.full(table.shape[1], _NAN)
    if not (np.isfinite(grid).all() and (grid > 0).all() and (np.diff(grid) > 0).all() and grid[0] <= cost <= grid[-1]):
        return AtCost(nothing, _NAN)
    place = int(np.searchsorted(grid, cost))
    if grid[place] == cost:
        return AtCost(table[place], 0.0)
    share = float(np.log(cost / grid[place - 1]) / np.log(grid[place] / grid[place - 1]))
    before, after = table[place - 1], table[place]
    means = before.mean(), after.mean()
    if not (np.isfinite(means).all() and min(means) > 0):
        return AtCost(nothing, _NAN)
    mean = means[0] ** (1.0 - share) * means[1] ** share
    return AtCost(mean * ((1.0 - share) * before / means[0] + share * after / means[1]), share)


def same_law_p_value(first: ArrayLike, second: ArrayLike) -> float:
    """Return a p-value that two samples of many columns have one law, corrected for the number of columns.

    Two-sample Kolmogorov-Smirnov tests of each column and of its distance from the common median (conservative for
    discrete ones), with Bonferroni's correction.

    Parameters
    ----------
    first, second : array_like, shape (n, column) and (m, column)
        Independent rows. Columns with a value that is NaN are left out.

    Returns
    -------
    float
        NaN where no column is left.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    columns = np.flatnonzero(~(np.isnan(a).any(axis=0) | np.isnan(b).any(axis=0)))
    if not len(columns):
        return _NAN
    a, b = a[:, columns], b[:, columns]
    centre = np.median(np.concatenate([a, b]), axis=0)
    looked_at = [(a, b), (np.abs(a - centre), np.abs(b - centre))]  # the second sees scales
    smallest = min(float(p) for one, other in looked_at for p in ks_2samp(one, other).pvalue)
    return min(1.0, smallest * len(looked_at) * len(columns))


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a, b = (np.asarray(values, dtype=np.float64).ravel() for values in (first, second))
    if len(a) != len(b) or not len(a) or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InvalidArgumentError(
            f"paired values must be finite and as many on both sides, but got {len(a)} and {len(b)}, of which "
            f"{int(np.isfinite(a).sum())} and {int(np.isfinite(b).sum())} are finite. Leave out data sets of which "
            "one is missing."
        )
    return a, b


def _both_sides(values: FloatArray, level: float) -> Interval:
    """Return the interval of a mean whose values may be skewed to either side."""
    estimate, _, upper = mean_interval(values, level)
    return Interval(estimate, -mean_interval(-values, level).upper, upper)


def _edge(is_possible: Callable[[float], bool], inside: float, factor: float) -> float:
    """Return where possible ratios end when one goes away from the estimate by ``factor`` each time; 0 or inf."""
    outside = inside * factor
    for _ in range(_STEPS):
        if not is_possible(outside):
            break
        inside, outside = outside, outside * factor
    else:
        return 0.0 if factor < 1 else np.inf
    for _ in range(_BISECTIONS):
        middle = float(np.sqrt(inside * outside))
        inside, outside = (middle, outside) if is_possible(middle) else (inside, middle)
    return float(outside)
