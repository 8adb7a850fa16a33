"""One model or kernel of a comparison: annealed both ways on simulated data sets that all of them share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, FloatArray, Model
from bread.jobs.executors import Executor
from bread.jobs.progress import Display
from bread.jobs.task import Task
from bread.running.check.annealing import Annealing
from bread.running.check.preparation import Preparation
from bread.running.compare.same_posterior import Compared
from bread.running.exactness.phase import DirectPhase
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import CheckResult


@dataclass(frozen=True)
class Entry:
    """What one model or kernel of a comparison gave.

    Attributes
    ----------
    name : str
    result : CheckResult
        Log weights of both directions, tests of exact draws, costs.
    compared : Compared or None
        How it was seen that it is the first model in other parameters; None for the first itself.
    """

    name: str
    result: CheckResult
    compared: Compared | None = None

    def costs(self, temperatures: NDArray[np.int64]) -> dict[str, FloatArray]:
        """Return what a chain costs at each T, forward and reverse averaged.

        Keys: "steps" (kernel steps), "gradients", "evaluations" (of the density alone), "seconds" (of a processor).

        Returns
        -------
        dict of str to ndarray, shape (n_temperatures,)
        """
        table = {name: np.full(len(temperatures), np.nan) for name in ("steps", "gradients", "evaluations", "seconds")}
        for row, n_temperatures in enumerate(temperatures):
            runs = [run for key, run in self.result.runs.items() if key[2] == n_temperatures]
            n_chains = sum(len(run.log_weight) for run in runs)
            if not n_chains:
                continue
            table["steps"][row] = float(n_temperatures - 1)
            table["gradients"][row] = sum(int(run.n_gradients.sum()) for run in runs) / n_chains
            table["evaluations"][row] = sum(int(run.n_evaluations.sum()) for run in runs) / n_chains
            table["seconds"][row] = sum(run.seconds for run in runs) / n_chains
        return table

    def log_weights(self, direction: Direction, temperatures: NDArray[np.int64]) -> FloatArray:
        """Return log weights (n_temperatures, simulation, chain), in nats."""
        return np.array([self.result.log_weights(direction, int(number)) for number in temperatures])


@dataclass(frozen=True)
class CpuTask:
    """A task whose annealed chains bear the time that a processor spent on them, not the time that passed.

    Other work on the machine would else decide which of two models is the quicker one.
    """

    task: Task

    @property
    def n_chains(self) -> int:
        """Number of chains of the task."""
        return self.task.n_chains

    def run(self, model: Model) -> Any:
        """Return what the task returns."""
        began = time.process_time()
        result = self.task.run(model)
        if isinstance(result, AnnealRun):
            return replace(result, seconds=time.process_time() - began)
        return result


class CpuTimed:
    """An executor whose annealed chains bear processor time."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks`` on the executor."""
        return self._executor.run([CpuTask(task) for task in tasks])

    def __enter__(self) -> Self:
        self._executor.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.__exit__(kind, error, trace)


def anneal_entry(model: Model, plan: Plan, result: CheckResult, executor: Executor, display: Display) -> None:
    """Tune, test exact draws, and anneal the plan's simulations both ways at each of its T; ``result`` is filled.

    With one root of random numbers the model's simulations are the same as those of every other entry.
    """
    assert plan.n_temperatures is not None
    ledger = Ledger(result, CpuTimed(executor), display)
    preparation = Preparation(model, plan, result, ledger)
    annealing = Annealing(plan, result, preparation, ledger)
    preparation.choose_path()
    DirectPhase(model, plan, result, ledger).run()
    indices = preparation.simulate(plan.simulations, "confirm")
    for n_temperatures in plan.n_temperatures:
        result.n_temperatures = n_temperatures
        result.attempts.plan(indices, n_temperatures, "all")
        annealing.simulated(indices, n_temperatures, "confirm")
