"""Is a mean zero? A t test that keeps its level where tails are heavy, skewed or seen only in part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.bounds.tails import NORMAL_QUANTILE, tail_index

COUNTER = 3.0  # a Pareto tail of index a misses a / (a - 1) times its largest value on average: 3 for a = 1.5
HEAVIEST_SHAPE = 0.9  # beyond this generalised Pareto shape the mean may not exist, and nothing is rejected
LOOK_AT_TAIL = 0.05  # p-values above this need no second look
FEW = 0.1  # standard errors of a mean of bounded values: few missing draws shift it by no more
FEWEST_SIGNS = 20  # values of the rarer sign, for a normal approximation


def are_few(n_missing: float, n: int) -> bool:
    """Return whether so many missing draws shift no mean of bounded values of ``n`` draws noticeably."""
    return bool(n_missing <= FEW * np.sqrt(n))


class MeanTest(NamedTuple):
    """Result of `mean_zero_test`; one entry a column.

    Attributes
    ----------
    p_values : ndarray, shape (column,)
        Two-sided; NaN where the column cannot be tested.
    effect : ndarray, shape (column,)
        Mean in standard deviations of a single value; 0 where all values are equal to zero.
    """

    p_values: FloatArray
    effect: FloatArray


def mean_zero_test(values: ArrayLike, *, plain_size: float | None = None, is_bounded: bool = False) -> MeanTest:
    """Test whether independent rows have mean zero, column by column.

    No test keeps its level for every law with mean zero: a value too rare to be seen may make up for all the others.
    This one allows for what a sample usually misses. A *counter-value*, on the other side of zero and three times as
    large as the largest absolute value seen, is added before Student's t is computed; where the tail on that side is
    heavy, with generalised Pareto shape k (95% upper limit), 3 / (1 - k) times, and nothing is rejected for k > 0.9.

    Parameters
    ----------
    values : array_like, shape (n, column)
        Independent along rows. Finite.
    plain_size : float, optional
        A column with fewer than 20 values of one sign usually means that the values which balance it are rare and were
        not seen. It is not tested (NaN), unless its median absolute value is ``plain_size`` or more and the caller
        knows why rare values cannot balance so large ones. None: never tested.
    is_bounded : bool
        The values are bounded by construction, with bounds near the largest value seen: a counter-value as large as
        that one is enough, whatever the tail looks like.

    Returns
    -------
    MeanTest
        Measured at n = 750, 40000 samples a law: rejects at 0.001 in at most 0.01% of normal, chi-squared, lognormal
        (sigma up to 2), t (2), Cauchy, Pareto (index 2.5) and binary samples, of which rare ones are not tested. It is
        conservative: a normal sample loses about a third of a standard error. Asymmetric laws without a variance are
        its limit: 0.07% for Pareto laws of index 1.5, 0.4% for 1.2.

    Raises
    ------
    InvalidArgumentError
        Fewer than two rows, or values that are not finite.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or len(x) < 2 or not np.isfinite(x).all():
        raise InvalidArgumentError(
            f"values must have shape (n, column), n >= 2, and be finite, but got shape {x.shape} with "
            f"{int((~np.isfinite(x)).sum())} values that are not."
        )
    largest = np.abs(x).max(axis=0)
    x = x / np.where(largest > 0.0, largest, 1.0)  # squares neither overflow nor vanish
    fewer = np.minimum((x > 0.0).sum(axis=0), (x < 0.0).sum(axis=0))
    is_tested = fewer >= FEWEST_SIGNS
    if plain_size is not None:
        is_tested |= np.median(np.abs(x), axis=0) * largest >= plain_size
    p_values = np.where(is_tested, _p_values(x, np.full(x.shape[1], 1.0 if is_bounded else COUNTER)), np.nan)
    for column in [] if is_bounded else np.flatnonzero(p_values < LOOK_AT_TAIL):
        toward = x[:, column] * np.sign(x[:, column].mean())
        shape, error, _ = tail_index(toward)
        limit = max(0.0, shape + NORMAL_QUANTILE * error) if np.isfinite(shape + error) else 0.0
        if limit > HEAVIEST_SHAPE:
            p_values[column] = 1.0
        else:
            p_values[column] = _p_values(toward[:, None], np.array([COUNTER / (1.0 - limit)]))[0]
    deviation = x.std(axis=0)
    mean = x.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.where(mean == 0.0, 0.0, mean / deviation)
    return MeanTest(p_values, effect)


def _p_values(x: FloatArray, counter: FloatArray) -> FloatArray:
    """Return Student's two-sided p-values with a counter-value of so many times the largest absolute value."""
    n = len(x) + 1
    total = x.sum(axis=0)
    added = np.minimum(counter * np.abs(x).max(axis=0), np.abs(total))  # it never turns the sign
    mean = (np.abs(total) - added) / n
    variance = ((x**2).sum(axis=0) + added**2 - n * mean**2) / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(mean > 0.0, mean / np.sqrt(np.maximum(variance, 0.0) / n), 0.0)
    return np.asarray(2.0 * student.sf(statistic, n - 1), dtype=np.float64)
