"""Run a plan on an opened model: interruptions and errors keep what is finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import bread.report.container as report
from bread.backends.base import Fit, Model
from bread.errors import BreadError
from bread.jobs import interrupts
from bread.jobs.executors import Workers, open_executor
from bread.jobs.progress import Display
from bread.reading.sentences.first_look import look_found
from bread.reading.sentences.words import YOURS
from bread.report.first_look import first_look_dataset
from bread.running.budget.spending import Spending, open_spending
from bread.running.check.first_look import look_at
from bread.running.check.preparation import fit_real_data, localise
from bread.running.check.runner import Runner, look_at_model
from bread.running.exactness.density_alone import look_at_density
from bread.running.model_fit.replicated import replicate
from bread.running.state.ledger import Ledger, timed_phase
from bread.running.state.plan import Plan
from bread.running.state.results import CheckResult
from bread.verbs.checkpoint import Checkpoint


def spending_of(plan: Plan, result: CheckResult, saved: Checkpoint, before: float) -> Spending | None:
    """Return what a budget has left after ``before`` seconds; None without one."""
    return None if plan.budget is None else open_spending(plan.budget, result, saved.keeper.kept, before)


def run(
    model: Model,
    plan: Plan,
    result: CheckResult,
    workers: Workers,
    saved: Checkpoint,
    display: Display,
    spending: Spending | None = None,
    *,
    is_forecast: bool = False,
    max_seconds: float | None = None,
) -> Model:
    """Run the plan and return the model that was annealed; an interruption keeps what is finished, an error carries it.

    ``is_forecast``: only what the forecast of a budget rests on.

    The model differs from the one that was opened where it is localised, or where simulated data are added to its own.
    """
    fit = partial(saved.keeper.kept, "fit", partial(fit_real_data, model, plan.root, workers.cores))
    look = partial(_look_first, model, result, saved, display)
    opened = model
    try:
        interrupts.defer()
        with interrupts.limited(max_seconds):
            interrupts.raise_pending()
            if max_seconds is not None:
                display.ends_in(interrupts.seconds_left())
            look()
            if result.not_certified:
                _look_alone(model, plan, result, workers, saved, display, fit, look)
                return model
            if plan.simulate_from == "localised":
                model = localise(model, plan, result, fit, display)
            alone = None
            if plan.adds_data:
                model, alone = replicate(model, result, fit, display)
            look()
            with saved.keeper.executor(partial(open_executor, model, *workers)) as executor:
                runner = Runner(model, plan, result, executor, display, spending)
                runner.foresee(fit, look) if is_forecast else runner.run(fit, look)
            if alone is not None and not is_forecast:
                with saved.keeper.executor(partial(open_executor, alone, *workers)) as executor:
                    runner.draw_alone(alone, executor)
            if model is not opened and not is_forecast:
                with saved.keeper.executor(partial(open_executor, opened, *workers)) as executor:
                    look_at_model(opened, plan, result, Ledger(result, executor, display))
    except KeyboardInterrupt:
        if is_forecast:
            raise
        result.is_interrupted = True
        stopped_by = f"Stopped after max_seconds={max_seconds:g}" if interrupts.is_over() else "Interrupted"
        message = f"{stopped_by}: the report holds what was finished; its verdict is at best inconclusive."
        result.warnings.append(message)
        warnings.warn(message + saved.hint, UserWarning, stacklevel=3)
    except Exception as error:
        result.is_interrupted = True
        result.warnings.append(str(error))
        stopped = error if isinstance(error, BreadError) else _stopped_by(error)
        stopped.report = report.to_container(result, model.constrain)
        raise stopped from (None if stopped is error else error)
    unfitted = result.unfitted_message()
    if unfitted:
        warnings.warn(unfitted, UserWarning, stacklevel=3)
    return model


def _look_alone(
    model: Model,
    plan: Plan,
    result: CheckResult,
    workers: Workers,
    saved: Checkpoint,
    display: Display,
    fit: Callable[[], Fit],
    look: Callable[[], None],
) -> None:
    """Look at draws on the real data by their density alone."""
    if result.fit is None:
        with timed_phase(result, display, "fitting", "fit"):
            result.fit = fit()
    look()
    with saved.keeper.executor(partial(open_executor, model, *workers)) as executor:
        look_at_density(model, plan, result, Ledger(result, executor, display))


def _look_first(model: Model, result: CheckResult, saved: Checkpoint, display: Display) -> None:
    """Look at the draws on the real data once there are any, and show what was found; nothing comes before it."""
    fit = result.partial or result.fit
    if fit is None or result.first_look is not None:
        return
    with timed_phase(result, display, "looking at your draws", "look"), interrupts.interruptible():
        result.first_look = saved.keeper.kept("first look", partial(look_at, model, fit))
    result.n_gradients["look"] = result.first_look.n_draws
    found = look_found(first_look_dataset(result.first_look), is_yours=fit.source == YOURS)
    display.note(": ".join(found.rows()[0]))


def _stopped_by(error: Exception) -> BreadError:
    return BreadError(
        f"The check was stopped by {type(error).__name__}: {error}. What was finished is in the `report` attribute "
        "of this error."
    )
