"""A posterior as a density of what rotations leave alone, so that every search for a reference runs on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import Evolution, FloatArray, Kernel, Posterior
from bread.errors import DensityError
from bread.fitting.search.without_kernels import WithoutKernels
from bread.fitting.search.work import FitWork, plain
from bread.paths.kinds import Path, ReferencePath
from bread.paths.rotated import Gauge


class InvariantPosterior(WithoutKernels):
    """A posterior as a density of the invariant coordinates of a gauge, for fits.

    Parameters
    ----------
    posterior : Posterior
    gauge : Gauge
    """

    reason = "Invariant coordinates have no kernels."

    def __init__(self, posterior: Posterior, gauge: Gauge) -> None:
        self._posterior, self._gauge = posterior, gauge
        self._path = ReferencePath(plain(gauge.dim))

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, invariant coordinates, shape (len(seeds), n_invariant)."""
        return self._gauge.all_invariant(self._posterior.draw_base(path, seeds))

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log density less that of the path's reference (nats), shape (n,)."""
        assert path.reference is not None
        with np.errstate(invalid="ignore", over="ignore"):
            at = np.array([self._gauge.state(y) for y in states]).reshape(len(states), self._gauge.dim)
            volume = np.array([self._gauge.log_volume_element(y)[0] for y in states])
            own = self._posterior.log_density(self._path, at) + volume
            return np.asarray(own - path.reference.log_density(states))

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient, shape (n_invariant,), at one state."""
        at = self._gauge.state(state)
        if not np.isfinite(at).all():
            raise DensityError("A length of the invariant coordinates overflows. Take a smaller step.")
        value, gradient = self._posterior.end_gradient(self._path, at)
        volume, powers = self._gauge.log_volume_element(state)
        by_y = self._gauge.pull_back(state, gradient)
        by_y[self._gauge.are_logarithms] += powers
        return value + volume, by_y

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run a chain of the posterior's own coordinates at beta = 1."""
        run = self._posterior.evolve(self._path, kernel, 1.0, self._gauge.state(state), keep, seed)
        return replace(run, states=self._gauge.all_invariant(run.states))


def invariant_work(work: FitWork, gauge: Gauge) -> FitWork:
    """Return a fit of the same data set in the invariant coordinates of a gauge."""
    transformed = np.concatenate([work.transformed[gauge.others], gauge.are_logarithms[len(gauge.others) :]])
    return FitWork(InvariantPosterior(work.posterior, gauge), transformed, work.root, work.simulation)
