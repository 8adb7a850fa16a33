"""How wrong the user's distribution functions can be, everywhere: their distance to annealed draws plus two errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.draws import are_constant, as_columns
from bread.statistics.bounds.bounds import FloatArray


class DistributionBound(NamedTuple):
    """Result of `distribution_bound`; d quantities.

    Attributes
    ----------
    cdf_difference : ndarray, shape (d,)
        D, the largest difference of the two empirical distribution functions over all x.
    sampling_error : float
        DKW, the same for all: how far, at most, an empirical distribution function of n draws is from its law.
    error_limit : ndarray, shape (d,)
        D + DKW + V, at most 1: no probability of the form P(theta <= x) or P(theta < x) that the user reads off
        the draws is further than this from the posterior's.
    """

    cdf_difference: FloatArray
    sampling_error: float
    error_limit: FloatArray


def distribution_bound(
    user: ArrayLike, annealed: ArrayLike, *, error: float, alpha: float = 0.025
) -> DistributionBound:
    """Return a bound, for every x, on how far the user's P(theta <= x) is from the posterior's.

    |F_user(x) - F_p(x)| <= |F_user - F_annealed| + |F_annealed - F_q| + |F_q - F_p|, q the law of the annealed
    draws: the first is seen (D), the second is Dvoretzky, Kiefer, Wolfowitz and Massart's
    sqrt(log(2 d / alpha) / (2 n)) for all d quantities at once, the third is the certificate's V. Nothing is
    assumed about the user's draws, not even an effective size: F_user *is* what the user reports.

    Parameters
    ----------
    user : array_like, shape (chain, draw, d) or (draw, d)
        The user's draws. An interval's error is at most twice the limit.
    annealed : array_like, shape (n, d)
        Independent annealed draws on the same data.
    error : float
        V's limit, in [0, 1]. It is an average over simulated data sets: for one data set the bound holds if it is
        like those.
    alpha : float
        Probability that the second term fails; with that at which ``error`` is a limit it adds up to the whole.

    Returns
    -------
    DistributionBound
        Perfect draws with 400 effective ones have about 0.12 + V at n = 1000, d = 10. It bounds; it detects
        nothing.

    Raises
    ------
    InvalidArgumentError
        If shapes do not match, a draw is not finite, or ``error`` or ``alpha`` is out of range.

    References
    ----------
    Massart (1990), "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 18.
    """
    ours, theirs = as_columns(user, annealed)
    if not 0.0 <= error <= 1.0:
        raise InvalidArgumentError(f"error must lie between 0 and 1, but got {error}.")
    if not 0.0 < alpha < 1.0:
        raise InvalidArgumentError(f"alpha must lie strictly between 0 and 1, but got {alpha}.")
    n, d = theirs.shape
    difference = np.where(are_constant(ours, theirs), 0.0, cdf_differences(ours, theirs))
    sampling_error = float(np.sqrt(np.log(2.0 * d / alpha) / (2.0 * n)))
    return DistributionBound(difference, sampling_error, np.minimum(1.0, difference + sampling_error + error))


def cdf_differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the largest difference of two empirical distribution functions, column by column.

    Both are right-continuous steps: between two neighbouring draws of either nothing changes, so the values at
    all draws are all values there are, limits from the left included.

    Parameters
    ----------
    first, second : ndarray, shapes (m, d) and (n, d)

    Returns
    -------
    ndarray, shape (d,)
    """
    largest = np.empty(first.shape[1])
    for column in range(first.shape[1]):
        a, b = np.sort(first[:, column]), np.sort(second[:, column])
        x = np.concatenate([a, b])
        share_a = np.searchsorted(a, x, side="right") / len(a)
        share_b = np.searchsorted(b, x, side="right") / len(b)
        largest[column] = np.abs(share_a - share_b).max()
    return largest
