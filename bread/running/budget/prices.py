"""What chains cost in the unit of a budget, as measured by the rounds that have run."""

from __future__ import annotations

from dataclasses import dataclass

from bread.running.check.comparison import FEWEST_DRAWS
from bread.running.state.consistency import FIRST_SIMULATIONS, REPEATS, left_out
from bread.running.state.plan import Plan
from bread.statistics.real_data.sequential import SHAPE_LEVEL

SHAPE_TEMPERATURES = 1 + 1 / 4 + 1 / 16  # of the consistency test, as shares of the largest T


@dataclass
class Prices:
    """Prices in the unit of a budget (gradient evaluations or seconds).

    Attributes
    ----------
    plan : Plan
    per_transition : float
        Of one chain.
    per_data_set : float
        Of what a data set needs before it is annealed: simulation, tuning, reverse starts.
    """

    plan: Plan
    per_transition: float = 0.0
    per_data_set: float = 0.0

    def annealing(self, n_temperatures: int, n_simulations: int) -> float:
        """Return the price of both directions on data sets that are prepared, and of forward chains on the real one."""
        return self._transitions(n_temperatures, n_simulations) * self.per_transition

    def note_annealing(self, cost: float, n_temperatures: int, n_simulations: int) -> None:
        """Take the price of a transition from a round."""
        self.per_transition = cost / self._transitions(n_temperatures, n_simulations)

    def confirmation(self, n_temperatures: int, n_simulations: int) -> float:
        """Return the price of fresh data sets annealed both ways, and of what must follow it."""
        return (
            n_simulations * self.per_data_set
            + self.annealing(n_temperatures, n_simulations)
            + self.afterwards(n_temperatures, n_simulations)
        )

    def more(self, n_temperatures: int, n_now: int, n_simulations: int) -> float:
        """Return the same where ``n_now`` of the data sets have run at this T."""
        return (
            (n_simulations - n_now) * self.per_data_set
            + self.annealing(n_temperatures, n_simulations - n_now)
            + self.afterwards(n_temperatures, n_simulations)
        )

    def afterwards(self, n_temperatures: int, n_simulations: int) -> float:
        """Return the least that comparison with the real data costs: forward chains at smaller T, and draws.

        Of the repeats on the real data it counts what is expected where these are like the others: the first chains
        ask for them with a chance of `SHAPE_LEVEL`.
        """
        plan, total = self.plan, 0.0
        if left_out(plan) is None:
            added = max(0, FIRST_SIMULATIONS - n_simulations)
            total += self.forward(n_temperatures, added)
            chains = plan.chains * (n_simulations + 1)
            total += chains * n_temperatures * (SHAPE_TEMPERATURES - 1) * self.per_transition
            total += SHAPE_LEVEL * self.repeats(n_temperatures)
        n_draws = FEWEST_DRAWS if plan.draws is None else plan.draws
        return total + self.draws(n_temperatures, n_draws)

    def forward(self, n_temperatures: int, n_simulations: int) -> float:
        """Return the price of simulations that the consistency test adds."""
        chains = self.plan.chains * n_simulations
        annealed = chains * n_temperatures * SHAPE_TEMPERATURES * self.per_transition
        return n_simulations * self.per_data_set + annealed

    def repeats(self, n_temperatures: int) -> float:
        """Return the price of annealing the real data again, before they are called harder than the others."""
        return REPEATS * self.plan.chains * n_temperatures * SHAPE_TEMPERATURES * self.per_transition

    def draws(self, n_temperatures: int, n_draws: int) -> float:
        """Return the price of annealed draws on the real data."""
        return n_draws * (n_temperatures - 1) * self.per_transition

    def _transitions(self, n_temperatures: int, n_simulations: int) -> int:
        return (2 * n_simulations + 1) * self.plan.chains * (n_temperatures - 1)
