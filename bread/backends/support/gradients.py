"""Gradients at several states, by backends that offer them at one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import numpy as np

from bread.backends.values import FloatArray
from bread.errors import DensityError
from bread.paths.kinds import Path


class HasEndGradient(Protocol):
    """The part of a posterior that `end_gradients` needs."""

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient, shape (dim,), at one state."""
        ...


def end_gradients(posterior: HasEndGradient, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log f_1 (nats) and its gradient at states, shapes (n,) and (n, dim); NaN where it raises.

    All in one call where a posterior has `bread.backends.base.Posterior.end_gradients`, which not every one inherits.
    """
    together: Callable[[Path, FloatArray], tuple[FloatArray, FloatArray]]
    together = getattr(posterior, "end_gradients", None) or (lambda path, rows: one_by_one(posterior, path, rows))
    return together(path, states)


def one_by_one(posterior: HasEndGradient, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the same, by a call a state."""
    values, gradients = np.full(len(states), np.nan), np.full(np.shape(states), np.nan)
    for row, state in enumerate(states):
        with suppress(DensityError):
            values[row], gradients[row] = posterior.end_gradient(path, state)
    return values, gradients
