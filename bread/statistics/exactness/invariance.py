"""Does a frozen kernel leave its target invariant? A paired test of exact draws before and after some steps.

If the kernel leaves the target invariant, the draws after have the law of those before, so h(after) - h(before) has
mean zero for every h. Nothing more holds unless the kernel is reversible: the pair need not be exchangeable and the
difference need not be symmetric, so a sign test or a Wilcoxon test of differences has no level here. Two tests have:

* *Indicators.* For h = 1{x in A} the difference is -1, 0 or 1, and mean zero means that as many draws enter A as leave
  it. Given the number that cross, those that enter are Binomial(., 1/2): exact for every n, law and kernel.
* *Bounded functions* of normal scores, tested by `mean_zero_test`: they see a small drift of small moves, of which few
  cross a threshold.

Scores and thresholds are set with the first fifth of the draws before and used on the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.means import mean_zero_test
from bread.statistics.exactness.normal_scores import normal_scores

FEWEST_DRAWS = 100
N_PARTNERS = 5  # products of pairs a coordinate
LEVELS = (0.1, 0.5, 0.9)  # quantiles of a coordinate whose crossing is counted
SPREADS = (0.5, 0.9)  # share of draws with |score| below the threshold


class InvarianceTest(NamedTuple):
    """Result of `invariance_test`; d coordinates, F functions.

    Attributes
    ----------
    p_value : float
        Bonferroni over everything tested; NaN if nothing was.
    p_values : ndarray, shape (d, F)
        Two-sided, not adjusted; NaN where not tested.
    pooled_p_values : ndarray, shape (2,)
        Of "x" and "x^2" summed over all coordinates: sees a small defect that all share.
    effect : ndarray, shape (d, F)
        Mean of h(after) - h(before): in standard normal units of the coordinate, or in probability for indicators.
    functions : tuple of str, length F
        "x", "x^2", "x y_1", ... (normal scores), then "x < q10", ..., "|x| < q50", ... (indicators).
    partners : ndarray of int, shape (d, k)
        Which coordinate "y_k" is.
    worst : tuple of int or None, str; or None
        Coordinate (None: all of them together) and function with the smallest p-value.
    n_not_a_number : ndarray of int, shape (d,)
        Draws, before or after, that are NaN: a failure of draw or kernel. Such a coordinate is not tested.
    """

    p_value: float
    p_values: FloatArray
    pooled_p_values: FloatArray
    effect: FloatArray
    functions: tuple[str, ...]
    partners: NDArray[np.int64]
    worst: tuple[int | None, str] | None
    n_not_a_number: NDArray[np.int64]


def invariance_test(before: ArrayLike, after: ArrayLike) -> InvarianceTest:
    """Test whether steps of a kernel changed the law of exact draws.

    Parameters
    ----------
    before : array_like, shape (n, d)
        Independent exact draws, n >= 100; about 500 for power. Continuous or discrete; infinite is allowed. Append
        functions of the state, such as its log density, as more columns. At beta = 1: states of joint draws (theta, y),
        each moved by a kernel for its own y.
    after : array_like, shape (n, d)
        The same rows after some steps of the frozen kernel.

    Returns
    -------
    InvarianceTest
        A p_value below 0.001 means that the kernel does not leave the density invariant, or that the draws are not
        from it. A large one says little about a kernel that hardly moves.

    Raises
    ------
    InvalidArgumentError
        Too few draws, or shapes that do not match.
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape or len(x) < FEWEST_DRAWS:
        raise InvalidArgumentError(
            f"before and after must have one shape (n, d) with n >= {FEWEST_DRAWS} draws, but got {x.shape} and "
            f"{y.shape}."
        )
    n, d = x.shape
    n_first = n // 5
    n_bad = (np.isnan(x) | np.isnan(y)).sum(axis=0)
    is_tested = n_bad == 0
    first = np.where(is_tested, x[:n_first], 0.0)
    old = normal_scores(first, np.where(is_tested, x[n_first:], 0.0))
    new = normal_scores(first, np.where(is_tested, y[n_first:], 0.0))
    calibration = normal_scores(first, first)
    n_partners = min(d - 1, N_PARTNERS)
    steps = 1 + np.arange(n_partners) * (d - 1) // max(n_partners, 1)
    partners = (np.arange(d)[:, None] + steps) % d
    kinds = [later - former for former, later in zip(_smooth(old, partners), _smooth(new, partners), strict=True)]
    tests = [mean_zero_test(difference, is_bounded=True).p_values for difference in kinds]
    means = [difference.mean(axis=0) for difference in kinds]
    for values, later, middle, levels in (
        (old, new, calibration, LEVELS),
        (np.abs(old), np.abs(new), np.abs(calibration), SPREADS),
    ):
        for threshold in np.quantile(middle, levels, axis=0):
            crossing = (later <= threshold).astype(np.int64) - (values <= threshold)
            tests.append(crossing_p_values(crossing))
            means.append(crossing.mean(axis=0))
    functions = (
        "x", "x^2", *(f"x y_{k + 1}" for k in range(n_partners)), *(f"x < q{100 * q:.0f}" for q in LEVELS),
        *(f"|x| < q{100 * q:.0f}" for q in SPREADS),
    )  # fmt: skip
    p_values = np.where(is_tested[:, None], np.array(tests).T.reshape(d, len(functions)), np.nan)
    pairs = p_values[:, 2 : 2 + n_partners]
    pairs[~is_tested[partners]] = np.nan
    sums = np.column_stack([kind[:, is_tested].sum(axis=1) for kind in kinds[:2]])
    pooled = mean_zero_test(sums, is_bounded=True).p_values
    worst: tuple[int | None, str] | None = None
    if not np.isnan(p_values).all():
        i, k = np.unravel_index(np.nanargmin(p_values), p_values.shape)
        worst = int(i), functions[int(k)]
        if (pooled < p_values[i, k]).any():
            worst = None, functions[int(np.nanargmin(pooled))]
    effect = np.array(means).T.reshape(d, len(functions))
    combined = combined_p_value(np.concatenate([p_values.ravel(), pooled]))
    return InvarianceTest(combined, p_values, pooled, effect, functions, partners, worst, n_bad)


def _smooth(scores: FloatArray, partners: NDArray[np.int64]) -> list[FloatArray]:
    """Return the smooth functions of scores (n, d): "x", "x^2", "x y_1", ..., each (n, d)."""
    return [scores, scores**2, *(scores * scores[:, column] for column in partners.T)]


def smooth_functions(before: ArrayLike, after: ArrayLike, test: InvarianceTest) -> tuple[FloatArray, FloatArray]:
    """Return the smooth functions that a test compared, of the draws before and after.

    Parameters
    ----------
    before, after : array_like, shape (n, d)
        What `invariance_test` was given.
    test : InvarianceTest
        What it returned.

    Returns
    -------
    before : ndarray, shape (m, d, k)
        Of the draws that were compared; the k functions are the first of ``test.functions``. NaN where not tested.
    after : ndarray, shape (m, d, k)
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    n_first = len(x) // 5
    is_tested = test.n_not_a_number == 0
    first = np.where(is_tested, x[:n_first], 0.0)
    found = []
    for values in (x, y):
        scores = normal_scores(first, np.where(is_tested, values[n_first:], 0.0))
        kinds = np.stack(_smooth(scores, test.partners), axis=-1)
        kinds[:, np.isnan(test.p_values[:, : kinds.shape[2]])] = np.nan
        found.append(kinds)
    return found[0], found[1]


def crossing_p_values(crossing: ArrayLike) -> FloatArray:
    """Return exact two-sided p-values of as many +1 as -1, column by column; 1 where nothing crossed.

    McNemar's test: given their number, the +1 among the non-zero values are Binomial(., 1/2) if the mean is zero.

    Parameters
    ----------
    crossing : array_like of int, shape (n, column)
        -1, 0 or 1; independent along rows.

    Returns
    -------
    ndarray, shape (column,)
    """
    moves = np.asarray(crossing, dtype=np.int64)
    up, down = (moves > 0).sum(axis=0), (moves < 0).sum(axis=0)
    return np.asarray(np.minimum(1.0, 2.0 * binom.cdf(np.minimum(up, down), up + down, 0.5)), dtype=np.float64)
