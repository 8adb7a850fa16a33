"""The search without a budget: T is doubled until the bound is small, and fresh simulations confirm it."""

from __future__ import annotations

from bread.running.check.rounds import Rounds
from bread.running.state.plan import Plan
from bread.running.state.results import CheckResult
from bread.statistics.bounds import intervals
from bread.statistics.bounds.goal import Decision, one_sided, simulations_needed

DEAR = 4.0  # price of a reference from which on the search must reach its goal before anything is confirmed
MOST_BATCHES = 5  # simulations at one T, over the number that was asked for


class Doubling:
    """Finds T and confirms it."""

    def __init__(self, plan: Plan, result: CheckResult, rounds: Rounds) -> None:
        self._plan, self._result, self._rounds = plan, result, rounds
        self._attempts = 0

    def run(self) -> list[int]:
        """Double T on one set of simulations until the bound is small; confirm on fresh ones. Return every T run."""
        plan = self._plan
        search = self._rounds.simulate(plan.search_simulations, "search")
        n_temperatures = self._rounds.first_temperatures()
        temperatures: list[int] = []
        while True:
            temperatures.append(n_temperatures)
            self._result.n_temperatures = n_temperatures
            decision = self._rounds.anneal_both(search, n_temperatures, "search")
            is_last = n_temperatures >= plan.max_temperatures
            if (self._is_near(decision, n_temperatures) or is_last) and self._confirm(n_temperatures, is_last):
                return temperatures
            if self._rounds.takes_another_path(search, temperatures):
                search = self._rounds.simulate(len(search), "search")
                n_temperatures, temperatures = self._rounds.first_temperatures(), []
                continue
            if self._rounds.proposes_late(search, temperatures):
                n_temperatures, temperatures = self._rounds.first_temperatures(), []
                continue
            n_temperatures = min(2 * n_temperatures, plan.max_temperatures)

    def _is_near(self, decision: Decision, n_temperatures: int) -> bool:
        """Return whether the search shows that few fresh simulations at this T will do: less than at twice the T."""
        plan = self._plan
        enough = few(plan.search_simulations, plan.simulations, self._rounds.reference_price(n_temperatures))
        return (
            decision.is_reached
            or simulations_needed(decision, intervals.alpha_level(self._attempts), enough) is not None
        )

    def _confirm(self, n_temperatures: int, is_last: bool) -> bool:
        """Anneal fresh simulations at this T, and more while that is cheaper than more temperatures.

        Returns whether the search ends here.

        Each look at the interval spends half of the error that is left (`intervals.alpha_level`).
        """
        fresh = self._rounds.simulate(self._plan.simulations, "confirm")
        while True:
            self._result.level = intervals.alpha_level(self._attempts)
            self._result.error_level = one_sided(self._result.level)
            self._attempts += 1
            self._rounds.expect(n_temperatures, len(fresh))
            decision = self._rounds.anneal_both(fresh, n_temperatures, "confirm")
            if decision.is_reached:
                return True
            wanted = simulations_needed(
                decision,
                intervals.alpha_level(self._attempts),
                self._most_simulations(len(fresh), n_temperatures, is_last),
            )
            if wanted is None:
                break
            fresh += self._rounds.simulate(wanted - len(fresh), "confirm")
        if is_last:
            return True
        for index in fresh:  # they helped to choose a larger T: no longer fresh
            self._result.roles[index] = "search"
        return False

    def _most_simulations(self, n_now: int, n_temperatures: int, is_last: bool) -> int:
        """Return how many simulations may be run at this T."""
        plan, price = self._plan, self._rounds.reference_price(n_temperatures)
        return most(n_now, plan.search_simulations, plan.simulations, price, is_last=is_last)


def few(n_search: int, n_confirm: int, reference: float) -> int:
    """Return up to how many fresh simulations at T are preferred to a search at twice the T; 0 where none are.

    The unit is the annealing of one simulation at T. ``reference`` is what a fresh one costs before its chains run:
    what is fitted to it, in this unit. Simulations of the search have theirs, and twice the T runs on them first.
    """
    return 0 if reference > DEAR else n_search + n_confirm


def most(n_now: int, n_search: int, n_confirm: int, reference: float, *, is_last: bool) -> int:
    """Return how many simulations may confirm one T: more would cost more than twice the temperatures.

    At the last T nothing else can be done, up to `MOST_BATCHES` times the number that was asked for.
    """
    limit = MOST_BATCHES * n_confirm
    at_twice = int((2.0 * n_search + (2.0 + reference) * n_confirm) / (1.0 + reference))
    return limit if is_last else min(n_now + at_twice, limit)
