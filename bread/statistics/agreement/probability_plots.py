"""Probability-probability plots of two samples, in pairs: one distribution function against the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray

POINTS = 19


class ProbabilityPlot(NamedTuple):
    """Two distribution functions at thresholds between them; F quantities.

    Attributes
    ----------
    before, after : ndarray, shape (F, `POINTS`)
        Share of either sample at or below each threshold. On the diagonal if both have one law.
    error : ndarray, shape (F, `POINTS`)
        Standard error of their difference, from how many pairs lie on two sides of the threshold.
    """

    before: FloatArray
    after: FloatArray
    error: FloatArray


def probability_plot(before: ArrayLike, after: ArrayLike) -> ProbabilityPlot:
    """Return the points of a P-P plot of each column.

    Parameters
    ----------
    before, after : array_like, shape (n, F)
        Row i of the one goes with row i of the other, and may depend on it; rows are independent. A column with NaN
        is NaN.

    Returns
    -------
    ProbabilityPlot
        Thresholds are evenly spaced quantiles of both samples together.

    Raises
    ------
    InvalidArgumentError
        Shapes differ, or there are no rows.
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape or not len(x):
        raise InvalidArgumentError(
            f"before and after must have one shape (n, F) with n >= 1, but got {x.shape} and {y.shape}."
        )
    levels = np.arange(1, POINTS + 1) / (POINTS + 1)
    thresholds = np.quantile(np.concatenate([x, y]), levels, axis=0, method="closest_observation")
    low, high = ((values[:, None] <= thresholds).astype(np.float64) for values in (x, y))
    error = np.sqrt((low != high).mean(axis=0) / len(x))
    is_known = ~(np.isnan(x) | np.isnan(y)).any(axis=0)
    shares = (np.where(is_known, values, np.nan).T for values in (low.mean(axis=0), high.mean(axis=0), error))
    return ProbabilityPlot(*shares)
