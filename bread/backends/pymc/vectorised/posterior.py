"""The posterior of a PyMC model whose chains run on JAX; everything else is PyMC's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import AnnealRun, Direction, Evolution, FloatArray, Kernel
from bread.backends.pymc.posterior import PyMCPosterior
from bread.backends.pymc.vectorised.engine import Request, VectorEngine
from bread.backends.support.jax_references import is_known
from bread.paths.kinds import Path


class ChainsOfOne(Protocol):
    """Chains of one data set, with what `VectorPosterior.anneal` takes beside schedule and direction."""

    posterior: PyMCPosterior
    path: Path
    kernel: Kernel
    initial: FloatArray
    seeds: Sequence[SeedSequence]


@dataclass(frozen=True)
class VectorPosterior(PyMCPosterior):
    """A PyMC model with one data set, whose frozen kernel is BlackJAX's; see `PyMCPosterior`.

    The kernel is adapted by PyMC, and moved along the path by BlackJAX. Along a reference whose formula is not known,
    such as one of the user's, PyMC's step methods move the chains both ways.

    Attributes
    ----------
    vector : VectorEngine
    """

    vector: VectorEngine

    @property
    def takes_correlation(self) -> bool:
        """No: see `bread.backends.base.Posterior.takes_correlation`."""
        return False

    def anneal(
        self,
        path: Path,
        betas: FloatArray,
        kernel: Kernel,
        *,
        direction: Direction,
        initial: FloatArray,
        seeds: Sequence[SeedSequence],
    ) -> AnnealRun:
        """Run one chain per row of ``initial``; see `bread.backends.base.Posterior.anneal`."""
        if not is_known(path.reference):
            return super().anneal(path, betas, kernel, direction=direction, initial=initial, seeds=seeds)
        betas = np.asarray(betas, dtype=np.float64)
        request = self.request(path, betas, kernel, direction, initial, seeds)
        return self.vector.anneal([request], betas, direction)[0]

    def request(
        self,
        path: Path,
        betas: FloatArray,
        kernel: Kernel,
        direction: Direction,
        initial: FloatArray,
        seeds: Sequence[SeedSequence],
    ) -> Request:
        """Return checked chains of this data set, to be run with those of others."""
        initial = np.asarray(initial, dtype=np.float64)
        self._require_run(betas, direction, initial, seeds)
        self.engine.set_path(path)  # refuses a path that the model cannot follow
        self._require_settings(kernel)
        return Request(self.data, path, kernel, initial, seeds)

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta``; see `bread.backends.base.Posterior.evolve`.

        Raises
        ------
        DensityError
            If ``state`` has density zero or NaN at ``beta``.
        """
        if not is_known(path.reference):
            return super().evolve(path, kernel, beta, state, keep, seed)
        state = np.asarray(state, dtype=np.float64)
        self.load(path)
        self._require_settings(kernel)
        with np.errstate(all="ignore"):
            self._require_density(path, beta, state)
        request = Request(self.data, path, kernel, state[None, :], [seed])
        states, n_gradients = self.vector.evolve(request, float(beta), keep)
        return Evolution(states, n_gradients, 0)


def anneal_together(chains: Sequence[ChainsOfOne], betas: FloatArray, direction: Direction) -> list[AnnealRun]:
    """Run the chains of several data sets of one model; each is the same as if it were run alone."""
    betas = np.asarray(betas, dtype=np.float64)
    runs: dict[int, AnnealRun] = {}
    requests: dict[int, Request] = {}
    vector = None
    for index, one in enumerate(chains):
        posterior = one.posterior
        if isinstance(posterior, VectorPosterior) and is_known(one.path.reference):
            vector = posterior.vector
            requests[index] = posterior.request(one.path, betas, one.kernel, direction, one.initial, one.seeds)
        else:
            runs[index] = posterior.anneal(
                one.path, betas, one.kernel, direction=direction, initial=one.initial, seeds=one.seeds
            )
    if vector is not None:
        runs.update(zip(requests, vector.anneal(list(requests.values()), betas, direction), strict=True))
    return [runs[index] for index in range(len(chains))]
