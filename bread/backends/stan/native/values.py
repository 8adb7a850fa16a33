"""Values of a Stan program: to JSON for its data block, and from the flat arrays that it writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.errors import InvalidArgumentError


@dataclass(frozen=True)
class Layout:
    """Names and shapes of variables, in the order in which a program writes them, each by column.

    Attributes
    ----------
    names : tuple of str
    shapes : tuple of tuple of int
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def n_values(self) -> int:
        """Number of values of all variables together."""
        return sum(self.sizes)

    def split(self, values: FloatArray) -> dict[str, FloatArray]:
        """Return each variable, (n, *shape), of flat values (n, n_values)."""
        result, begin = {}, 0
        for name, shape, size in zip(self.names, self.shapes, self.sizes, strict=True):
            flat = values[:, begin : begin + size]
            by_row = flat.reshape((len(values), *shape[::-1]))
            result[name] = np.ascontiguousarray(by_row.transpose((0, *range(len(shape), 0, -1))))
            begin += size
        return result

    def join(self, variables: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return flat values (n, n_values) of variables, each (n, *shape); the inverse of `split`.

        Raises
        ------
        InvalidArgumentError
            A variable is missing or has another shape.
        """
        parts = []
        for name, shape in zip(self.names, self.shapes, strict=True):
            if name not in variables:
                raise InvalidArgumentError(f"the parameter {name!r} is missing; received {sorted(variables)}.")
            values = np.asarray(variables[name], dtype=np.float64)
            if values.ndim == 0 or values.shape[1:] != shape:
                raise InvalidArgumentError(
                    f"the parameter {name!r} must have the shape (n, {', '.join(map(str, shape))}) but has the shape "
                    f"{values.shape}."
                )
            by_column = values.transpose((0, *range(values.ndim - 1, 0, -1)))
            parts.append(by_column.reshape((len(values), math.prod(shape))))
        return np.concatenate(parts, axis=1) if parts else np.empty((0, 0))


def data_json(data: Mapping[str, Any]) -> str:
    """Return data as JSON in CmdStan's format.

    Parameters
    ----------
    data : mapping of str to numbers, sequences, arrays, or mappings (tuples of Stan, keys "1", "2", ...)
        Whole numbers stay whole: Stan refuses 1.0 where it wants an int.

    Returns
    -------
    str

    Raises
    ------
    InvalidArgumentError
        A value is neither; None and text are not data.
    """
    try:
        return json.dumps({name: _plain(value, name) for name, value in data.items()})
    except RecursionError:
        raise InvalidArgumentError(
            "data hold a value that is nested too deeply; Stan's have a few dimensions."
        ) from None


def joined_json(one: str, other: str) -> str:
    """Return the data of both texts of `data_json`, which share no name, as one."""
    return one if other == "{}" else other if one == "{}" else f"{one[:-1]}, {other[1:]}"


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item, name) for key, item in value.items()}
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
        return [_plain(item, name) for item in value]
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"data {name!r} must be a rectangular array of numbers: {error}.") from None
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind not in "iuf":
        raise InvalidArgumentError(
            f"data {name!r} must be numbers, or an array of them; received {type(value).__name__} {str(value)[:60]!r}."
        )
    return array.tolist()
