"""Draws that are copies of others: how many different ones there are, and which chains are the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALMOST_DISTINCT = 0.95  # share from which on nothing is said


class Repeats(NamedTuple):
    """Result of `find_repeats`.

    Attributes
    ----------
    distinct_share : float
        What effective sample sizes are to be multiplied by, in (0, 1]: 1 where no draw is repeated, 1/4 where four
        chains are copies of one, 1/2 for a sample that was drawn with replacement from as many draws.
    n_places, n_distinct : int
        Draws, those that repeat the one before them in their chain not counted; and how many of these differ.
    same_chains : tuple of int
        Chains that are the same, draw by draw, as an earlier one.
    """

    distinct_share: float
    n_places: int
    n_distinct: int
    same_chains: tuple[int, ...]


def find_repeats(draws: NDArray[np.float64]) -> Repeats:
    """Look for draws that come again elsewhere: copied chains, chains that share seeds, resampled draws.

    A sampler may stay where it is, so that a draw equals the one before it; autocorrelations see that. To come back to
    a former state of continuous parameters, or to another chain's, has probability zero. Such a draw adds nothing, and
    autocorrelations do not see it.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, d)
        Columns that hold whole numbers alone are left out; without others nothing is found.

    Returns
    -------
    Repeats
        If state k stands in c_k places, the share is sum(c)^2 / sum(c^2) by the number of places.

    References
    ----------
    Kish (1965), "Survey sampling", section 11.7.
    """
    n_chains, n_draws = draws.shape[:2]
    columns = draws[:, :, (draws != np.round(draws)).any(axis=(0, 1))]
    if not columns.shape[2]:
        return Repeats(1.0, n_chains * n_draws, n_chains * n_draws, ())
    has_moved = np.ones((n_chains, n_draws), dtype=bool)
    has_moved[:, 1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=2)
    places = columns[has_moved]
    counts = np.unique(places, axis=0, return_counts=True)[1]
    share = float(len(places) ** 2 / np.square(counts.astype(np.float64)).sum() / len(places))
    same = [j for j in range(1, n_chains) if any(np.array_equal(columns[i], columns[j]) for i in range(j))]
    return Repeats(min(share, 1.0), len(places), len(counts), tuple(same))
