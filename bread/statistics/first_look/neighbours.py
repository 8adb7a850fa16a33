"""Are these discrete draws the posterior's? Ratios of its mass at neighbours, where no gradient is.

With e one step of coordinate i, ``E[h(x) min(1, p(x + e) / p(x))] = E[h(x - e) min(1, p(x - e) / p(x))]`` for every
law p on whole numbers and every bounded h: both sides are the sum of ``h(x) min(p(x), p(x + e))``. The functions h
are 1, and tanh of the standardised coordinate itself and of every other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bread.statistics.agreement.agreement import effective_sample_size
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.means import COUNTER
from bread.statistics.first_look.chain_means import mean_test

MOST = 10  # coordinates that are looked at, two densities a draw each


def neighbour_test(
    draws: FloatArray,
    which: Sequence[int],
    log_density: Callable[[FloatArray], FloatArray],
    *,
    distinct_share: float = 1.0,
) -> tuple[list[tuple[str, int, int]], FloatArray]:
    """Test whether discrete coordinates of draws follow a density.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, d)
        Finite; others than those looked at may be continuous.
    which : sequence of int
        Coordinates that hold whole numbers; the first `MOST` are looked at.
    log_density : callable
        Maps states (n, d), which are the draws moved by one, to log densities (n,); -inf or NaN is density zero.
    distinct_share : float
        What effective sizes are multiplied by, where draws are copies.

    Returns
    -------
    functions : list of (str, int, int)
        Kind of function, the coordinate whose identity it is, and the coordinate that it is a function of.
    p_values : ndarray, shape (len(functions),)
        After Bonferroni; NaN where there are fewer than 100 effective draws.
    """
    n_chains, n_draws, d = draws.shape
    flat = draws.reshape(-1, d)
    spread = flat.std(axis=0)
    moves = np.where(spread > 0.0, spread, 1.0)
    z = (flat - flat.mean(axis=0)) / moves
    sizes = distinct_share * effective_sample_size(draws)
    functions: list[tuple[str, int, int]] = []
    p_values: list[FloatArray] = []
    base = log_density(flat)
    for i in which[:MOST]:
        up, down = (_accepted(flat, i, sign, base, log_density) for sign in (1.0, -1.0))
        here, before = np.tanh(z), np.tanh(z)
        before[:, i] = np.tanh(z[:, i] - 1.0 / moves[i])
        terms = np.column_stack([up - down, here * up[:, None] - before * down[:, None]])
        cap = np.minimum(sizes[i], np.r_[sizes[i], sizes])
        tested = mean_test(terms.reshape(n_chains, n_draws, d + 1), cap, distinct_share, COUNTER)
        functions += [("1", i, i), *(("tanh", i, j) for j in range(d))]
        p_values.append(tested.p_values)
    adjusted = np.concatenate(p_values) if p_values else np.zeros(0)
    return functions, np.minimum(1.0, len(adjusted) * adjusted)


def _accepted(
    flat: FloatArray, i: int, sign: float, base: FloatArray, log_density: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return min(1, p(x + sign e) / p(x)) at each state."""
    moved = flat.copy()
    moved[:, i] += sign
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.nan_to_num(np.exp(np.minimum(log_density(moved) - base, 0.0)), nan=0.0))
