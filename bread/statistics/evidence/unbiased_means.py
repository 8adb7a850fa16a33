"""Means of independent unbiased estimates, with an interval where the estimates show that one can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.betting import check_level
from bread.statistics.bounds.intervals import mean_interval
from bread.statistics.bounds.tails import tail_index

FEWEST_ESTIMATES = 40
HEAVIEST_TAIL = 0.5  # tail index: beyond, the variance is infinite
LARGEST_SHARE = 0.25  # of the sum of squared deviations, in one estimate


@dataclass(frozen=True)
class UnbiasedMean:
    """Mean of unbiased estimates.

    Attributes
    ----------
    value : float
        NaN where a part of the estimates is not known.
    standard_error : float
        NaN where it cannot be trusted.
    lower, upper : float
        Limits at the two-sided level, Student's or Hall's, whichever is wider; -inf and inf where there are doubts.
    n : int
    tail : float
        The larger index of both tails; above 1/2 the variance is infinite.
    doubts : tuple of str
        Why there is no interval; empty where there is one.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    n: int
    tail: float
    doubts: tuple[str, ...]


def unbiased_mean(estimates: ArrayLike, level: float) -> UnbiasedMean:
    """Return the mean of independent unbiased estimates, and an interval unless their law may have no variance.

    Parameters
    ----------
    estimates : array_like, shape (n,)
        At least 40. NaN where an estimate was not finished.
    level : float
        Two-sided confidence level.

    Returns
    -------
    UnbiasedMean
        No value where an estimate is NaN: the others are no sample of all, and their mean is biased. No interval where
        an index of the tails (Zhang & Stephens 2009) is above 1/2, or one estimate makes up a quarter of the sum of
        squared deviations. An index is estimated, and what is rarer than one in n estimates is not
        seen: of 1500 runs each with 400 absolute values of Student's t, intervals (95%) were given in 7% with 1.3
        degrees of freedom (index 0.77, no variance) and most of those missed, in 27% with 1.8 (0.56) and a third
        missed, in 55% with 2.5 (0.4) and 6% missed, in 90% with 4 (0.25) and 5% missed.

    Raises
    ------
    InvalidArgumentError
        Fewer than 40 estimates, or a level outside (0, 1).
    """
    check_level(level)
    x = np.asarray(estimates, dtype=np.float64).ravel()
    if len(x) < FEWEST_ESTIMATES:
        raise InvalidArgumentError(
            f"estimates must be at least {FEWEST_ESTIMATES}, got {len(x)}: fewer do not show their tails. "
            "Run more pairs."
        )
    nan, inf = float("nan"), float("inf")
    n_missing = int((~np.isfinite(x)).sum())
    if n_missing:
        doubts = (f"{n_missing} of {len(x)} estimates were not finished, and the others are no sample of all",)
        return UnbiasedMean(nan, nan, -inf, inf, len(x), nan, doubts)
    squares = (x - np.median(x)) ** 2
    largest = float(squares.max() / squares.sum()) if squares.sum() > 0.0 else 0.0
    tail = float(np.nanmax([tail_index(x).shape, tail_index(-x).shape, -inf]))
    found = []
    if tail > HEAVIEST_TAIL:
        found.append(f"the tails of the {len(x)} estimates are heavy (index {tail:.2f}, above {HEAVIEST_TAIL})")
    if largest > LARGEST_SHARE:
        found.append(f"one of {len(x)} estimates makes up {100 * largest:.0f}% of the sum of squared deviations")
    mean = float(x.mean())
    if found:
        return UnbiasedMean(mean, nan, -inf, inf, len(x), tail, tuple(found))
    upper, lower = mean_interval(x, level).upper, -mean_interval(-x, level).upper
    return UnbiasedMean(mean, float(x.std(ddof=1) / np.sqrt(len(x))), lower, upper, len(x), tail, ())
