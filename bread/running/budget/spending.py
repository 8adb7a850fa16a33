"""A budget as it is spent: gradient evaluations counted, or the clock read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from bread.running.state.budget import Budget
from bread.running.state.results import CheckResult

Kept = Callable[[str, Callable[[], float]], float]


class Spending(Protocol):
    """A budget, and what is spent of it."""

    budget: Budget

    def spent(self) -> float:
        """Return what was spent so far, in the unit of the budget."""
        ...


class GradientSpending:
    """Counts gradient evaluations, as the report does; the same seed spends the same."""

    def __init__(self, budget: Budget, result: CheckResult) -> None:
        self.budget = budget
        self._result = result

    def spent(self) -> float:
        """Return the gradient evaluations of all phases."""
        return float(sum(self._result.n_gradients.values()))


class TimeSpending:
    """Reads the clock. A checkpoint keeps every reading: a check that goes on decides again what it has decided.

    Parameters
    ----------
    budget : Budget
    kept : callable
        ``kept(name, compute)`` returns ``compute()``, or what it returned in an earlier run.
    before : float
        Seconds that the check has already taken.
    clock : callable
        Seconds.
    """

    def __init__(
        self, budget: Budget, kept: Kept, before: float = 0.0, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.budget = budget
        self._kept, self._clock = kept, clock
        self._last, self._at, self._n = before, clock(), 0

    def spent(self) -> float:
        """Return the seconds since the check began, those of earlier runs of its checkpoint included."""
        self._n += 1
        self._last = self._kept(f"clock {self._n}", lambda: self._last + self._clock() - self._at)
        self._at = self._clock()
        return self._last


def open_spending(budget: Budget, result: CheckResult, kept: Kept, before: float) -> Spending:
    """Return the spending of a budget; ``before`` are the seconds spent so far."""
    return TimeSpending(budget, kept, before) if budget.is_time else GradientSpending(budget, result)
