"""The ledger of a check: tasks run, shown and counted, phase by phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bread.backends.base import AnnealRun
from bread.jobs.executors import Executor
from bread.jobs.interrupts import raise_pending
from bread.jobs.progress import Display
from bread.jobs.task import Task
from bread.running.state.results import CheckResult


def in_order(run_tasks: Callable[[Sequence[Task]], Iterator[tuple[int, Any]]], tasks: Sequence[Task]) -> list[Any]:
    """Return what ``run_tasks`` yields as (position, result) in the order of the tasks."""
    found = dict(run_tasks(tasks))
    return [found[position] for position in range(len(tasks))]


class Ledger:
    """Runs tasks on an executor, shows their progress, and keeps the cost of each phase in the result."""

    def __init__(self, result: CheckResult, executor: Executor, display: Display) -> None:
        self.display = display
        self._result = result
        self._executor = executor

    def run_tasks(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run tasks, show their progress and yield (position, result) as they finish."""
        for position, result in self._executor.run(tasks):
            failed = int(np.count_nonzero(result.failure)) if isinstance(result, AnnealRun) else 0
            self.display.advance(tasks[position].n_chains, failed)
            yield position, result

    def in_order(self, tasks: Sequence[Task]) -> list[Any]:
        """Run tasks and return their results in the order of the tasks, whichever finished first."""
        return in_order(self.run_tasks, tasks)

    def count(self, phase: str, n_gradients: int) -> None:
        """Add gradient evaluations to a phase."""
        self._result.n_gradients[phase] = self._result.n_gradients.get(phase, 0) + n_gradients

    @contextmanager
    def phase(self, name: str, phase: str, n_chains: int | None = None) -> Iterator[None]:
        """Show a phase and add its wall time to the result."""
        with timed_phase(self._result, self.display, name, phase, n_chains):
            yield


@contextmanager
def timed_phase(
    result: CheckResult, display: Display, name: str, phase: str, n_chains: int | None = None
) -> Iterator[None]:
    """Show a phase and add its wall time to the result; none begins once a signal has come, or time is over."""
    raise_pending()
    display.phase(name, n_chains, phase)
    began = time.perf_counter()
    try:
        yield
    finally:
        result.seconds[phase] = result.seconds.get(phase, 0.0) + time.perf_counter() - began
    display.done()
