"""Products of pairs of coordinates: what a comparison of one coordinate at a time cannot see."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from bread.statistics.agreement.draws import are_constant
from bread.statistics.bounds.bounds import FloatArray


def products_of_pairs(
    user: FloatArray, annealed: FloatArray, names: tuple[str, ...], most: int
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return products of pairs of coordinates, each centred at the median of all draws.

    If there are more than ``most`` pairs, those with the largest rank correlation in all draws together are
    taken. That choice does not look at how the two sets of draws differ.

    Parameters
    ----------
    user : ndarray, shape (chain, draw, d)
    annealed : ndarray, shape (n, d)
    names : tuple of str, length d
    most : int
        Largest number of pairs.

    Returns
    -------
    names : tuple of str, length n_pairs
        "mu * tau".
    user, annealed : ndarray, shapes (chain, draw, n_pairs) and (n, n_pairs)
        Coordinates that are constant are in no pair.
    """
    flat = user.reshape(-1, user.shape[2])
    varying = np.flatnonzero(~are_constant(flat, annealed))
    pairs = list(combinations(varying.tolist(), 2))
    if len(pairs) > most:
        both = np.concatenate([flat, annealed])[:, varying]
        correlation = np.abs(np.corrcoef(rankdata(both, axis=0), rowvar=False))
        strength = correlation[np.triu_indices(len(varying), 1)]  # the order of `combinations`
        pairs = [pairs[i] for i in sorted(np.argsort(-strength, kind="stable")[:most].tolist())]
    centre = np.median(np.concatenate([flat, annealed]), axis=0)
    left, right = np.array([i for i, _ in pairs], dtype=np.int64), np.array([j for _, j in pairs], dtype=np.int64)
    ours, theirs = user - centre, annealed - centre
    return (
        tuple(f"{names[i]} * {names[j]}" for i, j in pairs),
        ours[..., left] * ours[..., right],
        theirs[:, left] * theirs[:, right],
    )
