"""Do random draws follow a density? Chi-square tests of columns of draws against the density's integrals.

The first half of the draws makes bins, the second is counted in them. What lies outside all bins has what the integrals
leave of one, so that a density that does not integrate to one fails as well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

LEVEL = 1e-6  # of one column: some hundred are tested, with fixed seeds
N_BINS = 20  # of equal shares; the outer two are one
N_GROUPS = 50  # of neighbouring values
PARTS, NODES = 4, 16  # of a bin; points of a part
FEWEST = 8.0  # draws expected of a bin or of a value, or they are counted with others


class Bins:
    """Bins of continuous draws, shape (n, columns), and points ``at`` (m, columns) where their density is asked for."""

    def __init__(self, draws: np.ndarray) -> None:
        first, self._second = np.array_split(draws, 2)
        self._edges = np.quantile(first, np.linspace(0, 1, N_BINS + 1)[1:-1], axis=0)
        low, high = self._edges[:-1], self._edges[1:]
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        share = ((np.arange(PARTS)[:, None] + (nodes + 1) / 2) / PARTS).reshape(-1, 1, 1)
        in_logs = (low > 0) & (high > 10 * low)
        with np.errstate(all="ignore"):
            low, high = np.where(in_logs, np.log(low), low), np.where(in_logs, np.log(high), high)
            at = low + (high - low) * share
            at = np.where(in_logs, np.exp(at), at)
        self._weights = (
            np.tile(weights, PARTS).reshape(-1, 1, 1) / (2 * PARTS) * (high - low) * np.where(in_logs, at, 1)
        )
        self.at = at.reshape(-1, draws.shape[1])

    def p_values(self, log_density: np.ndarray) -> np.ndarray:
        """Return a p-value of each column, for log densities at the points."""
        shares = (self._weights * np.exp(log_density.reshape(self._weights.shape))).sum(axis=0)
        shares = np.concatenate([shares, 1.0 - shares.sum(axis=0, keepdims=True)])
        counts = [
            np.histogram(drawn, edges)[0] if (np.diff(edges) > 0).all() else np.full(N_BINS - 2, np.nan)
            for drawn, edges in zip(self._second.T, self._edges.T, strict=True)
        ]
        n = len(self._second)
        return np.array([_p_value(np.append(c, n - c.sum()), s) for c, s in zip(counts, shares.T, strict=True)])


class Counts:
    """Whole numbers that were drawn, shape (n, columns), and all values ``at`` (m, columns) that have a mass.

    Parameters
    ----------
    draws : ndarray
    low, high : array_like, shape (columns,), optional
        The support, where the mass may be asked for nowhere else; what it has beyond the largest draw is not all asked
        for.
    """

    def __init__(self, draws: np.ndarray, low: ArrayLike = -np.inf, high: ArrayLike = np.inf) -> None:
        self._draws = draws
        values = np.arange(draws.min() - 3, 2 * draws.max() + 9)[:, None]
        self._values, self._is_outside = values, (values < low) | (values > high)
        self.at = np.clip(np.broadcast_to(values, self._is_outside.shape), low, high) + 0 * draws[:1]

    def p_values(self, log_mass: np.ndarray) -> np.ndarray:
        """Return a p-value of each column, for log masses of the values."""
        shares, edges = np.where(self._is_outside, 0.0, np.exp(log_mass)), np.append(self._values - 0.5, np.inf)
        n, found = len(self._draws), []
        for drawn, share in zip(self._draws.T, shares.T, strict=True):
            counts = np.histogram(drawn, edges)[0]
            group = np.clip((np.cumsum(share) - share / 2) * N_GROUPS, 0, N_GROUPS - 1).astype(int)
            drawn, expected = np.bincount(group, counts), np.bincount(group, share)
            is_common = expected * n >= FEWEST
            rest = drawn[~is_common].sum(), 1.0 - expected[is_common].sum()
            is_possible = np.all((share > 0) | (counts == 0))
            p_value = _p_value(np.append(drawn[is_common], rest[0]), np.append(expected[is_common], rest[1]))
            found.append(p_value if is_possible else 0.0)
        return np.array(found)


def _p_value(counts: np.ndarray, shares: np.ndarray) -> float:
    """Of counts, the last of which is of all that is rare; NaN of draws that have no bins."""
    n = counts.sum()
    if np.isnan(n):
        return np.nan
    if not np.isfinite(shares).all() or shares[-1] < -FEWEST / n:
        return 0.0
    if shares[-1] * n >= FEWEST:
        return float(stats.chisquare(counts, n * shares / shares.sum()).pvalue)
    common, rare = counts[:-1], float(stats.poisson(max(shares[-1], 0.0) * n + 1e-9).sf(counts[-1] - 1))
    if len(common) < 2:
        return rare
    return min(rare, float(stats.chisquare(common, common.sum() * shares[:-1] / shares[:-1].sum()).pvalue))


def integral_z(states: np.ndarray, log_density: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return z scores of E[q / p] = 1 over draws of p, shape (n, dim), for three normal densities q.

    They are well within the draws, with a quarter of their covariance, about their mean and a point on either side, so
    that the ratios have no heavy tail. Another law, or a density that does not integrate to one, fails.
    """
    first, second = np.array_split(states, 2)
    log_p, mean, covariance = log_density(second), first.mean(axis=0), np.atleast_2d(np.cov(first.T))
    side = np.linalg.cholesky(covariance) @ np.ones(len(mean)) / (2.5 * np.sqrt(len(mean)))
    found = []
    for centre in (mean, mean + side, mean - side):
        ratio = np.exp(stats.multivariate_normal(centre, covariance / 4).logpdf(second) - log_p)
        found.append((ratio.mean() - 1.0) / (ratio.std() / np.sqrt(len(ratio))))
    return np.array(found)
