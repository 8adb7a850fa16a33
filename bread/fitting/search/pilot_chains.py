"""One pilot chain of a fit: adapted at beta = 1, then run. It knows no other chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bread.backends.base import FloatArray, Kernel, Posterior, Settings
from bread.errors import DensityError
from bread.fitting.search.work import FitWork, Part, plain
from bread.paths.kinds import ReferencePath


@dataclass(frozen=True)
class PilotChain:
    """What a pilot chain leaves.

    Attributes
    ----------
    states : ndarray, shape (n_steps, dim)
        Its draws; none where it failed.
    settings : dict
        Kernel settings that it adapted.
    n_gradients, n_evaluations : int
        What it spent.
    failure : str or None
        Why it has no draws.
    correlation : ndarray, shape (dim, dim), or None
        Of the kernel that adaptation began with; see `bread.backends.base.Kernel`.
    """

    states: FloatArray
    settings: Settings
    n_gradients: int
    n_evaluations: int
    failure: str | None = None
    correlation: FloatArray | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel with these settings."""
        settings = {name: np.asarray(value)[None] for name, value in self.settings.items()}
        return Kernel(np.array([1.0]), settings, correlation=self.correlation)


def run_chain(
    posterior: Posterior,
    initial: FloatArray,
    index: int,
    n_steps: int,
    *,
    root: int,
    simulation: int,
    like: Kernel | None = None,
) -> PilotChain:
    """Adapt a pilot chain for some steps, and run it for as many.

    Parameters
    ----------
    posterior : Posterior
        Model and one data set.
    initial : ndarray, shape (dim,)
        Where it begins.
    index : int
        Which chain of the fit, for the seeds.
    n_steps : int
    root, simulation : int
        For the seeds.
    like : Kernel, optional
        Tuned on another data set: adaptation begins with its settings.

    Returns
    -------
    PilotChain
    """
    dim = len(initial)
    base = plain(dim)
    work = FitWork(posterior, np.zeros(dim, dtype=bool), root, simulation)
    settings: Settings = {}
    previous, correlation = (None, None) if like is None else (like.at(1.0), like.correlation)
    try:
        adapted = posterior.adapt(
            ReferencePath(base), 1.0, initial, work.seed(Part.ADAPT, index), n_steps, previous=previous
        )
        settings = adapted.settings
        work.add(adapted)
        kernel = PilotChain(adapted.state, settings, 0, 0, correlation=correlation).kernel
        evolved = work.evolve(base, kernel, adapted.state, range(1, n_steps + 1), work.seed(Part.EVOLVE, index))
    except DensityError as error:
        return PilotChain(np.empty((0, dim)), settings, work.n_gradients, work.n_evaluations, str(error))
    return PilotChain(evolved.states, settings, work.n_gradients, work.n_evaluations, None, correlation)
