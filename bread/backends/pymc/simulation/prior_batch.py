"""Many prior draws of a PyMC model in a few calls, where none needs a seed of its own; many draws mapped at once.

Calling a graph for one draw costs a third of a millisecond to one; most of it is what PyTensor and NumPy need for any
call. In a batch every free variable has one more leading axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.pymc.simulation.batched import MOST_NUMBERS, Function, in_batches
from bread.backends.pymc.simulation.predicting import Draws
from bread.backends.pymc.simulation.streams import Part, generators

N_COMPARED = 8  # draws made one by one, with which those of a batch are compared
FEWEST_VALUES = 0.9  # of the draws of a batch have a value of their own, where all of those have


def draw_batch(draws: Draws, n: int, seed: SeedSequence, one_by_one: Callable[[int], FloatArray]) -> FloatArray | None:
    """Return ``n`` states, shape (n, dim); None where a call fails, or gives draws what they do not have by themselves.

    Parameters
    ----------
    draws : Draws
        Of `bread.backends.pymc.simulation.prior_graph.PriorGraph.draw_many`.
    n : int
    seed : SeedSequence
    one_by_one : callable
        Returns so many states that were drawn by themselves.
    """
    singles = one_by_one(N_COMPARED)
    rows = max(1, MOST_NUMBERS // max(singles.shape[1], 1))
    parts = []
    try:
        with np.errstate(all="ignore"):
            for index, low in enumerate(range(0, n, rows)):
                size = min(rows, n - low)
                values = draws.call(np.int64(size), *generators(seed, Part.PARAMETERS, index, draws.n_generators))
                flat = [np.asarray(value, dtype=np.float64).reshape(size, -1) for value in values]
                parts.append(np.concatenate(flat, axis=1))
        states = np.concatenate(parts)
    except Exception:  # a distribution of the user's own that cannot draw many at once, say
        return None
    if states.shape != (n, singles.shape[1]) or not np.isfinite(states).all():
        return None
    for column, single in zip(states.T, singles.T, strict=True):
        if len(np.unique(single)) == len(single) and len(np.unique(column)) < FEWEST_VALUES * n:
            return None
    return states


def unconstrain_batch(
    function: Function,
    columns: Sequence[NDArray[Any]],
    one_by_one: Callable[[Sequence[NDArray[Any]], int], FloatArray],
) -> FloatArray | None:
    """Return the states of many draws, shape (n, dim); None where one raises, or the first or last are not right.

    Parameters
    ----------
    function : callable
        Of `bread.backends.pymc.simulation.prior_graph.PriorGraph.unconstrain_many`.
    columns : sequence of ndarray, each (n, ...)
        The free variables.
    one_by_one : callable
        Returns the states of the draws in some columns, and takes how many there are.
    """
    n, ends = len(columns[0]), [0, -1]
    each = one_by_one([column[ends] for column in columns], len(ends))
    try:
        with np.errstate(all="ignore"):
            parts = in_batches(function, columns, n, each.shape[1])
        states = np.concatenate([np.asarray(part, dtype=np.float64).reshape(n, -1) for part in parts], axis=1)
    except Exception:  # one draw raises: it is found one by one
        return None
    return states if np.array_equal(states[ends], each, equal_nan=True) else None
