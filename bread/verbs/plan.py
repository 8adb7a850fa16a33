"""`bread.plan`: what a check could show within a budget, without making it."""

from __future__ import annotations

import time
from inspect import signature
from typing import Any

from bread.backends import model_in_context
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.jobs import interrupts
from bread.jobs.executors import Workers, available_cores, one_thread
from bread.jobs.progress import Display
from bread.jobs.remote import require_executor
from bread.reading.other_verbs.outlook import Outlook, outlook
from bread.running.budget.spending import open_spending
from bread.running.state.budget import BudgetResult
from bread.verbs.arguments import Arguments, make_plan
from bread.verbs.check import check
from bread.verbs.checking import open_for_check
from bread.verbs.checkpoint import Checkpoint
from bread.verbs.run import run


def plan(model: Any = None, *, budget: str | int, **options: Any) -> Outlook:
    """Predict which errors `bread.check` could see within a budget, from pilots and a few short rounds.

    Parameters
    ----------
    model : model, optional
        As for `bread.check`.
    budget : str or int
        A time with its unit ("5 min", "90 s", "1.5 h"), or a whole number of gradient evaluations. A time ends the plan
        itself too, where fit and pilots alone take longer (on the main thread).
    **options : Any
        Arguments of `bread.check`, with the same meaning and defaults; no ``checkpoint``, and no ``n_temperatures``,
        which a budget chooses.

    Returns
    -------
    Outlook
        Printed, a sentence: "In 5 min I can see errors down to 0.04 (0.03 to 0.06) ...". A prediction, and no
        certificate: V and its limit come from `bread.check`, which makes the fit and pilots that this rests on again.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed, or the budget counts gradients that the model's kernel does not take.
    UnsupportedModelError, UnsupportedKernelError
        As `bread.check`.
    """
    bound = signature(check).bind(model, budget=budget, **options)
    bound.apply_defaults()
    given = dict(bound.arguments)
    if budget is None or given.pop("checkpoint") is not None:
        raise InvalidArgumentError(
            "bread.plan needs a budget and keeps nothing, so it takes budget= and no checkpoint=; got "
            f"budget={budget!r}, checkpoint={options.get('checkpoint')!r}. Give the checkpoint to bread.check."
        )
    model, data, executor = given.pop("model"), given.pop("data"), given.pop("executor")
    arguments = Arguments(**given)
    began, cores = time.perf_counter(), available_cores(arguments.cores)
    if executor is not None:
        require_executor(executor)
    display = Display(is_visible=arguments.progressbar, workers=cores)
    with interrupts.handled(), one_thread(), display:
        opened = open_for_check(model_in_context(model), data, arguments, display)
        if opened.not_certified:
            raise UnsupportedModelError(f"No error can be foreseen: {opened.not_certified}.")
        wanted = make_plan(opened.arguments, opened.model)
        result, kept = opened.new_result(wanted, opened.arguments), Checkpoint(None)
        assert wanted.budget is not None
        spending = open_spending(wanted.budget, result, kept.keeper.kept, time.perf_counter() - began)
        limit = wanted.budget.amount if wanted.budget.is_time and interrupts.can_limit() else None
        try:
            run(
                opened.model, wanted, result, Workers(cores, executor), kept, display, spending, is_forecast=True,
                max_seconds=limit,
            )  # fmt: skip
        except KeyboardInterrupt:
            if not interrupts.is_over():
                raise
            result.budget = BudgetResult(wanted.budget, spent=wanted.budget.amount)
            result.budget.sentences.append(
                f"budget={str(wanted.budget)!r} is too small: what comes before the first chains (fit, pilots) takes "
                "longer. Give several times as much, or posterior=, which skips the fit."
            )
        assert result.budget is not None
        return outlook(result.budget, wanted.goal.decides(False)[1])
