"""What a coupled kernel is: moves of chains, and of pairs of chains, each of which moves as it would alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
DensityGradient = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass
class Points:
    """States of some chains, one a row, with what a kernel carries along.

    Attributes
    ----------
    states : ndarray, shape (n, d)
    log_density : ndarray, shape (n,)
        In nats, up to a constant. Zeros for kernels that carry none.
    gradients : ndarray, shape (n, d)
        Of the log density. Zeros for kernels that carry none.
    """

    states: FloatArray
    log_density: FloatArray
    gradients: FloatArray

    def __len__(self) -> int:
        return len(self.states)

    def rows(self, which: NDArray[np.int64] | BoolArray) -> Points:
        """Return a copy of some rows."""
        return Points(self.states[which], self.log_density[which], self.gradients[which])

    def put(self, which: NDArray[np.int64] | BoolArray, other: Points) -> None:
        """Write rows of ``other`` to the rows ``which``."""
        self.states[which] = other.states
        self.log_density[which] = other.log_density
        self.gradients[which] = other.gradients

    def where(self, takes: BoolArray, other: Points) -> Points:
        """Return rows of ``other`` where ``takes``, rows of this one elsewhere."""
        return Points(
            np.where(takes[:, None], other.states, self.states),
            np.where(takes, other.log_density, self.log_density),
            np.where(takes[:, None], other.gradients, self.gradients),
        )


class CoupledKernel(Protocol):
    """A Markov kernel, and a coupling of it with itself.

    Both chains of a pair must move as each would alone, whatever the other does: bounds and estimates are about the
    kernel that `move` is. Chains that have met stay together, because they are moved as one from there.
    """

    n_gradients: int

    def at(self, states: FloatArray) -> Points:
        """Return what the kernel carries at ``states``, shape (n, d)."""
        ...

    def move(self, points: Points, rngs: Sequence[Generator]) -> Points:
        """Move each row once, by its own generator."""
        ...

    def move_pairs(self, x: Points, y: Points, rngs: Sequence[Generator]) -> tuple[Points, Points, BoolArray]:
        """Move row i of ``x`` and of ``y`` together once; return both, and whether they are now one point exactly."""
        ...


def without_density(states: FloatArray) -> Points:
    """Return points of a kernel that carries no density."""
    return Points(np.array(states, dtype=float), np.zeros(len(states)), np.zeros(np.shape(states)))
