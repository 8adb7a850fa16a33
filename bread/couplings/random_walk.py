"""A random walk with Metropolis acceptance, whose proposals are maximally coupled: chains meet in few dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from bread.couplings.kernel import BoolArray, FloatArray, Points
from bread.couplings.proposals import reflection_maximal, steps_apart


@dataclass
class RandomWalk:
    """Normal proposals, reflection-maximally coupled, and common uniform numbers of acceptance.

    Parameters
    ----------
    log_density : callable
        Of states (n, d): log densities (n,), up to a constant, -inf or NaN where there is none.
    spread : ndarray, shape (d,)
        Standard deviations of the proposal; 0 holds a coordinate.

    References
    ----------
    Jacob, O'Leary & Atchade (2020), "Unbiased Markov chain Monte Carlo methods with couplings", JRSS B 82, 543-600,
    section 4.1.
    """

    log_density: Callable[[FloatArray], FloatArray]
    spread: FloatArray
    n_gradients: int = field(default=0, init=False)

    def at(self, states: FloatArray) -> Points:
        """Evaluate the density at ``states``."""
        with np.errstate(all="ignore"):
            values = self.log_density(states)
        values = np.where(np.isnan(values), -np.inf, values)
        return Points(np.array(states, dtype=float), values, np.zeros(np.shape(states)))

    def move(self, points: Points, rngs: Sequence[Generator]) -> Points:
        """Move each row once."""
        noise, uniform, _ = self._random(points, rngs)
        proposed = self.at(points.states + self.spread * noise)
        return points.where(_accepts(points, proposed, uniform), proposed)

    def move_pairs(self, x: Points, y: Points, rngs: Sequence[Generator]) -> tuple[Points, Points, BoolArray]:
        """Move pairs once."""
        noise, uniform, choice = self._random(x, rngs)
        other, is_one = reflection_maximal(steps_apart(x.states - y.states, self.spread), noise, choice)
        first = self.at(x.states + self.spread * noise)
        steps = y.states + self.spread * other
        steps[is_one] = first.states[is_one]
        second = self.at(steps)
        second.log_density[is_one] = first.log_density[is_one]
        takes_x, takes_y = _accepts(x, first, uniform), _accepts(y, second, uniform)
        return x.where(takes_x, first), y.where(takes_y, second), is_one & takes_x & takes_y

    def _random(self, points: Points, rngs: Sequence[Generator]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return noise, uniforms of acceptance, uniforms of the coupling."""
        noise = np.array([rng.standard_normal(points.states.shape[1]) for rng in rngs])
        uniforms = np.array([rng.random(2) for rng in rngs])
        return noise, uniforms[:, 0], uniforms[:, 1]


def _accepts(points: Points, proposed: Points, uniform: FloatArray) -> BoolArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.log(uniform) < proposed.log_density - points.log_density)
