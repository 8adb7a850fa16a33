"""Confidence intervals of means over independent simulations, and how much error each attempt may spend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from bread.errors import InvalidArgumentError


class Interval(NamedTuple):
    """An estimate with its two-sided confidence limits, in the unit of the estimate."""

    estimate: float
    lower: float
    upper: float


def mean_interval(values: ArrayLike, level: float) -> Interval:
    """Return the mean of independent values with a confidence interval that allows for skewness.

    Lower limit: Student t. Upper limit: the larger of Student t and Hall's skewness-corrected
    ``m - 3 s / g [cbrt(1 + g (-t / sqrt(n) - g / (6 n))) - 1]``, with g the moment skewness; a few large
    values, the usual shape of gaps, then widen the upper side only.

    Parameters
    ----------
    values : array_like, shape (n,)
        Independent values, one a simulation. No NaN.
    level : float
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        With n = 1 the limits are NaN: no interval. One infinite value makes all three infinite: an outcome
        that has been seen has positive probability, so the expectation itself is infinite.

    References
    ----------
    Hall (1992), "On the removal of skewness by transformation", JRSS B 54, 221-228.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    if x.size == 0 or np.isnan(x).any():
        raise InvalidArgumentError(
            f"values must hold at least one number and no NaN, but got {x.size} values, "
            f"{int(np.isnan(x).sum())} of them NaN. Leave out simulations that did not finish."
        )
    if not 0.0 < level < 1.0:
        raise InvalidArgumentError(f"level must lie strictly between 0 and 1, but got {level}.")
    if not np.isfinite(x).all():
        if np.inf in x and -np.inf in x:
            raise InvalidArgumentError("values hold both inf and -inf: their mean is not defined.")
        infinite = float(np.inf if np.inf in x else -np.inf)
        return Interval(infinite, infinite, infinite)
    n = x.size
    scale = max(1.0, float(np.abs(x).max()) / 1e100)  # a log likelihood of -1e200 must not overflow when squared
    mean = float((x / scale).mean() * scale)
    if n == 1:
        return Interval(mean, float("nan"), float("nan"))
    deviation = float((x / scale).std(ddof=1) * scale)
    if deviation == 0.0:
        return Interval(mean, mean, mean)
    quantile = float(stdtrit(n - 1, 0.5 + level / 2.0)) / np.sqrt(n)
    standardised = (x - mean) / deviation / np.sqrt(1.0 - 1.0 / n)
    skewness = float(np.mean(standardised**3))
    upper = mean + deviation * quantile
    if abs(skewness) > 1e-6:  # below, Hall's limit equals Student's to rounding
        root = np.cbrt(1.0 + skewness * (-quantile - skewness / (6.0 * n)))
        upper = max(upper, mean - 3.0 * deviation / skewness * float(root - 1.0))
    return Interval(mean, mean - deviation * quantile, upper)


def alpha_level(attempt: int) -> float:
    """Return the confidence level of confirmation number ``attempt`` (0, 1, ...): 1 - 0.05 / 2**attempt.

    Each failed confirmation halves the error that the next may spend. The verdict reads one end of a two-sided
    interval, so the one-sided errors sum to 2.5 % + 1.25 % + ... <= 5 %.
    """
    if attempt < 0:
        raise InvalidArgumentError(f"attempt must be 0 or more, but got {attempt}.")
    return 1.0 - 0.05 / 2.0**attempt
