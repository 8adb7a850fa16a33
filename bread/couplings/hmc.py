"""A kernel whose chains contract and then meet: Hamiltonian Monte Carlo, followed by a small random walk.

Pairs share the momenta of HMC and the uniform numbers of acceptance, which draws them together where the density is
log concave; the random walk's proposals are maximally coupled, so that near pairs become one point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from bread.couplings.kernel import BoolArray, DensityGradient, FloatArray, Points
from bread.couplings.proposals import reflection_maximal, steps_apart

_JITTER = (0.5, 1.5)  # of the step size at each iteration, so that no orbit closes on itself at every step
MAX_LEAPFROG = 64


@dataclass
class MixedKernel:
    """One iteration: a trajectory of HMC, then a step of a random walk, both with Metropolis acceptance.

    Parameters
    ----------
    density_gradient : callable
        Of states (n, d): log densities (n,), -inf or NaN where there is none, and gradients (n, d).
    step_size : float
        Of the leapfrog integrator, in units of ``scales``.
    n_leapfrog : int
        Steps of a trajectory.
    scales : ndarray, shape (d,)
        Standard deviations of the coordinates, more or less; 0 holds a coordinate.
    walk : float
        Standard deviation of the random walk, in units of ``scales``; 0 for none.

    References
    ----------
    Heng & Jacob (2019), "Unbiased Hamiltonian Monte Carlo with couplings", Biometrika 106, 287-302.
    """

    density_gradient: DensityGradient
    step_size: float
    n_leapfrog: int
    scales: FloatArray
    walk: float
    n_gradients: int = field(default=0, init=False)
    acceptance: FloatArray = field(default_factory=lambda: np.zeros(0), init=False)

    def at(self, states: FloatArray) -> Points:
        """Evaluate density and gradient at ``states``."""
        with np.errstate(all="ignore"):
            values, gradients = self.density_gradient(states)
        self.n_gradients += len(states)
        return Points(np.array(states, dtype=float), np.where(np.isnan(values), -np.inf, values), gradients)

    def move(self, points: Points, rngs: Sequence[Generator]) -> Points:
        """Move each row once."""
        momenta, jitter, uniforms, noise, _ = self._random(points, rngs)
        points = self._trajectory(points, momenta, jitter, np.log(uniforms[:, 0]))
        if self.walk == 0.0:
            return points
        proposed = self.at(points.states + self.walk * self.scales * noise)
        return points.where(_accepts(proposed.log_density - points.log_density, np.log(uniforms[:, 1])), proposed)

    def move_pairs(self, x: Points, y: Points, rngs: Sequence[Generator]) -> tuple[Points, Points, BoolArray]:
        """Move pairs once: common momenta, jitter and uniforms; reflection-maximal proposals of the walk."""
        n = len(x)
        momenta, jitter, uniforms, noise, choice = self._random(x, rngs)
        both = Points(
            np.concatenate([x.states, y.states]),
            np.concatenate([x.log_density, y.log_density]),
            np.concatenate([x.gradients, y.gradients]),
        )
        log_uniform = np.log(np.tile(uniforms, (2, 1)))
        both = self._trajectory(both, np.tile(momenta, (2, 1)), np.tile(jitter, 2), log_uniform[:, 0])
        first, second = np.arange(n), np.arange(n, 2 * n)
        if self.walk == 0.0:
            return both.rows(first), both.rows(second), np.zeros(n, dtype=bool)
        spread = self.walk * self.scales
        other, is_one = reflection_maximal(steps_apart(both.states[:n] - both.states[n:], spread), noise, choice)
        steps = both.states + spread * np.concatenate([noise, other])
        steps[n:][is_one] = steps[:n][is_one]
        proposed = self.at(steps)
        # one point has one density, also where rounding depends on the place in a batch
        proposed.log_density[n:][is_one] = proposed.log_density[:n][is_one]
        proposed.gradients[n:][is_one] = proposed.gradients[:n][is_one]
        accepted = _accepts(proposed.log_density - both.log_density, log_uniform[:, 1])
        both = both.where(accepted, proposed)
        return both.rows(first), both.rows(second), is_one & accepted[:n] & accepted[n:]

    def _random(
        self, points: Points, rngs: Sequence[Generator]
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return momenta, jitter, uniforms of both acceptances, noise of the walk, uniforms of its coupling."""
        d = points.states.shape[1]
        normal = np.array([rng.standard_normal(2 * d) for rng in rngs])
        uniform = np.array([rng.random(4) for rng in rngs])
        jitter = _JITTER[0] + (_JITTER[1] - _JITTER[0]) * uniform[:, 0]
        return normal[:, :d], jitter, uniform[:, 1:3], normal[:, d:], uniform[:, 3]

    def _trajectory(self, points: Points, momenta: FloatArray, jitter: FloatArray, log_uniform: FloatArray) -> Points:
        """Return where a trajectory ends, or where it began."""
        size = (self.step_size * jitter)[:, None]
        with np.errstate(all="ignore"):
            end, momentum = points, momenta
            for _ in range(self.n_leapfrog):
                momentum = momentum + 0.5 * size * self.scales * end.gradients
                end = self.at(end.states + size * self.scales * momentum)
                momentum = momentum + 0.5 * size * self.scales * end.gradients
            change = end.log_density - points.log_density + 0.5 * np.sum(momenta**2 - momentum**2, axis=1)
        change = np.where(np.isnan(change), -np.inf, change)
        self.acceptance = np.exp(np.minimum(change, 0.0))
        return points.where(_accepts(change, log_uniform), end)


def _accepts(change: FloatArray, log_uniform: FloatArray) -> BoolArray:
    """Return whether a proposal is taken; never where the change is NaN."""
    with np.errstate(invalid="ignore"):
        return np.asarray(log_uniform < change)
