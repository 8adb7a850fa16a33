"""A first rough number: a few data sets annealed at a small T, before what takes long, for checks with little time.

It has a result of its own and decides nothing: the check after it is the same as without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from bread.backends.base import Model
from bread.errors import BreadError
from bread.jobs import interrupts
from bread.jobs.executors import Executor
from bread.jobs.progress import Display
from bread.paths.kinds import ReferencePath
from bread.running.check.annealing import BOTH, Annealing
from bread.running.check.preparation import Preparation
from bread.running.state.attempts import Attempts
from bread.running.state.ledger import Ledger
from bread.running.state.plan import AUTO, PathRequest, Plan
from bread.running.state.results import CheckResult
from bread.statistics.bounds import intervals
from bread.statistics.bounds.certificate import error_by_simulation, error_interval

SHARE = 0.1  # of the time of the check, after which the look ends with what it has
SHARES = 0.06, 0.125  # the same where a reference is looked at, and the prior path where that gives nothing
SIMULATIONS, CHAINS, TEMPERATURES, STEPS = 5, 2, 8, 40  # of the rough look; adaptation steps of its pilots
PRIOR_STEPS = 20  # the same along the prior path
FEWEST = 2  # simulated data sets of the check itself that replace the rough look
PHASE = "rough"
# What is the check's, not the look's.
_KEPT = ("settings", "seconds", "n_gradients", "warnings", "is_interrupted", "fit", "first_look")


def rough_plans(plan: Plan, kinds: Sequence[str]) -> list[Plan]:
    """Return what rough looks run in turn: data from the prior, since no fit has run, on paths that do not race.

    A reference may take longer to fit than there is time; a few steps along the prior path do not.

    Parameters
    ----------
    plan : Plan
        Of the check.
    kinds : sequence of str
        The paths that the model can follow.
    """
    if plan.path.kind != AUTO:
        return [_rough_plan(plan, plan.path, SIMULATIONS, STEPS)]
    if ReferencePath.name not in kinds:
        return [_rough_plan(plan, PathRequest(kinds[0]), SIMULATIONS, STEPS)]
    others = [PathRequest(kind) for kind in kinds if kind != ReferencePath.name]
    return [
        _rough_plan(plan, PathRequest(ReferencePath.name), SIMULATIONS, STEPS),
        *(_rough_plan(plan, path, FEWEST, PRIOR_STEPS) for path in others),
    ]


def _rough_plan(plan: Plan, path: PathRequest, simulations: int, steps: int) -> Plan:
    return replace(
        plan, simulate_from="prior", hyperparameters=(), simulations=simulations, chains=CHAINS,
        n_temperatures=(TEMPERATURES,), path=path, tune=min(steps, plan.tune), tune_each=False, draws=0,
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


def rough_look(
    model: Model,
    plan: Plan,
    result: CheckResult,
    rough: CheckResult,
    open_executor: Callable[[], Executor],
    display: Display,
    seconds: float,
) -> None:
    """Fill ``rough`` with a few data sets at a small T; with nothing where that fails, which the check meets again.

    Its wall time and its gradients are counted in ``result``, as a phase of their own. It ends with what it has, if
    need be nothing, after its share of the ``seconds`` of the check, and takes the prior path where the reference has
    given nothing after most of that.
    """
    plans, began = rough_plans(plan, model.info.paths), time.monotonic()
    for number, rough_of in enumerate(plans):
        look = empty_look(plan, result)
        try:
            share = SHARE if len(plans) == 1 else SHARES[number]
            left = share * seconds - (time.monotonic() - began)
            with (
                display.together("a first estimate"),
                interrupts.ends_after(left, _Late()),
                open_executor() as executor,
            ):
                _look_along(model, rough_of, look, executor, display)
        except _Late:
            pass
        except BreadError:
            look.attempts.planned.clear()
        finally:
            result.seconds[PHASE] = result.seconds.get(PHASE, 0.0) + sum(look.seconds.values())
            result.n_gradients[PHASE] = result.n_gradients.get(PHASE, 0) + sum(look.n_gradients.values())
            _put(look, rough)
        if _n_finished(look):
            break


def _look_along(model: Model, rough_of: Plan, look: CheckResult, executor: Executor, display: Display) -> None:
    """Fill ``look``, which may end with an exception at any time."""
    ledger = Ledger(look, executor, display)
    preparation = Preparation(model, rough_of, look, ledger)
    preparation.choose_path(is_rough=True)
    indices = preparation.simulate(rough_of.simulations, "search")
    look.n_temperatures = TEMPERATURES
    look.attempts.plan(indices, TEMPERATURES, "all")
    for _ in Annealing(rough_of, look, preparation, ledger).both(indices, TEMPERATURES, "search"):
        pass
    forward, reverse = (look.log_weights(way, TEMPERATURES, np.array(indices)) for way in BOTH)
    if not np.isnan(forward).any() and np.isfinite(reverse).all():
        interval = error_interval(error_by_simulation(forward, reverse), intervals.alpha_level(0))
        display.bound("V", interval.estimate, interval.upper, rough_of.goal.max_error)


def _put(look: CheckResult, place: CheckResult) -> None:
    """Put what a look has in the place of another."""
    for field in fields(CheckResult):
        if field.name not in _KEPT:
            setattr(place, field.name, getattr(look, field.name))


def stands_in(result: CheckResult, rough: CheckResult | None) -> bool:
    """Put the rough look in the place of a check that was stopped before it had data sets that finished both ways.

    Returns whether it was put there: not where it has finished none itself.
    """
    if rough is None or _n_finished(result) >= min(FEWEST, _n_finished(rough)):
        return False
    n_simulations = len(rough.roles)
    _put(rough, result)
    asked, result.settings["simulate_from"] = result.settings["simulate_from"], "prior"
    result.warnings.append(
        f"The check was stopped before simulated data sets had finished: what the report holds is a rough first look, "
        f"at {n_simulations} data sets simulated from the prior (asked for was simulate_from={asked!r}), "
        f"T = {TEMPERATURES}."
    )
    return True


def _n_finished(result: CheckResult) -> int:
    temperatures = {number for _, number in result.attempts.planned}
    indices = list(range(len(result.roles)))
    return max((len(result.attempts.finished(result.runs, number, indices)) for number in temperatures), default=0)
