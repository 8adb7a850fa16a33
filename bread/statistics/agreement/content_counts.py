"""The test behind interval contents: it knows that the user's quantiles are estimates, and the annealed law too."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc, expit

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray

SIZE_DOUBT = 60.0  # see `discounted`
_N_NODES = 161  # of an integral, evenly spaced
_REACH = 9.0  # nodes of the integral reach this many standard deviations


def content_p_values(
    count: ArrayLike, n_annealed: int, n_effective: ArrayLike, nominal: ArrayLike, *, error: float
) -> FloatArray:
    """Return two-sided p-values of "both laws differ by at most ``error`` in the probability of an interval".

    The interval ends at quantiles of the user's m effective draws, so that it holds the share p of them: below one
    quantile, or between two. Under the law of the user's sampler its probability is u ~ Beta(m p, m (1 - p)). The
    law of the annealed draws gives it a probability between u - error and u + error, and the number of annealed
    draws in it is binomial. The p-value takes the end that explains the count better; at
    ``error`` 0 the count is beta-binomial.

    Parameters
    ----------
    count : array_like
        Annealed draws in each interval, out of ``n_annealed``; fractional where ties are divided. NaN passes.
    n_annealed : int
    n_effective, nominal : array_like, broadcast against ``count``
        Estimated effective size of the user's draws, and p. The size is `discounted` first.
    error : float
        In [0, 1).

    Returns
    -------
    ndarray, shape of ``count``
        Not corrected for their number.
    """
    if not 0.0 <= error < 1.0:
        raise InvalidArgumentError(f"error must be at least 0 and below 1, but got {error}.")
    counts, sizes, shares = np.broadcast_arrays(
        np.round(np.asarray(count, dtype=np.float64), 9), np.asarray(n_effective), np.asarray(nominal)
    )
    nodes, weights = quantile_nodes(discounted(sizes), shares)
    known = np.nan_to_num(counts)[..., None]
    at_least = count_at_least(np.floor(known), n_annealed, np.minimum(1.0, nodes + error))
    at_most = count_at_most(np.ceil(known), n_annealed, np.maximum(0.0, nodes - error))
    smaller = np.minimum((weights * at_least).sum(axis=-1), (weights * at_most).sum(axis=-1))
    return np.asarray(np.where(np.isnan(counts), np.nan, np.minimum(1.0, 2.0 * smaller)), dtype=np.float64)


def discounted(n_effective: ArrayLike) -> FloatArray:
    """Return m^2 / (m + 60) for an estimated effective size m: 62 for 100, 348 for 400, 1942 for 2000.

    An estimate from a chain that holds m effective draws has about m / 6 degrees of freedom (a window of three
    autocorrelation times each side). A normal law with this smaller size has about the tails, at the levels used
    here, of the Student law with those degrees of freedom.
    """
    size = np.asarray(n_effective, dtype=np.float64)
    return np.asarray(size / (1.0 + SIZE_DOUBT / size), dtype=np.float64)


def quantile_nodes(n_effective: ArrayLike, nominal: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for integrals over u ~ Beta(m p, m (1 - p)), along a new last axis.

    The trapezium rule in logit(u), whose density is smooth and falls exponentially.
    """
    m, p = (np.asarray(values, dtype=np.float64)[..., None] for values in (n_effective, nominal))
    centre = np.log(p) - np.log1p(-p)
    width = np.sqrt(1.0 / (m * p) + 1.0 / (m * (1.0 - p)))
    logit = centre + np.linspace(-_REACH, _REACH, _N_NODES) * width
    log_density = m * (p * logit - np.logaddexp(0.0, logit))
    weights = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
    return expit(logit), weights / weights.sum(axis=-1, keepdims=True)


def count_at_least(count: ArrayLike, n: int, probability: ArrayLike) -> FloatArray:
    """Return P(K >= count) for K binomial, count whole."""
    counts = np.asarray(count, dtype=np.float64)
    return np.asarray(np.where(counts <= 0, 1.0, bdtrc(np.maximum(counts - 1, 0), n, probability)), dtype=np.float64)


def count_at_most(count: ArrayLike, n: int, probability: ArrayLike) -> FloatArray:
    """Return P(K <= count) for K binomial, count whole; 0 below 0."""
    counts = np.asarray(count, dtype=np.float64)
    return np.asarray(np.where(counts < 0, 0.0, bdtr(np.maximum(counts, 0), n, probability)), dtype=np.float64)
