"""Units of work: one data set, one purpose. Picklable in and out; a worker needs the model and a task, no more.

Random numbers depend on the task's seeds alone, so that results are bit-equal for any number of workers, order or
batching.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, FloatArray, Kernel, Model
from bread.paths import Path
from bread.seeds import Purpose, seed_sequence
from bread.tuning import Pilot, tune


@dataclass(frozen=True)
class PilotTask:
    """Tune a kernel on one data set."""

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    root: int
    n_steps: int
    n_start_draws: int
    source: str
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Pilot:
        """Return the frozen kernel and the pilot's draws."""
        return tune(
            model.condition(self.data),
            self.path,
            root=self.root,
            simulation=self.simulation,
            n_steps=self.n_steps,
            n_start_draws=self.n_start_draws,
            source=self.source,
        )


@dataclass(frozen=True)
class ReverseStarts:
    """Where the reverse chains of one simulation start, and what it cost."""

    states: FloatArray  # (chain, dim)
    n_gradients: int
    n_evaluations: int
    seconds: float


@dataclass(frozen=True)
class ReverseStartTask:
    """Run a chain at beta = 1 from the exact draw; its states after ``keep`` steps start the reverse chains."""

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    root: int
    kernel: Kernel
    exact: FloatArray
    keep: tuple[int, ...]
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> ReverseStarts:
        """Return the states, shape (len(keep), dim)."""
        began = time.perf_counter()
        seed = seed_sequence(self.root, Purpose.EVOLVE, self.simulation)
        posterior = model.condition(self.data)
        evolution = posterior.evolve(self.path, self.kernel, 1.0, self.exact, self.keep, seed)
        return ReverseStarts(
            evolution.states, evolution.n_gradients, evolution.n_evaluations, time.perf_counter() - began
        )


@dataclass(frozen=True)
class AnnealTask:
    """Anneal a batch of chains: one data set, one direction, one schedule.

    ``start`` is None for forward chains, which draw it from the path's start with ``start_seeds``.
    """

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    direction: Direction
    betas: FloatArray
    kernel: Kernel
    seeds: list[SeedSequence]
    start: FloatArray | None = None
    start_seeds: list[SeedSequence] | None = None

    @property
    def n_chains(self) -> int:
        """Number of chains in the batch."""
        return len(self.seeds)

    def run(self, model: Model) -> AnnealRun:
        """Return the annealed chains."""
        posterior = model.condition(self.data)
        start = self.start
        if start is None:
            assert self.start_seeds is not None
            start = posterior.draw_start(self.path, self.start_seeds)
        return posterior.anneal(
            self.path, self.betas, self.kernel, direction=self.direction, start=start, seeds=self.seeds
        )


Task = PilotTask | ReverseStartTask | AnnealTask
