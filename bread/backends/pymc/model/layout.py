"""How the free variables of a PyMC model lie in a flat state vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray


@dataclass(frozen=True)
class StateLayout:
    """Names, shapes and dtypes of the value variables, in the order in which they are raveled.

    Attributes
    ----------
    names : tuple of str
        Value variable names ("tau_log__", "theta"), in the order of the model's free variables.
    shapes : tuple of tuple of int
    dtypes : tuple of str
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of coordinates of each variable."""
        return tuple(int(np.prod(shape, dtype=int)) for shape in self.shapes)

    @cached_property
    def dim(self) -> int:
        """Number of coordinates."""
        return sum(self.sizes)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Label of each coordinate: the name, with indices where the variable is no scalar."""
        return tuple(
            name if shape == () else f"{name}[{', '.join(map(str, index))}]"
            for name, shape in zip(self.names, self.shapes, strict=True)
            for index in np.ndindex(shape)
        )

    @property
    def discrete(self) -> NDArray[np.bool_]:
        """True for coordinates of integer and boolean variables; shape (dim,)."""
        return np.repeat([np.dtype(dtype).kind in "iub" for dtype in self.dtypes], self.sizes)

    def flatten(self, point: Mapping[str, Any]) -> FloatArray:
        """Return the state vector of shape (dim,) of a point."""
        parts = [np.asarray(point[name], dtype=np.float64).reshape(-1) for name in self.names]
        return np.concatenate(parts) if parts else np.empty(0)

    def unflatten(self, state: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the point of a state vector; integers are restored to their dtype."""
        point: dict[str, NDArray[Any]] = {}
        offset = 0
        for name, shape, dtype, size in zip(self.names, self.shapes, self.dtypes, self.sizes, strict=True):
            point[name] = state[offset : offset + size].reshape(shape).astype(dtype)
            offset += size
        return point
