"""A first rough number: a few data sets annealed at a small T, before what takes long, for checks with little time.

It has a result of its own and decides nothing: the check after it is the same as without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from bread.backends.base import Model
from bread.errors import BreadError
from bread.paths.kinds import ReferencePath
from bread.running.annealing import BOTH, Annealing
from bread.running.attempts import Attempts
from bread.running.executors import Executor
from bread.running.ledger import Ledger
from bread.running.plan import AUTO, PathRequest, Plan
from bread.running.preparation import Preparation
from bread.running.progress import Display
from bread.running.results import CheckResult
from bread.running.tasks import Task
from bread.statistics import intervals
from bread.statistics.certificate import error_by_simulation, error_interval

SHARE = 0.1  # of the time of the check, after which the look ends with what it has
SIMULATIONS, CHAINS, TEMPERATURES, STEPS = 5, 2, 8, 40  # of the rough look; adaptation steps of its pilots
FEWEST = 2  # simulated data sets of the check itself that replace the rough look
PHASE = "rough"
_KEPT = ("settings", "seconds", "n_gradients", "warnings", "is_interrupted", "fit")  # of the check, not of the look


def rough_plan(plan: Plan, kinds: Sequence[str]) -> Plan:
    """Return what a rough look runs: data from the prior, since no fit has run, on a path that nothing is raced for.

    ``kinds`` are the paths that the model can follow.
    """
    path = plan.path
    if path.kind == AUTO:
        path = PathRequest(ReferencePath.name if ReferencePath.name in kinds else kinds[0])
    return replace(
        plan, simulate_from="prior", hyperparameters=(), simulations=SIMULATIONS, chains=CHAINS,
        n_temperatures=(TEMPERATURES,), path=path, tune=min(STEPS, plan.tune), tune_each=False, draws=0,
    )  # fmt: skip


def empty_look(plan: Plan, result: CheckResult) -> CheckResult:
    """Return the result of a rough look of which nothing has run yet."""
    return replace(
        result, settings=dict(result.settings), roles=[], schedules={}, runs={}, attempts=Attempts(), kernels={},
        paths={}, unfitted=[], path_costs={}, base_log_ratio=[], end_log_ratio=[], seconds={}, n_gradients={},
        warnings=[], n_chains=CHAINS,
    )  # fmt: skip


class _Late(Exception):
    """The look has taken its share of the time."""


class _LimitedLedger(Ledger):
    """A ledger whose tasks end where the time does."""

    def __init__(self, result: CheckResult, executor: Executor, display: Display, until: float) -> None:
        super().__init__(result, executor, display)
        self._until = until

    def run_tasks(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run tasks and yield (position, result) as they finish."""
        for found in super().run_tasks(tasks):
            if time.monotonic() > self._until:
                raise _Late
            yield found


def rough_look(
    model: Model,
    plan: Plan,
    result: CheckResult,
    rough: CheckResult,
    executor: Executor,
    display: Display,
    seconds: float,
) -> None:
    """Fill ``rough`` with a few data sets at a small T; with nothing where that fails, which the check meets again.

    Its wall time and its gradients are counted in ``result``, as a phase of their own. It ends with what it has, if
    need be nothing, after its share of the ``seconds`` of the check: of a model that is slow to prepare it would say
    little.
    """
    rough_of = rough_plan(plan, model.info.paths)
    try:
        ledger = _LimitedLedger(rough, executor, display, time.monotonic() + SHARE * seconds)
        preparation = Preparation(model, rough_of, rough, ledger)
        preparation.choose_path()
        indices = preparation.simulate(SIMULATIONS, "search")
        rough.n_temperatures = TEMPERATURES
        rough.attempts.plan(indices, TEMPERATURES, "all")
        for _ in Annealing(rough_of, rough, preparation, ledger).both(indices, TEMPERATURES, "search"):
            pass
        forward, reverse = (rough.log_weights(way, TEMPERATURES, np.array(indices)) for way in BOTH)
        if not np.isnan(forward).any() and np.isfinite(reverse).all():
            interval = error_interval(error_by_simulation(forward, reverse), intervals.alpha_level(0))
            display.bound("V", interval.estimate, interval.upper, plan.goal.max_error)
    except _Late:
        pass
    except BreadError:
        rough.attempts.planned.clear()
    finally:
        result.seconds[PHASE] = sum(rough.seconds.values())
        result.n_gradients[PHASE] = sum(rough.n_gradients.values())


def stands_in(result: CheckResult, rough: CheckResult | None) -> bool:
    """Put the rough look in the place of a check that was stopped before it had data sets that finished both ways.

    Returns whether it was put there: not where it has finished none itself.
    """
    if rough is None or _n_finished(result) >= min(FEWEST, _n_finished(rough)):
        return False
    for field in fields(CheckResult):
        if field.name not in _KEPT:
            setattr(result, field.name, getattr(rough, field.name))
    asked, result.settings["simulate_from"] = result.settings["simulate_from"], "prior"
    result.warnings.append(
        f"The check was stopped before simulated data sets had finished: what the report holds is a rough first look, "
        f"at {SIMULATIONS} data sets simulated from the prior (asked for was simulate_from={asked!r}), "
        f"T = {TEMPERATURES}."
    )
    return True


def _n_finished(result: CheckResult) -> int:
    temperatures = {number for _, number in result.attempts.planned}
    indices = list(range(len(result.roles)))
    return max((len(result.attempts.finished(result.runs, number, indices)) for number in temperatures), default=0)
