"""Products of arrays that are bit-equal for any number of rows (BLAS is not), and what densities need of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray

Statistics = dict[str, FloatArray]
"""What a density needs of the data: arrays whose first axis is the row (one row for all chains, or one a chain)."""


def apply_matrix(matrix: NDArray[np.floating[Any]], states: FloatArray) -> FloatArray:
    """Return ``states @ matrix.T`` by elementwise products, bit-equal for any number of rows (BLAS is not)."""
    if matrix.shape == (1, 1):
        return np.asarray(matrix[0, 0] * states)
    return np.asarray((matrix * states[..., None, :]).sum(axis=-1))


def row_dot(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the inner products over the last axis, bit-equal for any number of rows."""
    if left.shape[-1] == 1:
        return np.asarray(left[..., 0] * right[..., 0])
    return np.asarray((left * right).sum(axis=-1))
