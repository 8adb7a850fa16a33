"""What a check may spend, how that is written, and what a report keeps of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bread.argument_rules import is_count, received
from bread.errors import InvalidArgumentError
from bread.jobs.progress import duration

_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_TIME = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z]+?)s?\s*", re.IGNORECASE)
_RULE = (
    "budget must be a time as text with its unit (s, min or h), such as '5 min', '90 s' or '1.5 h', or a whole number "
    "of gradient evaluations above 0, such as 1_000_000"
)


@dataclass(frozen=True)
class Budget:
    """What a check may spend.

    Attributes
    ----------
    amount : float
        Seconds, or gradient evaluations.
    is_time : bool
    """

    amount: float
    is_time: bool

    def in_words(self, amount: float) -> str:
        """Return an amount of this budget's unit, rounded: "4 min", "1.2 million gradient evaluations"."""
        if self.is_time:
            return duration(amount)
        for size, word in ((1e9, " billion"), (1e6, " million")):
            if amount >= 0.995 * size:
                return f"{amount / size:.3g}{word} gradient evaluations"
        return f"{float(f'{amount:.3g}'):,.0f} gradient evaluations".replace(",", " ")

    def __str__(self) -> str:
        return self.in_words(self.amount)


def read_budget(value: Any) -> Budget | None:
    """Return a budget; None where none is given.

    Parameters
    ----------
    value : str, int or None
        Text is a time and needs its unit; a whole number counts gradient evaluations.

    Raises
    ------
    InvalidArgumentError
        Anything else: a number without a unit as text, a fraction, zero.
    """
    if value is None:
        return None
    if isinstance(value, str):
        match = _TIME.fullmatch(value)
        unit = None if match is None else _UNITS.get(match["unit"].lower() or "s")
        if match is None or unit is None or float(match["number"]) == 0.0:
            raise InvalidArgumentError(f"{_RULE}; got {value!r}. Write the number with a unit.")
        return Budget(unit * float(match["number"]), True)
    if not is_count(value, 1, most=None):
        raise InvalidArgumentError(f"{_RULE}; got {received(value)}.")
    return Budget(float(int(value)), False)


@dataclass
class BudgetResult:
    """What a budget was, what was predicted and what was spent; for reading: no verdict rests on it.

    Attributes
    ----------
    budget : Budget
    spent : float
        In the unit of the budget.
    spent_on_forecast : float
        The part of it after which the forecast was made.
    predicted : dict of str to number
        ``limit``, ``lower``, ``upper`` of V's limit, its ``n_temperatures``, ``n_simulations``, ``n_chains`` and
        ``cost``; empty before the forecast.
    needed : dict of str to number
        The same for reaching ``max_error``, whatever it costs; ``total`` is what a budget would have to be. Empty
        where no T that is allowed is likely to reach it.
    sentences : list of str
        What was said.
    """

    budget: Budget
    spent: float = 0.0
    spent_on_forecast: float = 0.0
    predicted: dict[str, float] = field(default_factory=dict)
    needed: dict[str, float] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Return what the report's notes say of the budget."""
        spent = f"Budget {self.budget}: {self.budget.in_words(self.spent)} spent."
        return [*self.sentences, spent]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        return {
            "amount": self.budget.amount,
            "unit": "s" if self.budget.is_time else "gradient evaluations",
            "spent": self.spent,
            "spent_on_forecast": self.spent_on_forecast,
            "predicted": self.predicted,
            "needed": self.needed,
        }
