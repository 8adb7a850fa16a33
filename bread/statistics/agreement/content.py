"""How much of the posterior the user's intervals hold: shares of annealed draws below the user's quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainccinv, betaincinv

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.content_counts import content_p_values
from bread.statistics.agreement.draws import are_constant, as_columns, as_sizes
from bread.statistics.bounds.bounds import FloatArray

QUANTILES = (0.05, 0.5, 0.95)
N_TESTS = 4  # of each quantity: three shares and the interval
TAIL_HALF_WIDTH, MEDIAN_HALF_WIDTH = 0.025, 0.05  # what the limits of a share should be within


class IntervalContents(NamedTuple):
    """Result of `interval_contents`; d quantities, three quantiles (5%, 50%, 95%).

    Attributes
    ----------
    quantile : ndarray, shape (d, 3)
        The user's quantiles, in the units of the quantity.
    content : ndarray, shape (d, 3)
        Share of annealed draws below each; 0.05, 0.5, 0.95 if both have one distribution.
    lower, upper : ndarray, shape (d, 3)
        Limits of the probability below the user's quantile under the law of the annealed draws. All 3 d hold
        together at the level asked for. They take the user's quantiles as given: those are what the user reports.
    interval : ndarray, shape (d,)
        Share of annealed draws between the 5% and the 95% quantile: "your 90% interval holds 0.75 of them".
    interval_lower, interval_upper : ndarray, shape (d,)
        Its limits, at the level of a single one of the 3 d.
    p_value : ndarray, shape (d, 4)
        Of the hypothesis that both have one distribution, from each share and, last, from the interval (a spread
        that is wrong on both sides shows there); times 4 d (Bonferroni), at most 1.
    p_value_beyond_error : ndarray, shape (d, 4)
        Of the hypothesis that their probabilities differ by at most ``error``; times 4 d, at most 1.

    All are NaN for a quantity that is constant up to rounding in both; it is not counted in d.
    """

    quantile: FloatArray
    content: FloatArray
    lower: FloatArray
    upper: FloatArray
    interval: FloatArray
    interval_lower: FloatArray
    interval_upper: FloatArray
    p_value: FloatArray
    p_value_beyond_error: FloatArray


def interval_contents(
    user: ArrayLike, annealed: ArrayLike, n_effective: ArrayLike, *, error: float, level: float = 0.95
) -> IntervalContents:
    """Return what share of annealed draws lies below the user's 5, 50 and 95% quantiles of each quantity.

    A quantile is one of the user's draws, the smallest with at least that share of draws at or below it. Where
    annealed draws are tied with it (a discrete parameter), they are divided as the user's draws at that value
    are: if the 5% quantile of a count is 0, and 0 has 20% of the user's draws, a quarter of the annealed zeros
    counts as below it. With equal distributions the share is then 0.05, tied or not.

    Parameters
    ----------
    user : array_like, shape (chain, draw, d) or (draw, d)
        The user's draws; parameters, and the log density as one more column.
    annealed : array_like, shape (n, d)
        Independent annealed draws on the same data, same columns.
    n_effective : array_like, shape (d,) or (d, 3)
        Effective sample sizes of the user's draws, best of each quantile (the smaller of the quantile's own and
        that of the mean). Only the p-values use them.
    error : float
        How far, at most, a probability under the law of the annealed draws may be from the posterior's: the
        certificate's limit.
    level : float
        Simultaneous level of the 3 d limits.

    Returns
    -------
    IntervalContents
        Limits that leave out 0.05, 0.5 or 0.95 are no disagreement yet: the user's quantiles have a Monte Carlo
        error, and the annealed draws an error of their own. `p_value_beyond_error` allows for both; see
        `bread.statistics.agreement.disagreement` for the rule.

    Raises
    ------
    InvalidArgumentError
        If shapes do not match, a draw is not finite, or ``error`` or ``level`` is out of range.

    References
    ----------
    Clopper & Pearson (1934), "The use of confidence or fiducial limits", Biometrika 26, 404-413.
    """
    ours, theirs = as_columns(user, annealed)
    shape = (ours.shape[1], len(QUANTILES))
    sizes = as_sizes(n_effective, shape)
    _check_share("level", level)
    varies = ~are_constant(ours, theirs)
    n, n_varying = len(theirs), max(1, int(varies.sum()))
    nominal = np.array(QUANTILES)
    quantile, count = np.full(shape, np.nan), np.full(shape, np.nan)
    for column in np.flatnonzero(varies):
        quantile[column], count[column] = _counts_below(ours[:, column], theirs[:, column], nominal)
    alpha = (1.0 - level) / (len(QUANTILES) * n_varying)
    lower, upper = clopper_pearson(count, n, alpha)
    inside = count[:, 2] - count[:, 0]
    interval_lower, interval_upper = clopper_pearson(inside, n, alpha)
    tested = np.column_stack([count, inside])
    tested_nominal = np.append(nominal, nominal[2] - nominal[0])
    tested_sizes = np.column_stack([sizes, np.minimum(sizes[:, 0], sizes[:, 2])])
    p_value, beyond = (
        np.minimum(1.0, N_TESTS * n_varying * content_p_values(tested, n, tested_sizes, tested_nominal, error=allowed))
        for allowed in (0.0, error)
    )
    return IntervalContents(
        quantile, count / n, lower, upper, inside / n, interval_lower, interval_upper, p_value, beyond
    )


def clopper_pearson(count: ArrayLike, n: int, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return two-sided limits of a probability at level 1 - ``alpha``, given ``count`` of ``n``.

    Ties that are divided make counts fractional: they are rounded outwards. NaN stays NaN.
    """
    counts = np.round(np.asarray(count, dtype=np.float64), 9)
    down, up = np.floor(counts), np.ceil(counts)
    with np.errstate(invalid="ignore"):
        lower = np.where(down <= 0, 0.0, betaincinv(np.maximum(down, 1), n - down + 1, alpha / 2))
        upper = np.where(up >= n, 1.0, betainccinv(up + 1, np.maximum(n - up, 1), alpha / 2))
    missing = np.isnan(counts)
    return np.where(missing, np.nan, lower), np.where(missing, np.nan, upper)


def draws_needed(n_quantities: int, *, level: float = 0.95) -> int:
    """Return how many annealed draws bring the limits within 0.025 (tails) and 0.05 (median) of the share.

    Parameters
    ----------
    n_quantities : int
        How many are compared (d), the log density included.
    level : float
        Simultaneous level of the 3 d limits, as in `interval_contents`.

    Returns
    -------
    int
        The smallest n from which on the limits are that narrow where the shares are 0.05, 0.5 and 0.95.
    """
    if n_quantities < 1:
        raise InvalidArgumentError(f"n_quantities must be 1 or more, but got {n_quantities}.")
    _check_share("level", level)
    alpha = (1.0 - level) / (3.0 * n_quantities)

    def excess(n: float) -> float:
        """Return by how much the wider limits of n draws are too wide."""
        widths = []
        for share, allowed in ((0.05, TAIL_HALF_WIDTH), (0.5, MEDIAN_HALF_WIDTH)):
            # Not rounded to whole draws, or the need would depend on whether n is a multiple of 20.
            count = share * n
            lower, upper = betaincinv(count, n - count + 1, alpha / 2), betainccinv(count + 1, n - count, alpha / 2)
            widths.append(max(upper - share, share - lower) - allowed)
        return float(max(widths))

    return int(np.ceil(brentq(excess, 1.0, 1e6)))


def _counts_below(user: FloatArray, annealed: FloatArray, nominal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the user's quantiles and how many annealed draws lie below each, ties divided."""
    ordered, compared = np.sort(user), np.sort(annealed)
    quantile = np.quantile(ordered, nominal, method="inverted_cdf")
    user_below, user_most = (np.searchsorted(ordered, quantile, side) / len(user) for side in ("left", "right"))
    below, most = (np.searchsorted(compared, quantile, side) for side in ("left", "right"))
    share = np.clip((nominal - user_below) / (user_most - user_below), 0.0, 1.0)
    return quantile, np.asarray(below + share * (most - below), dtype=np.float64)


def _check_share(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise InvalidArgumentError(f"{name} must lie strictly between 0 and 1, but got {value}.")
