"""Where does an exact draw stand in the chain that runs through it? The rank test of Gandy and Scott.

Put an exact draw at a random position of a chain of L states and run the kernel both ways from it. If the kernel is
reversible, the whole chain is stationary and the draw is any of its states, so that the rank of h(draw) among the L
values of h, ties broken at random, is uniform: exact for every number of chains and every function h.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import rank_p_values
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.symmetry import symmetry_test

KINDS = ("location", "spread", "any change")


def chain_ranks(
    start: ArrayLike, backward: ArrayLike, forward: ArrayLike, position: ArrayLike, uniforms: ArrayLike
) -> FloatArray:
    """Return the relative ranks of exact draws among the states of the chains through them.

    Parameters
    ----------
    start : array_like, shape (n, F)
        Functions of the exact draws, which chains in both directions start from.
    backward, forward : array_like, shape (n, L - 1, F)
        Functions of later states of two independent chains from each draw, equally spaced.
    position : array_like of int, shape (n,)
        How many states of the backward chain count, drawn uniformly from 0 to L - 1. The rest are of the forward one.
    uniforms : array_like, shape (n, F)
        Independent draws from U(0, 1): they break ties and make the rank continuous.

    Returns
    -------
    ndarray, shape (n, F)
        In [0, 1], exactly uniform along rows.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match, or positions outside of 0 to L - 1.

    References
    ----------
    Gandy & Scott (2020), "Unit testing for MCMC and other Monte Carlo methods", arXiv:2001.06465.
    """
    x, back, ahead, v = (np.asarray(a, dtype=np.float64) for a in (start, backward, forward, uniforms))
    place: NDArray[np.int64] = np.asarray(position, dtype=np.int64)
    shapes_match = back.ndim == 3 and back.shape == ahead.shape and back[:, 0].shape == x.shape == v.shape
    if not shapes_match or place.shape != x.shape[:1]:
        raise InvalidArgumentError(
            f"start and uniforms must have shape (n, F), position (n,), backward and forward (n, L - 1, F), but got "
            f"{x.shape}, {v.shape}, {place.shape}, {back.shape} and {ahead.shape}."
        )
    n_others = back.shape[1]
    if ((place < 0) | (place > n_others)).any():
        raise InvalidArgumentError(f"positions must lie in 0 to {n_others}, but range to {place.min()}, {place.max()}.")
    steps = np.arange(n_others)
    below, tied = np.zeros(x.shape), np.ones(x.shape)  # the draw is tied with itself
    for others, counts in ((back, place), (ahead, n_others - place)):
        is_in = (steps < counts[:, None])[:, :, None]
        below += ((others < x[:, None]) & is_in).sum(axis=1)
        tied += ((others == x[:, None]) & is_in).sum(axis=1)
    return np.asarray(np.clip((below + v * tied) / (n_others + 1), 0.0, 1.0), dtype=np.float64)


def chain_rank_p_values(ranks: ArrayLike) -> FloatArray:
    """Return p-values of uniformity of each function's ranks.

    Parameters
    ----------
    ranks : array_like, shape (n, F)
        From `chain_ranks`.

    Returns
    -------
    ndarray, shape (3, F)
        Rows as in `KINDS`: that the draw stands too low or too high, that it stands too far out or too far in, and
        Kolmogorov and Smirnov's. All exact; dependent, so combine them by Bonferroni.
    """
    u = np.asarray(ranks, dtype=np.float64)
    centred = 2.0 * u - 1.0
    return np.stack(
        [symmetry_test(centred).p_values, symmetry_test(2.0 * np.abs(centred) - 1.0).p_values, rank_p_values(u)]
    )
