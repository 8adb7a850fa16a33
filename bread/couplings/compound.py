"""Coupled kernels one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from bread.couplings.hmc import MixedKernel
from bread.couplings.kernel import BoolArray, FloatArray, Points


@dataclass
class Compound:
    """The moves of several kernels in a fixed order.

    Pairs that one of them made one point stay one through the others: proposals and acceptances are then the same.

    Parameters
    ----------
    kernels : sequence of MixedKernel
        Of one density.
    """

    kernels: Sequence[MixedKernel]
    n_gradients: int = 0

    def at(self, states: FloatArray) -> Points:
        """Evaluate density and gradient at ``states``."""
        return self.kernels[0].at(states)

    def move(self, points: Points, rngs: Sequence[Generator]) -> Points:
        """Move each row once by every kernel."""
        for kernel in self.kernels:
            points = kernel.move(points, rngs)
        self.n_gradients = sum(kernel.n_gradients for kernel in self.kernels)
        return points

    def move_pairs(self, x: Points, y: Points, rngs: Sequence[Generator]) -> tuple[Points, Points, BoolArray]:
        """Move pairs once by every kernel."""
        x, y, is_one = self.kernels[0].move_pairs(x, y, rngs)
        for kernel in self.kernels[1:]:
            x, y, meets = kernel.move_pairs(x, y, rngs)
            is_one = is_one | meets
        self.n_gradients = sum(kernel.n_gradients for kernel in self.kernels)
        return x, y, is_one
