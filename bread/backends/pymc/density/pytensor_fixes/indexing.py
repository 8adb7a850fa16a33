"""Elements of an array at constant places, taken and added to in C: PyTensor before 3 leaves both to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.basic import Constant
from pytensor.tensor.subtensor import AdvancedSubtensor
from pytensor.tensor.type import TensorType

from bread.backends.pymc.versions import ADDED_AT, TAKEN_AT


def indexed(node: Any) -> list[Any] | None:
    """Return what indexing returns, by one index of all elements in a row; None where places may change or are slices.

    Sums at places that come more than once are taken in the same order, so that all bits are the same.
    """
    array, *rest = node.inputs
    values = [] if isinstance(node.op, AdvancedSubtensor) else [rest.pop(0)]
    if any(value.type.dtype != array.type.dtype for value in values):
        return None
    places = _places(array.type.shape, rest)
    if places is None:
        return None
    row = array.reshape((-1,))
    if not values:
        return [_shaped(TAKEN_AT()(row, places.ravel()), places.shape)]
    (value,) = values
    if value.type.shape != places.shape or getattr(node.op, "ignore_duplicates", False):
        return None
    changed = ADDED_AT(set_instead_of_inc=node.op.set_instead_of_inc)(row, value.reshape((-1,)), places.ravel())
    return [_shaped(changed, array.type.shape)]


def _places(shape: tuple[int | None, ...], indices: list[Any]) -> NDArray[np.int64] | None:
    """Return which elements are taken, of all in a row; None where that is not known, or there are none."""
    if None in shape or len(indices) != len(shape) or len(shape) < 2:
        return None
    if not all(isinstance(one, Constant) and isinstance(one.type, TensorType) for one in indices):
        return None
    arrays = [np.asarray(one.data) for one in indices]
    if any(one.dtype.kind not in "iu" for one in arrays):
        return None
    places = np.zeros(np.broadcast(*arrays).shape, dtype=np.int64)
    for one, length in zip(arrays, shape, strict=True):
        if length is None or not ((one >= -length) & (one < length)).all():
            return None
        signed = one.astype(np.int64)
        places = places * length + np.where(signed < 0, signed + length, signed)
    return places if places.size else None


def _shaped(row: Any, shape: tuple[int | None, ...]) -> Any:
    """Return the elements of a row in another shape."""
    return row if len(shape) == 1 else row.reshape(shape)
