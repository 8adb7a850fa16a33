"""Units of work: one data set, one purpose. Picklable in and out; a worker needs the model and a task, no more.

Random numbers depend on the task's seeds alone, so that results are bit-equal for any number of workers, order or
batching.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, FloatArray, Kernel, Model
from bread.errors import DensityError
from bread.paths import Path, ReferencePath
from bread.reference_pilots import ReferenceFit, move_reference
from bread.seeds import Purpose, chain_seeds, seed_sequence
from bread.tuning import KNOT_DRAWS, PathRequest, Pilot, run_pilot


@dataclass(frozen=True)
class PilotTask:
    """Tune a kernel on one data set."""

    simulation: int
    data: dict[str, NDArray[Any]]
    request: PathRequest
    root: int
    n_steps: int
    n_start_draws: int
    source: str
    may_fail: bool = False
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Pilot | DensityError:
        """Return the frozen kernel, the path and the pilot's draws; where it may fail, the error instead."""
        try:
            return run_pilot(
                model.condition(self.data),
                self.request,
                root=self.root,
                simulation=self.simulation,
                n_steps=self.n_steps,
                n_start_draws=self.n_start_draws,
                source=self.source,
            )
        except DensityError as error:
            if not self.may_fail:
                raise
            return error


@dataclass(frozen=True)
class MoveTask:
    """Move a reference that was fitted to another data set to this one."""

    simulation: int
    data: dict[str, NDArray[Any]]
    shared: ReferenceFit
    kernel: Kernel
    root: int
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> ReferenceFit:
        """Return the moved reference."""
        posterior = model.condition(self.data)
        return move_reference(posterior, self.shared, self.kernel, root=self.root, simulation=self.simulation)


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


@dataclass(frozen=True)
class RaceResult:
    """The gap of one pair of chains, and what it cost."""

    gap: float
    n_gradients: int
    n_other_gradients: int


@dataclass(frozen=True)
class RaceTask:
    """Anneal one pair of chains along a path that may be chosen, on an extra simulated data set.

    The reverse chain starts from the exact draw itself. The data set serves for the choice alone.
    """

    simulation: int
    data: dict[str, NDArray[Any]]
    request: PathRequest
    root: int
    n_steps: int
    shared: Pilot
    tune_each: bool
    betas: FloatArray
    exact: FloatArray
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> RaceResult:
        """Return reverse minus forward log weight."""
        posterior = model.condition(self.data)
        path, kernel, n_other = self.shared.path, self.shared.kernel, 0
        if self.tune_each:
            pilot = run_pilot(
                posterior, self.request, root=self.root, simulation=self.simulation, n_steps=self.n_steps,
                n_start_draws=KNOT_DRAWS, source="",
            )  # fmt: skip
            path, kernel, n_other = pilot.path, pilot.kernel, pilot.n_gradients
        elif self.shared.fit is not None:
            moved = move_reference(posterior, self.shared.fit, kernel, root=self.root, simulation=self.simulation)
            path, n_other = ReferencePath(moved.reference), moved.n_gradients
        start = posterior.draw_start(path, chain_seeds(self.root, Purpose.RACE, self.simulation, 0, range(1)))
        forward = posterior.anneal(
            path, self.betas, kernel, direction="forward", start=start,
            seeds=chain_seeds(self.root, Purpose.RACE, self.simulation, 1, range(1)),
        )  # fmt: skip
        reverse = posterior.anneal(
            path, self.betas, kernel, direction="reverse", start=self.exact[None, :],
            seeds=chain_seeds(self.root, Purpose.RACE, self.simulation, 2, range(1)),
        )  # fmt: skip
        gap = float(reverse.log_weight[0] - forward.log_weight[0])
        spent = int(forward.n_gradients.sum() + reverse.n_gradients.sum())
        return RaceResult(gap if np.isfinite(gap) else float("inf"), spent, n_other)


Task = RaceTask | PilotTask | MoveTask | ReverseStartTask | AnnealTask
