"""A kernel that also proposes fresh draws from the base of the path: both chains of a pair the same one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence

from bread.couplings.kernel import BoolArray, CoupledKernel, FloatArray, Points


@dataclass
class Refreshed:
    """The moves of ``kernel``, then an independent proposal from the base, with Metropolis acceptance.

    At a small inverse temperature most proposals are accepted, by both chains of a pair at once, which then are one
    point: also where the base is wide, heavy-tailed or a funnel, and local moves would take very long.

    Parameters
    ----------
    kernel : CoupledKernel
        Leaves f_lambda = f_0 exp(lambda l) as it is.
    draw : callable
        Of seeds: draws from f_0, shape (n, d - 1).
    log_ratio : callable
        Of states (n, d - 1): l, shape (n,).

    Notes
    -----
    The last coordinate of a state is its inverse temperature lambda, which no move changes.
    """

    kernel: CoupledKernel
    draw: Callable[[Sequence[SeedSequence]], FloatArray]
    log_ratio: Callable[[FloatArray], FloatArray]

    @property
    def n_gradients(self) -> int:
        """What was spent."""
        return self.kernel.n_gradients

    @n_gradients.setter
    def n_gradients(self, value: int) -> None:
        self.kernel.n_gradients = value

    def at(self, states: FloatArray) -> Points:
        """Return what the kernel carries at ``states``."""
        return self.kernel.at(states)

    def move(self, points: Points, rngs: Sequence[Generator]) -> Points:
        """Move each row once."""
        points = self.kernel.move(points, rngs)
        fresh, ratio, level = self._propose(points, rngs)
        return points.where(self._accepts(points, ratio, level), fresh)

    def move_pairs(self, x: Points, y: Points, rngs: Sequence[Generator]) -> tuple[Points, Points, BoolArray]:
        """Move pairs once: one proposal for both chains, and one uniform number."""
        x, y, is_one = self.kernel.move_pairs(x, y, rngs)
        fresh, ratio, level = self._propose(x, rngs)
        takes_x = self._accepts(x, ratio, level)
        takes_y = np.where(is_one, takes_x, self._accepts(y, ratio, level))
        return x.where(takes_x, fresh), y.where(takes_y, fresh), is_one | (takes_x & takes_y)

    def _propose(self, points: Points, rngs: Sequence[Generator]) -> tuple[Points, FloatArray, FloatArray]:
        """Return proposals, their log ratios, and logs of uniform numbers."""
        drawn = self.draw([SeedSequence(int(rng.integers(2**63))) for rng in rngs])
        level = np.log(np.array([rng.random() for rng in rngs]))
        fresh = self.kernel.at(np.concatenate([drawn, points.states[:, -1:]], axis=1))
        with np.errstate(all="ignore"):
            return fresh, self.log_ratio(drawn), level

    def _accepts(self, points: Points, ratio: FloatArray, level: FloatArray) -> BoolArray:
        """Return whether proposals are taken; never where the change is NaN."""
        with np.errstate(all="ignore"):
            change = points.states[:, -1] * (ratio - self.log_ratio(points.states[:, :-1]))
            return np.asarray(level < change)
