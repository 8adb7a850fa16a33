"""Rows that belong together: the numbers of temperatures at which one simulation was annealed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def group_index(simulation: ArrayLike | None, n_rows: int) -> IntArray:
    """Return the number of the group that each row belongs to, 0, 1, ...

    Parameters
    ----------
    simulation : array_like of int, shape (row,), or None
        Which simulation a row belongs to; None: each row is a simulation of its own.
    n_rows : int

    Raises
    ------
    InvalidArgumentError
        Not one label a row.
    """
    labels = np.arange(n_rows) if simulation is None else np.asarray(simulation)
    if labels.shape != (n_rows,):
        raise InvalidArgumentError(f"simulation must have shape ({n_rows},), one label a row, but got {labels.shape}.")
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def group_sums(values: FloatArray, index: IntArray) -> FloatArray:
    """Return the sum of ``values``, shape (row,), over the rows of each group, shape (group,)."""
    return np.asarray(np.bincount(index, weights=values), dtype=np.float64)


def group_means(values: FloatArray, index: IntArray) -> FloatArray:
    """Return the mean of ``values``, shape (row,), over the rows of each group, shape (group,)."""
    return np.asarray(group_sums(values, index) / np.bincount(index), dtype=np.float64)


def group_log_means(log_values: FloatArray, index: IntArray) -> FloatArray:
    """Return the log of the mean of exp(``log_values``), shape (row,), over the rows of each group."""
    total = np.full(int(index.max()) + 1, -np.inf)
    np.logaddexp.at(total, index, log_values)
    return np.asarray(total - np.log(np.bincount(index)), dtype=np.float64)
