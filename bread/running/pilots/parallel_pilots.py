"""Pilots whose chains run side by side: each chain of a fit is a task, and a fit goes on where the ones it wants are.

The same tasks run for any number of workers, so that a checkpoint serves with other numbers of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bread.errors import DensityError
from bread.fitting.search.reference_fit import BegunFit, ReferenceFit
from bread.jobs.task import Task
from bread.running.pilots.tasks import FitTask, PilotChainTask, PilotTask
from bread.running.pilots.tuning import Pilot

InOrder = Callable[[Sequence[Task]], list[Any]]
Fitted = ReferenceFit | DensityError


def run_side_by_side(tasks: Sequence[PilotTask], in_order: InOrder) -> list[Pilot | DensityError]:
    """Return what pilots return, in their order; the chains of those that fit a reference run side by side.

    Parameters
    ----------
    tasks : sequence of PilotTask
        Pilots that may fail.
    in_order : callable
        Runs tasks and returns their results in the order of the tasks.
    """
    fits = _fits({place: _fit_task(task) for place, task in enumerate(tasks) if task.request.fit is not None}, in_order)
    found: dict[int, Pilot | DensityError] = {
        place: fit for place, fit in fits.items() if isinstance(fit, DensityError)
    }
    left = {
        place: replace(task, fit=fit if isinstance(fit := fits.get(place), ReferenceFit) else None)
        for place, task in enumerate(tasks)
        if place not in found
    }
    found |= zip(left, in_order(list(left.values())) if left else [], strict=True)
    return [found[place] for place in range(len(tasks))]


def _fit_task(task: PilotTask) -> FitTask:
    assert task.request.fit is not None
    return FitTask(task.simulation, task.data, task.request.fit, task.root)


def _chain_task(task: FitTask, fit: BegunFit, index: int) -> PilotChainTask:
    return PilotChainTask(task.simulation, task.data, task.root, index, fit.initial[index], fit.request.n_steps)


def _fits(tasks: dict[int, FitTask], in_order: InOrder) -> dict[int, Fitted]:
    """Return the fits, by place."""
    fits: dict[int, Fitted] = {}
    while tasks:
        results = dict(zip(tasks, in_order(list(tasks.values())), strict=True))
        begun = {place: result for place, result in results.items() if isinstance(result, BegunFit)}
        fits |= {place: result for place, result in results.items() if place not in begun}
        wanted = {
            (place, index): _chain_task(tasks[place], fit, index)
            for place, fit in begun.items()
            for index in fit.wanted
        }  # fmt: skip
        chains = dict(zip(wanted, in_order(list(wanted.values())) if wanted else [], strict=True))
        tasks = {
            place: replace(tasks[place], begun=fit.with_chains(chains[place, index] for index in fit.wanted))
            for place, fit in begun.items()
        }
    return fits
