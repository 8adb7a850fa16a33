"""Search and confirmation within a budget: short rounds first, a forecast, then what lowers the limit of V most.

What keeps the limit valid. T and the number of confirming simulations are fixed before the first of them is drawn, from
other simulations; a batch that has begun is finished, whatever it turns out to cost, because data sets that cost more
are often those with a larger V; and every look at the limit spends its share of the error (`intervals.alpha_level`),
whether or not there is money for another. So a budget decides which looks are taken, never how one turns out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bread.errors import InvalidArgumentError
from bread.running.budget.prices import Prices
from bread.running.budget.spending import Spending
from bread.running.check.annealing import BOTH
from bread.running.check.comparison import FEWEST_DRAWS
from bread.running.check.rounds import Rounds
from bread.running.state.budget import BudgetResult
from bread.running.state.plan import FIRST_TEMPERATURES, Plan
from bread.running.state.results import CheckResult
from bread.statistics.bounds import intervals
from bread.statistics.bounds.allocation import Allocation, allocations, best, cheapest_to_reach
from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation, error_interval
from bread.statistics.bounds.forecast import Forecast, Round, forecast
from bread.statistics.bounds.goal import Decision, one_sided

FIRST_ROUND = 16  # most temperatures of the first round
GROWTH = 4  # of the temperatures from one short round to the next
SHARE = 0.1  # of what is left that a further short round may cost
BLIND = 0.99  # a predicted limit of V above which rounds have shown nothing yet: a longer path may
RESERVE = 0.1  # of what is left, for costs that are not predicted
BATCHES = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0)  # numbers of confirming simulations, over the number that was asked for
MOST_LOOKS = 4
PROBE_SIMULATIONS = 5  # of a forecast that is all that was asked for
TESTS = 0.05  # of a budget, for the direct tests of a check
WORTH = 0.95  # a further look must be predicted to lower the limit to less than this share
LARGEST = 2**20  # temperatures, where it is said what reaching the goal would take


class SearchInBudget:
    """Finds T and confirms it within a budget.

    Parameters
    ----------
    plan : Plan
    result : CheckResult
        ``result.budget`` keeps what is predicted and said.
    rounds : Rounds
    spending : Spending
    say : callable
        Shows a line.
    """

    def __init__(
        self, plan: Plan, result: CheckResult, rounds: Rounds, spending: Spending, say: Callable[[str], None]
    ) -> None:
        self.prices = Prices(plan)
        self.outcome = result.budget = BudgetResult(spending.budget)
        self._plan, self._result, self._rounds, self._spending, self._say = plan, result, rounds, spending, say
        self._seen: list[Round] = []
        self._looks = 0
        self._ahead = 0.0  # what a check spends before its first confirmation, and a forecast alone does not

    @property
    def left(self) -> float:
        """What may still be spent on what is predicted, in the unit of the budget."""
        return (1.0 - RESERVE) * (self._spending.budget.amount - self._spent() - self._ahead)

    def _spent(self) -> float:
        self.outcome.spent = self._spending.spent()
        return self.outcome.spent

    def foresee_only(self) -> None:
        """Make the forecast for a check that has yet to begin, from fewer simulations than that would take."""
        self._ahead = TESTS * self._spending.budget.amount
        before, n = self._spent(), min(PROBE_SIMULATIONS, self._plan.search_simulations)
        if self.probe(n):
            self._ahead += (self._spent() - before) * (self._plan.search_simulations / n - 1.0)
            self.foresee()
        self.close()

    def run(self) -> list[int]:
        """Search and confirm; return every T on which the consistency test may look."""
        temperatures = self.probe(self._plan.search_simulations)
        choice = self.foresee() if temperatures else None
        if choice is None:
            raise InvalidArgumentError(self.outcome.sentences[-1])
        while choice is not None:
            temperatures.append(choice.n_temperatures)
            choice = self._confirm(choice)
        return temperatures

    # -- what comes after -------------------------------------------------------------------------------------

    def affords_forward(self, n_simulations: int) -> bool:
        """Return whether the consistency test may add so many simulations; say so if not."""
        number = self._result.n_temperatures
        n_draws = FEWEST_DRAWS if self._plan.draws is None else self._plan.draws
        price = self.prices.forward(number, n_simulations) + self.prices.draws(number, n_draws)
        price += self.prices.repeats(number)  # to which simulations that look so far like the real data lead
        if price <= self.left:
            return True
        self.outcome.sentences.append(
            "The comparison of your data with simulated ones ended where the budget did, with fewer simulations than "
            "would make it sure."
        )
        return False

    def with_draws(self, wanted: int) -> Plan:
        """Return the plan with as many draws on the real data as were asked for, or as there is money for."""
        plan, price = self._plan, self.prices.draws(self._result.n_temperatures, 1)
        if plan.draws is not None or wanted <= FEWEST_DRAWS:
            return plan
        paid = int(max(self.left, 0.0) / max(price, 1e-300)) if self.left < wanted * price else wanted
        number = max(FEWEST_DRAWS, paid) // plan.chains * plan.chains
        if number < wanted:
            self.outcome.sentences.append(f"Draws on your data: {number} of {wanted}, for which the budget was enough.")
        return replace(plan, draws=min(number, wanted))

    def close(self) -> None:
        """Note what was spent; not where the check was interrupted, which would be a reading too many."""
        self._spent()

    # -- the forecast -----------------------------------------------------------------------------------------

    def probe(self, n_simulations: int) -> list[int]:
        """Anneal a few simulations at few temperatures, and at more while that is cheap; return every T.

        None at all where nothing is left to spend.
        """
        if self.left <= 0:
            self._tell(self._too_small(None))
            return []
        search = self._simulate(n_simulations, "search")
        n_temperatures = min(self._rounds.first_temperatures(), FIRST_ROUND)
        temperatures: list[int] = []
        while True:
            temperatures.append(n_temperatures)
            self._result.n_temperatures = n_temperatures
            decision = self._anneal(search, n_temperatures, "search")
            if self._rounds.takes_another_path(search, temperatures):
                self._seen, temperatures = [], []
                search = self._simulate(len(search), "search")
                n_temperatures = min(self._rounds.first_temperatures(), FIRST_ROUND)
                continue
            choice = self._best()
            if decision.is_reached or choice is None:
                return temperatures
            wanted = choice.n_temperatures if choice.limit.estimate < BLIND else self._plan.max_temperatures
            following = min(GROWTH * n_temperatures, wanted)
            if following <= n_temperatures:
                return temperatures
            if self.prices.annealing(following, len(search)) > SHARE * self.left:
                return temperatures
            n_temperatures = following

    def foresee(self) -> Allocation | None:
        """Say what is reachable and what the goal would take; return what to run first, None where nothing can be."""
        choice, outcome = self._best(), self.outcome
        spent = outcome.spent_on_forecast = self._spent() + self._ahead
        if choice is None:
            self._tell(self._too_small(self._cheapest()))
            return None
        outcome.predicted = self._described(choice)
        budget, limit = self._spending.budget, choice.limit
        is_reached = choice.limit.upper <= self._wanted
        within = f"{budget.in_words(spent + choice.cost)} of the {budget}" if is_reached else f"the budget of {budget}"
        self._tell(
            f"Predicted from the first rounds: within {within}, errors down to {limit.estimate:.2g} "
            f"({limit.lower:.2g} to {limit.upper:.2g}) can be seen, at T = {choice.n_temperatures} with "
            f"{choice.n_simulations} simulations."
        )
        needed = cheapest_to_reach(self._options(LARGEST), self._wanted)
        if needed is not None:
            total = spent + needed.cost / (1.0 - RESERVE)
            outcome.needed = {**self._described(needed), "total": total}
            if not is_reached:
                more = "" if needed.n_temperatures <= self._plan.max_temperatures else (
                    f", and max_temperatures={needed.n_temperatures}"
                )  # fmt: skip
                self._tell(
                    f"To be likely to reach {self._wanted:.2g} would take about {budget.in_words(total)} "
                    f"(T = {needed.n_temperatures}, {needed.n_simulations} simulations{more})."
                )
        return choice

    def _best(self) -> Allocation | None:
        return best(self._options(self._plan.max_temperatures), self.left, self._wanted)

    def _cheapest(self) -> Allocation:
        return min(self._options(self._plan.max_temperatures), key=lambda option: option.cost)

    def _options(self, largest: int) -> list[Allocation]:
        level, numbers = one_sided(intervals.alpha_level(self._looks)), self._temperatures(largest)
        return allocations(self._forecast(), self.prices.confirmation, numbers, self._simulations(), level)

    def _forecast(self) -> Forecast:
        first = self._seen[0].n_temperatures
        return forecast(self._seen, self._plan.chains, 0.95, (first, self._rounds.predicted_gap(first)))

    @property
    def _wanted(self) -> float:
        """The limit of V to reach; where B decides, the V that it would bound."""
        return self._plan.goal.decides(False)[1]

    def _simulations(self) -> list[int]:
        return sorted({int(share * self._plan.simulations) for share in BATCHES if share * self._plan.simulations >= 2})

    def _temperatures(self, largest: int) -> list[int]:
        least = min(FIRST_TEMPERATURES, largest)
        numbers = [FIRST_TEMPERATURES * 2**k for k in range(32)]
        return sorted({least, *(number for number in numbers if number <= largest), min(largest, LARGEST)})

    def _described(self, choice: Allocation) -> dict[str, float]:
        return {
            "limit": choice.limit.estimate,
            "lower": choice.limit.lower,
            "upper": choice.limit.upper,
            "n_temperatures": choice.n_temperatures,
            "n_simulations": choice.n_simulations,
            "n_chains": self._plan.chains,
            "cost": choice.cost,
        }

    def _tell(self, sentence: str) -> None:
        self.outcome.sentences.append(sentence)
        self._say(sentence)

    def _too_small(self, cheapest: Allocation | None) -> str:
        budget, spent = self._spending.budget, self._spent()
        if cheapest is None:
            return (
                f"budget={str(budget)!r} is too small: what comes before the first chains (fit, pilots) took "
                f"{budget.in_words(spent)}. Give several times as much."
            )
        total = spent + cheapest.cost / (1.0 - RESERVE)
        return (
            f"budget={str(budget)!r} is too small: fit, pilots and first rounds took {budget.in_words(spent)}, and the "
            f"least that shows an error (T = {cheapest.n_temperatures}, {cheapest.n_simulations} simulations) brings "
            f"that to about {budget.in_words(total)}. Give that, or fewer simulations."
        )

    # -- confirmation -----------------------------------------------------------------------------------------

    def _confirm(self, choice: Allocation) -> Allocation | None:
        """Anneal the simulations of a choice, all of them, and look; return what to run next, None at the end."""
        result, number = self._result, choice.n_temperatures
        now = [int(index) for index in result.indices("confirm")]
        if now and number != result.n_temperatures:
            for index in now:  # they helped to choose another T: no longer fresh
                result.roles[index] = "search"
            now = []
        result.n_temperatures = number
        fresh = now + self._simulate(choice.n_simulations - len(now), "confirm")
        result.level = intervals.alpha_level(self._looks)
        result.error_level = one_sided(result.level)
        self._looks += 1
        decision = self._anneal(fresh, number, "confirm", n_new=len(fresh) - len(now))
        if decision.is_reached or self._looks >= MOST_LOOKS:
            return None
        return self._next(decision, number, len(fresh))

    def _next(self, decision: Decision, n_temperatures: int, n_now: int) -> Allocation | None:
        """Return what lowers the limit most, of what can be paid for; None where nothing is worth its price."""
        level, predicted = one_sided(intervals.alpha_level(self._looks)), self._forecast()
        others = [number for number in self._temperatures(self._plan.max_temperatures) if number != n_temperatures]
        options = allocations(predicted, self.prices.confirmation, others, self._simulations(), level)
        larger = [number for number in self._simulations() if number > n_now]
        options += allocations(predicted, lambda t, n: self.prices.more(t, n_now, n), [n_temperatures], larger, level)
        choice = best(options, self.left, self._wanted)
        upper = error_interval(self._seen[-1].errors, self._result.error_level).upper
        return None if choice is None or choice.limit.estimate > WORTH * upper else choice

    # -- rounds, priced ---------------------------------------------------------------------------------------

    def _simulate(self, n: int, role: str) -> list[int]:
        before = self._spent()
        indices = self._rounds.simulate(n, role)
        if n:
            self.prices.per_data_set = (self._spent() - before) / n
        return indices

    def _anneal(self, indices: Sequence[int], n_temperatures: int, phase: str, n_new: int | None = None) -> Decision:
        """Anneal where that has not been done, and note what it cost and showed."""
        before = self._spent()
        decision = self._rounds.anneal_both(indices, n_temperatures, phase)
        cost = self._spent() - before
        if cost <= 0.0:
            raise InvalidArgumentError(
                "budget as a number counts gradient evaluations, and the kernel of this model takes none. Give a time, "
                f"such as budget='5 min'; got {self._spending.budget.amount:.0f}."
            )
        self.prices.note_annealing(cost, n_temperatures, len(indices) if n_new is None else n_new)
        forward, reverse = (self._result.log_weights(way, n_temperatures, np.array(indices)) for way in BOTH)
        self._seen.append(
            Round(n_temperatures, error_by_simulation(forward, reverse), conditional_gaps(forward, reverse))
        )
        return decision
