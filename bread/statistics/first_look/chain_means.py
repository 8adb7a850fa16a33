"""Is the mean of autocorrelated values zero? By the larger of two standard errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from bread.statistics.agreement.agreement import mean_effective_size
from bread.statistics.agreement.draws import MINIMUM_EFFECTIVE
from bread.statistics.bounds.bounds import FloatArray

# Degrees of freedom an effective draw: a long-run variance by autocorrelations up to 2 tau of n draws, of which tau are
# worth one, has the relative variance 8 tau / n. Measured at 40,000 means of 110 to 170 effective draws of 1 to 4 slow
# chains: p < 0.001 in 0.08 to 0.1%; by a normal law in 0.2%.
FREEDOM = 0.25


class MeanTest(NamedTuple):
    """P-values of means of zero, the means, and their standard errors, shape (F,) each."""

    p_values: FloatArray
    mean: FloatArray
    error: FloatArray


def mean_test(values: FloatArray, cap: FloatArray, share: float, counter: FloatArray | float = 0.0) -> MeanTest:
    """Test whether means of autocorrelated values (chain, draw, F) are zero.

    ``cap`` are effective sizes that none may exceed; ``counter`` so many times the largest value of one effective draw
    are taken to have been missed (`bread.statistics.exactness.means`).
    """
    flat = values.reshape(-1, values.shape[-1])
    n_effective = np.minimum(share * mean_effective_size(values), cap)
    mean = flat.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.maximum(flat.std(axis=0, ddof=1) / np.sqrt(n_effective), _batch_error(values) / np.sqrt(share))
        missed = counter * np.abs(flat).max(axis=0) / n_effective
        statistic = np.where(error > 0.0, np.maximum(np.abs(mean) - missed, 0.0) / error, 0.0)
    p_values = np.where(n_effective < MINIMUM_EFFECTIVE, np.nan, 2.0 * student.sf(statistic, FREEDOM * n_effective))
    return MeanTest(p_values, mean, error)


def _batch_error(values: FloatArray) -> FloatArray:
    """Return standard errors of the means by batches of about the square root of a chain's length."""
    n_chains, n_draws, n_functions = values.shape
    length = max(1, int(np.sqrt(n_draws)))
    n_batches = n_draws // length
    batches = values[:, : n_batches * length].reshape(n_chains * n_batches, length, n_functions).mean(axis=1)
    return np.asarray(batches.std(axis=0, ddof=1) / np.sqrt(len(batches)), dtype=np.float64)
