"""Do chains begin where they end? Warm-up that was left in hides from tests of means: it inflates their errors."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from scipy.stats import t as student

from bread.statistics.agreement.agreement import mean_effective_size
from bread.statistics.agreement.draws import MINIMUM_EFFECTIVE
from bread.statistics.bounds.bounds import FloatArray

SHARES = (0.02, 0.1)  # of a chain that are its beginning
FEWEST_BATCHES = 5


def beginning_test(values: FloatArray, coordinates: FloatArray | None = None, *, distinct_share: float = 1.0) -> float:
    """Test whether the beginnings of chains are like their second halves.

    Ranks are taken as normal scores. Their mean at the beginnings is compared with means of as many draws in a row of
    the second halves (after Geweke 1992).

    Parameters
    ----------
    values : ndarray, shape (chain, draw)
        Of one function of the draws, such as their log density. Finite.
    coordinates : ndarray, shape (chain, draw, d), optional
        The draws: chains that have not mixed in a coordinate may look as if they had in the log density.
    distinct_share : float
        What effective sizes are multiplied by, where draws are copies.

    Returns
    -------
    float
        P-value, two-sided, after Bonferroni over `SHARES`. NaN with fewer than 50 effective draws in the second
        halves, which would make 100 of all, of the function or of any coordinate.

    References
    ----------
    Geweke (1992), "Evaluating the accuracy of sampling-based approaches ...", Bayesian Statistics 4, 169-193.
    """
    n_chains, n_draws = values.shape
    scores = ndtri((rankdata(values) - 0.5) / values.size).reshape(values.shape)
    late = scores[:, n_draws // 2 :]
    sizes = mean_effective_size(late[..., None])
    if coordinates is not None:
        sizes = np.append(sizes, mean_effective_size(coordinates[:, n_draws // 2 :]))
    if distinct_share * sizes.min() < MINIMUM_EFFECTIVE / 2.0:
        return float("nan")
    p_values = []
    for share in SHARES:
        length = max(1, round(share * n_draws))
        per_chain = late.shape[1] // length
        batches = late[:, : per_chain * length].reshape(-1, length).mean(axis=1)
        error = batches.std(ddof=1) * np.sqrt(1.0 / n_chains + 1.0 / len(batches)) if len(batches) > 1 else 0.0
        if len(batches) >= FEWEST_BATCHES and error > 0.0:
            statistic = (scores[:, :length].mean() - batches.mean()) / error
            p_values.append(2.0 * student.sf(abs(statistic), len(batches) - 1))
    return float(min(1.0, len(p_values) * min(p_values))) if p_values else float("nan")
