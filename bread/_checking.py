"""A check from its model to its report, once its arguments are read and its workers start."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

import bread.report.container as report
from bread._arguments import Arguments, make_plan, require_parameters
from bread._checkpoint import Checkpoint
from bread._run import purse_of, run
from bread.arviz_import import require_containers
from bread.backends import open_model
from bread.backends.base import Fit, Model, Simulations
from bread.paths.kinds import PriorPath
from bread.running.executors import Workers
from bread.running.plan import Plan
from bread.running.progress import Display
from bread.running.results import CheckResult

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
) -> Any:
    """Open the model, plan, run and report; ``began``: when the check did, of `time.perf_counter`."""
    opened = open_for_check(model, data, arguments, display)
    plan, call = make_plan(arguments, opened.model), {**vars(arguments), "model": model, "data": data}
    plan, arguments = saved.agree(call, opened.model, opened.fit, plan, arguments)
    finished = saved.report()
    if finished is not None:
        return finished
    result = opened.new_result(plan, arguments)
    purse = purse_of(plan, result, saved, time.perf_counter() - began)
    annealed = run(opened.model, plan, result, workers, saved, display, purse, max_seconds=arguments.max_seconds)
    container = report.to_container(result, annealed.constrain)
    if not result.is_interrupted:
        saved.finish(container)
    return container


class Opened(NamedTuple):
    """A model that was read and checked, the user's own draws with what was said of them, and how long reading took."""

    model: Model
    fit: Fit | None
    warnings: list[str]
    seconds: float

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
        )


def open_for_check(model: Any, data: Any, arguments: Arguments, display: Display) -> Opened:
    """Read and check the model, and the user's draws."""
    display.phase("compiling")
    began = time.perf_counter()
    require_containers()
    opened = open_model(model, arguments.open_options(data))
    require_parameters(arguments.names, opened.info)
    fit, said = _read_posterior(opened, arguments.posterior)
    display.done()
    return Opened(opened, fit, said, time.perf_counter() - began)


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
