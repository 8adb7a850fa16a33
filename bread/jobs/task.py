"""What executors run: one data set, one purpose, and chains annealed on it. Picklable in and out.

Random numbers depend on a task's seeds alone, so that results are bit-equal for any number of workers, order or
batching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, FloatArray, Kernel, Model, Posterior
from bread.paths.kinds import Path
from bread.paths.knots import MOST_KNOTS, at_kept_knots


class Task(Protocol):
    """What an executor runs."""

    @property
    def n_chains(self) -> int:
        """How far it brings the progress of its phase."""
        ...

    def run(self, model: Model) -> Any:
        """Return its result, which is picklable."""
        ...


class Chains(NamedTuple):
    """Chains of one data set before they are run."""

    posterior: Posterior
    path: Path
    kernel: Kernel
    initial: FloatArray
    seeds: Sequence[SeedSequence]


@dataclass(frozen=True)
class AnnealTask:
    """Anneal a batch of chains: one data set, one direction, one schedule.

    ``initial`` is None for forward chains, which begin at draws of the path's base, made with ``base_seeds``.
    """

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    direction: Direction
    betas: FloatArray
    kernel: Kernel
    seeds: Sequence[SeedSequence]
    initial: FloatArray | None = None
    base_seeds: Sequence[SeedSequence] | None = None

    @property
    def n_chains(self) -> int:
        """Number of chains in the batch."""
        return len(self.seeds)

    def chains(self, model: Model) -> Chains:
        """Return the chains where they begin."""
        posterior = model.condition(self.data)
        initial = self.initial
        if initial is None:
            assert self.base_seeds is not None
            initial = posterior.draw_base(self.path, self.base_seeds)
        return Chains(posterior, self.path, self.kernel, initial, self.seeds)

    def run(self, model: Model) -> AnnealRun:
        """Return the annealed chains."""
        posterior, path, kernel, initial, seeds = self.chains(model)
        run = posterior.anneal(path, self.betas, kernel, direction=self.direction, initial=initial, seeds=seeds)
        return self.kept(run)

    def kept(self, run: AnnealRun) -> AnnealRun:
        """Return what is kept of these chains: of log ratios at many inverse temperatures averages at fewer."""
        if len(self.betas) <= MOST_KNOTS:
            return run
        return replace(run, log_ratio=at_kept_knots(self.betas, run.log_ratio))
