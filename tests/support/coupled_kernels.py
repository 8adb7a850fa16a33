"""Coupled kernels whose laws are known at every iteration, and broken ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import norm

from bread.couplings.kernel import without_density
from bread.couplings.proposals import reflection_maximal


@dataclass
class Autoregression:
    """x' = rho x + sqrt(1 - rho^2) z, with target N(0, 1), reflection-maximally coupled.

    ``glue`` > 0 breaks the coupling: a pair closer than that becomes one point.
    """

    rho: float
    glue: float = 0.0
    n_gradients: int = field(default=0, init=False)

    def at(self, states):
        return without_density(states)

    def move(self, points, rngs):
        noise = np.array([[rng.standard_normal(), rng.random()] for rng in rngs])[:, :1]
        return without_density(self.rho * points.states + np.sqrt(1 - self.rho**2) * noise)

    def move_pairs(self, x, y, rngs):
        drawn = np.array([[rng.standard_normal(), rng.random()] for rng in rngs])
        spread = np.sqrt(1 - self.rho**2)
        other, is_one = reflection_maximal(self.rho * (x.states - y.states) / spread, drawn[:, :1], drawn[:, 1])
        is_one = is_one | (np.abs(x.states - y.states)[:, 0] < self.glue)
        new_x = self.rho * x.states + spread * drawn[:, :1]
        new_y = np.where(is_one[:, None], new_x, self.rho * y.states + spread * other)
        return without_density(new_x), without_density(new_y), is_one

    def total_variation(self, t, mean, sd):
        """Return TV(pi_t, N(0, 1)) of chains that start from N(mean, sd^2), by integration."""
        grid = np.linspace(-15.0, 15.0, 60_001)
        law = norm(self.rho**t * mean, np.sqrt(1 + self.rho ** (2 * t) * (sd**2 - 1)))
        return 0.5 * np.sum(np.abs(law.pdf(grid) - norm.pdf(grid))) * (grid[1] - grid[0])


@dataclass
class FiniteKernel:
    """A chain on whole numbers with transition ``matrix``; rows are maximally coupled, residuals by one uniform.

    ``leak`` > 0 breaks the coupling: with that probability the second chain copies the first.
    """

    matrix: np.ndarray
    leak: float = 0.0
    n_gradients: int = field(default=0, init=False)

    def at(self, states):
        return without_density(states)

    def move(self, points, rngs):
        rows = points.states[:, 0].astype(int)
        new = [self._draw(self.matrix[row], rng.random()) for row, rng in zip(rows, rngs, strict=True)]
        return without_density(np.array(new, dtype=float)[:, None])

    def move_pairs(self, x, y, rngs):
        new = np.empty((len(x), 2))
        for i, rng in enumerate(rngs):
            p, q = self.matrix[int(x.states[i, 0])], self.matrix[int(y.states[i, 0])]
            common, u = np.minimum(p, q), rng.random(3)
            if u[0] < common.sum():
                new[i] = self._draw(common, u[1])
            else:
                new[i] = self._draw(p - common, u[1]), self._draw(q - common, u[1])
            if u[2] < self.leak:
                new[i, 1] = new[i, 0]
        return without_density(new[:, :1]), without_density(new[:, 1:]), new[:, 0] == new[:, 1]

    @staticmethod
    def _draw(weights, uniform):
        total = np.cumsum(weights)
        return int(np.searchsorted(total, uniform * total[-1], side="right"))
