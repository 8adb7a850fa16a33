"""A confidence limit of a mean in [0, 1] that holds at any number of values and at any stopping time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from bread.argument_rules import is_number, received
from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]

# Bets start as if one value had been seen with this mean and variance: what errors of a good sampler look like. The
# choice moves the limit's width, never its validity.
START_MEAN = 0.05
START_VARIANCE = 0.01
CAP = 0.97  # largest part of the capital at stake: below 1, so that one value alone never takes all of it


def betting_upper_limit(values: ArrayLike, level: float = 0.95) -> float:
    """Return an upper confidence limit of the mean of independent values in [0, 1], exact at any sample size.

    A gambler who doubts that the mean is as large as m stakes lambda_t (m - x_t) on every value, with a stake chosen
    from earlier values alone. If the mean is m (or more), the capital prod(1 + lambda_t (m - x_t)) grows beyond
    1 / (1 - level) with probability at most 1 - level, whenever one looks. The limit is the smallest m at which
    it has grown that far; the capital never falls as m rises.

    Parameters
    ----------
    values : array_like, shape (n,)
        Independent, in [0, 1], in the order in which they were computed: stakes depend on earlier values.
    level : float
        One-sided confidence level in (0, 1).

    Returns
    -------
    float
        In (0, 1], never below about log(1 / (1 - level)) / n, which is 3 / n at 95%: values that nobody has
        seen may be 1. It assumes nothing about the population, so it is wide: 0.18, 0.12, 0.07 for values near
        0.045 at n = 20, 40, 100. More values may be added and the limit computed again as often as one likes.

    Raises
    ------
    InvalidArgumentError
        No value, a value outside [0, 1] or NaN, or a level outside (0, 1).

    References
    ----------
    Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86, 1-27:
    the hedged capital process with predictable plug-in bets, equations 15 and 24 to 26; here one side alone.
    """
    x = unit_interval_values(values)
    check_level(level)
    threshold = float(-np.log1p(-level))
    stakes = _stakes(x, threshold)

    def log_growth(mean: float) -> float:
        # A stake of at most CAP / (1 - mean) keeps the capital positive whatever the next value is.
        staked = np.minimum(stakes, CAP / (1.0 - mean))
        return float(np.log1p(staked * (mean - x)).sum()) - threshold

    highest = 1.0 - 1e-12
    if log_growth(highest) <= 0.0:
        return 1.0
    return float(brentq(log_growth, 0.0, highest, xtol=1e-12))


def unit_interval_values(values: ArrayLike) -> FloatArray:
    """Return values as an array of shape (n,), checked: at least one, all in [0, 1]; InvalidArgumentError otherwise."""
    x = np.asarray(values, dtype=np.float64).ravel()
    if x.size == 0:
        raise InvalidArgumentError("values must hold at least one number, but are empty.")
    is_wrong = ~((x >= 0.0) & (x <= 1.0))
    if is_wrong.any():
        raise InvalidArgumentError(
            f"values must lie in [0, 1], but value {int(np.argmax(is_wrong))} is {x[is_wrong][0]} "
            f"({int(is_wrong.sum())} of {x.size} do not). Leave out simulations that did not finish."
        )
    return x


def check_level(level: float) -> None:
    """Raise InvalidArgumentError unless ``level`` lies strictly between 0 and 1."""
    if not (is_number(level) and 0.0 < level < 1.0):
        raise InvalidArgumentError(f"level must lie strictly between 0 and 1, but got {received(level)}.")


def _stakes(x: FloatArray, threshold: float) -> FloatArray:
    """Return the stake on every value before it is seen, shape (n,): sqrt(2 threshold / (variance t log(1 + t)))."""
    count = np.arange(1, len(x) + 1)
    mean = (START_MEAN + np.cumsum(x)) / (count + 1)
    variance = (START_VARIANCE + np.cumsum((x - mean) ** 2)) / (count + 1)
    earlier = np.concatenate([[START_VARIANCE], variance[:-1]])
    return np.asarray(np.sqrt(2.0 * threshold / (earlier * count * np.log1p(count))), dtype=np.float64)
