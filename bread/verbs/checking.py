"""A check from its model to its report, once its arguments are read and its workers start."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import bread.report.container as report
from bread.arviz_import import require_containers
from bread.backends import open_model
from bread.backends.base import Fit, Model, Simulations
from bread.errors import (
    BreadError,
    DensityError,
    InvalidArgumentError,
    UnsupportedKernelError,
    UnsupportedModelError,
)
from bread.jobs.executors import Workers
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.report.types import Report
from bread.running.state.plan import AUTO, Plan
from bread.running.state.results import CheckResult
from bread.verbs.arguments import Arguments, make_plan, require_parameters
from bread.verbs.checkpoint import Checkpoint
from bread.verbs.run import run, spending_of

PARTIAL = (
    "What is there is compared with certified draws; the first look needs all variables, and where anything else needs "
    "draws, bread samples the model itself."
)


def check_model(
    model: Any,
    data: Any,
    arguments: Arguments,
    workers: Workers,
    saved: Checkpoint,
    display: Display,
    began: float,
) -> Report:
    """Open the model, plan, run and report; ``began``: when the check did, of `time.perf_counter`."""
    opened = open_for_check(model, data, arguments, display)
    call = {**vars(arguments), "model": model, "data": data}
    plan, taken = saved.agree(
        call, opened.model, opened.fit, make_plan(opened.arguments, opened.model), opened.arguments
    )
    finished = saved.report()
    if finished is not None:
        return finished
    result = opened.new_result(plan, taken)
    spending = spending_of(plan, result, saved, time.perf_counter() - began)
    try:
        annealed = run(opened.model, plan, result, workers, saved, display, spending, max_seconds=taken.max_seconds)
    except (UnsupportedModelError, DensityError) as error:
        if arguments.simulate_from != AUTO or result.not_certified or result.runs:
            raise
        opened = open_for_check(model, data, arguments, display, error)
        plan, fit = make_plan(opened.arguments, opened.model), result.fit
        result = opened.new_result(plan, opened.arguments)
        result.fit = fit if result.fit is None else result.fit
        annealed = run(opened.model, plan, result, workers, saved, display, max_seconds=taken.max_seconds)
    container = report.to_container(result, annealed.constrain)
    if not result.is_interrupted:
        saved.finish(container)
    return container


class Opened(NamedTuple):
    """A model that was read and checked, the user's own draws with what was said of them, and how long reading took.

    ``arguments`` say where data sets come from; ``not_certified``, why from nowhere, and what would allow it.
    """

    model: Model
    fit: Fit | None
    warnings: list[str]
    seconds: float
    arguments: Arguments
    not_certified: str = ""

    def new_result(self, plan: Plan, arguments: Arguments) -> CheckResult:
        """Return the result of a check of which nothing has run yet."""
        info, is_partial = self.model.info, self.fit is not None and bool(self.fit.missing)
        return CheckResult(
            info=info,
            path=PriorPath(),
            settings=arguments.settings(plan),
            goal=plan.goal,
            simulations=Simulations(np.empty((0, info.layout.dim)), {}, {}),
            n_chains=plan.chains,
            seed=plan.root,
            fit=None if is_partial else self.fit,
            partial=self.fit if is_partial else None,
            seconds={"compile": self.seconds},
            warnings=self.warnings,
            not_certified=self.not_certified,
        )


def open_for_check(
    model: Any, data: Any, arguments: Arguments, display: Display, why: BreadError | None = None
) -> Opened:
    """Read and check the model, and the user's draws; under "auto" by the first protocol that the model allows.

    Where it allows none, or ``why`` says what stopped the one that was taken, its density alone is read.

    Raises
    ------
    BreadError
        The protocol that was asked for cannot be had, or not even the density.
    """
    display.phase("compiling")
    began = time.perf_counter()
    require_containers()
    refused: dict[str, BreadError] = {}
    for protocol in arguments.protocols if why is None else (AUTO,):
        tried = replace(arguments, simulate_from=protocol)
        try:
            opened = _open(model, data, tried)
            break
        except (UnsupportedModelError, UnsupportedKernelError, InvalidArgumentError) as error:
            is_asked = arguments.kernel is not None and isinstance(error, UnsupportedKernelError)
            is_wrong = not refused and isinstance(error, InvalidArgumentError)
            if arguments.simulate_from != AUTO or is_asked or is_wrong:
                raise
            refused[protocol] = error
    why = why or refused.get("posterior", refused.get("fitted"))
    if AUTO in refused and why is not None:
        raise why
    if protocol != AUTO:
        tried.require_path(opened.info)  # one that was asked for is refused, whatever else may be had
        require_parameters(tried.names, opened.info)
    fit, said = _read_posterior(opened, arguments.posterior)
    reason = "" if why is None or protocol != AUTO else _not_certified(why)
    if refused and not reason:
        why = refused["fitted"]
        said.append(f"Data sets come from simulate_from={protocol!r}, since 'fitted' cannot be had: {why}")
    display.done()
    return Opened(opened, fit, said, time.perf_counter() - began, tried, reason)


def _open(model: Any, data: Any, arguments: Arguments) -> Model:
    """Open the model for one protocol; for its density alone under "auto"."""
    opened = open_model(model, arguments.open_options(data))
    if arguments.simulate_from == "posterior" and type(opened).given_real_data is Model.given_real_data:
        opened.given_real_data()  # the backend has none: it refuses
    if arguments.simulate_from != AUTO and arguments.path_kind == AUTO:
        arguments.require_path(opened.info)
    return opened


def _not_certified(why: BreadError) -> str:
    """Return an error as "<reason>; <what would allow it>"."""
    reason, _, way_out = str(why).partition(". ")
    what = way_out.rstrip(".") or "a model whose data can be simulated given its parameters would allow it"
    return f"{reason.rstrip('.')}; {what[0].lower()}{what[1:]}"


def _read_posterior(model: Model, posterior: Any) -> tuple[Fit | None, list[str]]:
    """Return the user's draws, and what reading them warned of, which the report keeps; each warning is given once."""
    if posterior is None:
        return None, []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        fit = model.read_posterior(posterior)
        if fit.missing:
            warnings.warn(f"{fit.lacks()} {PARTIAL}", UserWarning, stacklevel=2)
    by_text = {str(one.message): one.category for one in said}
    for text, category in by_text.items():
        warnings.warn(text, category, stacklevel=4)
    return fit, [text for text, category in by_text.items() if issubclass(category, UserWarning)]
