"""What `bread.plan` returns: which error a budget can see, predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bread.running.state.budget import Budget, BudgetResult


@dataclass(frozen=True)
class Outlook:
    """What `bread.check` is predicted to show within a budget; `str` says it in words.

    Attributes
    ----------
    budget : float
        Seconds or gradient evaluations (``unit``).
    unit : {"s", "gradient evaluations"}
    limit, lower, upper : float
        The limit of V that is expected, and an interval for the one that a check will end with: meant to hold 90 %, and
        measured to hold less (6 of 9 models). NaN where the budget is too small to begin.
    n_temperatures, n_simulations, n_chains : int
        What would give it; 0 where the budget is too small.
    cost : float
        What `bread.check` is predicted to spend, in ``unit``.
    max_error : float
        What is to be reached.
    is_likely : bool
        Whether the budget is likely to reach it.
    needed : float
        The budget that would be likely to reach it, in ``unit``; infinite where no T up to 2^20 is.
    spent : float
        What this plan has cost, in ``unit``.
    sentences : tuple of str
        What was said on the way.
    """

    budget: float
    unit: str
    limit: float
    lower: float
    upper: float
    n_temperatures: int
    n_simulations: int
    n_chains: int
    cost: float
    max_error: float
    is_likely: bool
    needed: float
    spent: float
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        words = Budget(self.budget, self.unit == "s").in_words
        if self.n_simulations == 0:
            return self.sentences[-1]
        text = (
            f"In {words(self.budget)} I can see errors down to {self.limit:.2g} ({self.lower:.2g} to "
            f"{self.upper:.2g}), with T = {self.n_temperatures} and {self.n_simulations} simulations."
        )
        if self.is_likely:
            return f"{text} That is below {self.max_error:.2g} after about {words(self.cost)}."
        if self.needed == float("inf"):
            return f"{text} No number of temperatures up to 2^20 is likely to show {self.max_error:.2g} on this path."
        return f"{text} To see {self.max_error:.2g} would take about {words(self.needed)}."


def outlook(found: BudgetResult, max_error: float) -> Outlook:
    """Return what a forecast says about reaching ``max_error``."""
    predicted: dict[str, Any] = found.predicted
    nan = float("nan")
    return Outlook(
        budget=found.budget.amount,
        unit=found.as_json()["unit"],
        limit=predicted.get("limit", nan),
        lower=predicted.get("lower", nan),
        upper=predicted.get("upper", nan),
        n_temperatures=int(predicted.get("n_temperatures", 0)),
        n_simulations=int(predicted.get("n_simulations", 0)),
        n_chains=int(predicted.get("n_chains", 0)),
        cost=found.spent_on_forecast + predicted.get("cost", nan),
        max_error=max_error,
        is_likely=bool(predicted.get("upper", 1.0) <= max_error),
        needed=found.needed.get("total", float("inf")),
        spent=found.spent,
        sentences=tuple(found.sentences),
    )
