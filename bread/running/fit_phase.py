"""The phase of a check that tests whether the real data look like the model's."""

from __future__ import annotations

from bread.backends.base import Model
from bread.running.fit_check import check_fit
from bread.running.ledger import Ledger
from bread.running.plan import Plan
from bread.running.results import CheckResult


def look_at_fit(model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
    """Test the fit at annealed draws on the real data, where there are any; ``result.fit_check`` keeps it."""
    draws = result.observed_draws
    if draws is None or not len(draws):
        return
    with ledger.phase("fit, real data", "replicate"):
        result.fit_check = check_fit(model, draws, plan.root)
