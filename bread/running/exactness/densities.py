"""Densities at pairs of states and data, for the tests of exact draws: in tasks, and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bread.backends.base import FloatArray
from bread.jobs.task import Task
from bread.running.exactness.tasks import JointDensityTask, RowData

BATCH = 100  # evaluations a task

RunTasks = Callable[[Sequence[Task]], list[Any]]


class JointDensities:
    """Evaluates log densities by data sets: prior (0), joint (1), or likelihood (None)."""

    def __init__(self, data: RowData, run: RunTasks) -> None:
        self.n_evaluations = 0
        self._data = data
        self._run = run

    def at(self, beta: float | None) -> Callable[[FloatArray], FloatArray]:
        """Return the density as a function of states (m, dim), each with the data set of its row."""
        return partial(self.of, beta)

    def of(self, beta: float | None, states: FloatArray, changed: RowData | None = None) -> FloatArray:
        """Return the log densities in nats, shape (m,); ``changed`` are data in place of those of the first m draws."""
        data = {name: values[: len(states)] for name, values in self._data.items()} | (changed or {})
        tasks = [
            JointDensityTask(
                states[low : low + BATCH],
                {name: values[low : low + BATCH] for name, values in data.items()},
                beta,
            )
            for low in range(0, len(states), BATCH)
        ]
        self.n_evaluations += len(states)
        return np.concatenate(self._run(tasks))
