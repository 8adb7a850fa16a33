"""Tasks that run together: chains of several data sets, on a model that moves many at the price of one.

A model says so by two members beside the contract: ``chains_at_once``, a number, and ``anneal_together(chains, betas,
direction)``, which returns an `AnnealRun` for each `bread.jobs.task.Chains`, bit-equal to what each would be alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bread.backends.base import Model
from bread.jobs.task import AnnealTask, Task


@dataclass(frozen=True)
class TaskGroup:
    """Tasks of one call; more than one are annealings along one schedule in one direction."""

    tasks: tuple[Task, ...]

    @property
    def n_chains(self) -> int:
        """Number of chains of all tasks."""
        return sum(task.n_chains for task in self.tasks)

    def run(self, model: Model) -> list[Any]:
        """Return the result of each task."""
        if len(self.tasks) == 1:
            return [self.tasks[0].run(model)]
        annealings = [task for task in self.tasks if isinstance(task, AnnealTask)]
        first = annealings[0]
        chains = [task.chains(model) for task in annealings]
        runs = model.anneal_together(chains, first.betas, first.direction)  # type: ignore[attr-defined]
        return [task.kept(run) for task, run in zip(annealings, runs, strict=True)]


def runs_together(model: Model) -> bool:
    """Return whether a model takes chains of several data sets in one call; the tasks of others stay as they are."""
    return bool(getattr(model, "chains_at_once", 1) > 1)


def group(model: Model, tasks: Sequence[Task], n_workers: int = 1) -> list[tuple[int, ...]]:
    """Return the positions of the tasks of each group, groups by their first task; no worker is left without one."""
    share = -(-sum(task.n_chains for task in tasks) // n_workers)
    limit = min(getattr(model, "chains_at_once", 1), share)
    groups: list[list[int]] = []
    is_open: dict[Any, list[int]] = {}
    for index, task in enumerate(tasks):
        if limit <= 1 or not isinstance(task, AnnealTask):
            groups.append([index])
            continue
        key = task.direction, task.betas.tobytes()
        own = is_open.get(key)
        if own is None or sum(tasks[one].n_chains for one in own) + task.n_chains > limit:
            own = is_open[key] = []
            groups.append(own)
        own.append(index)
    return [tuple(one) for one in groups]


def spread(groups: Sequence[tuple[int, ...]], finished: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield (position, result) of each task from the results of groups."""
    for place, results in finished:
        yield from zip(groups[place], results, strict=True)
