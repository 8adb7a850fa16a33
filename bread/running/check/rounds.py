"""Rounds of a search: simulated data sets annealed both ways at one T, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bread.jobs.progress import Display
from bread.running.check import curve
from bread.running.check.annealing import BOTH, Annealing
from bread.running.check.comparison import FEWEST_DRAWS
from bread.running.check.preparation import Preparation
from bread.running.path_choice import costs
from bread.running.state import consistency
from bread.running.state.plan import FIRST_TEMPERATURES, Plan
from bread.running.state.results import CheckResult
from bread.statistics.bounds import bounds
from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation
from bread.statistics.bounds.goal import Decision


class Rounds:
    """What every search is made of; ``result`` keeps what was annealed."""

    def __init__(
        self, plan: Plan, result: CheckResult, preparation: Preparation, annealing: Annealing, display: Display
    ) -> None:
        self._plan, self._result, self._preparation = plan, result, preparation
        self._annealing, self._display = annealing, display

    def simulate(self, n: int, role: str) -> list[int]:
        """Add simulated data sets, ready to be annealed."""
        return self._preparation.simulate(n, role)

    def anneal_both(self, indices: Sequence[int], n_temperatures: int, phase: str) -> Decision:
        """Anneal simulations both ways where that has not been done, showing the bound so far; return what decides."""
        runs = self._result.runs
        self._result.attempts.plan(indices, n_temperatures, "first" if self._plan.is_searching else "all")
        for _ in self._annealing.both(indices, n_temperatures, phase):
            done = [index for index in indices if all((index, way, n_temperatures) in runs for way in BOTH)]
            if len(done) > 1:
                decision = self._decide(done, n_temperatures)
                if decision is not None:
                    self._display.bound(
                        decision.name, decision.interval.estimate, decision.interval.upper, decision.limit
                    )
        decision = self._decide(indices, n_temperatures)
        assert decision is not None  # a chain that failed has raised
        return decision

    def _decide(self, indices: Sequence[int], n_temperatures: int) -> Decision | None:
        """Return the bound that decides on these simulations; None where a chain has failed."""
        forward, reverse = (self._result.log_weights(way, n_temperatures, np.array(indices)) for way in BOTH)
        if np.isnan(forward).any() or not np.isfinite(reverse).all():
            return None
        is_reliable = self._plan.goal.target is not None and bounds.jeffreys_is_reliable(
            self._result.base_log_ratio, forward, self._result.end_log_ratio, self._result.exact_end_log_ratio
        )
        return self._plan.goal.decide(forward, reverse, self._result.level, is_reliable=is_reliable)

    def first_temperatures(self) -> int:
        """Return the T to begin with: a quarter of what the pilot's path length asks for, as a power of two."""
        assert self._preparation.path_length is not None
        total = min(self._preparation.path_length.total, 1e100)
        wanted = total**2 / self._plan.target / 4
        first = 2 ** int(np.floor(np.log2(max(wanted, FIRST_TEMPERATURES))))
        return int(min(max(first, FIRST_TEMPERATURES), self._plan.max_temperatures))

    def takes_another_path(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        """Look for another path where the present one costs more than it seemed; forget its chains if one is found."""
        seen = [self.seen(search, n_temperatures) for n_temperatures in temperatures]
        spent = sum(self._result.n_gradients.get(phase, 0) for phase in ("search", "confirm"))
        if not (
            self._preparation.may_look_again(spent, seen[-1].per_transition)
            or self._preparation.may_race_again(temperatures[-1])
        ):
            return False
        now = costs.PathCost(
            self._result.path.name, True, temperatures[-1], seen[-1].per_transition, 0.0, 2 * self._plan.chains
        )
        return self._preparation.look_again(costs.measured(now, seen, self._plan.target), temperatures[-1])

    def proposes_late(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        """Propose draws from references where the search has found chains dear; forget those that had none."""
        chosen = self._preparation.cost
        if chosen is None:
            return False
        per_transition = self.seen(search, temperatures[-1]).per_transition
        return self._preparation.proposes_late(
            replace(
                chosen, n_temperatures=2.0 * temperatures[-1], per_transition=per_transition,
                n_chains=2 * self._plan.chains,
            )
        )  # fmt: skip

    def seen(self, search: Sequence[int], n_temperatures: int) -> costs.Round:
        """Return what the search has measured at this T."""
        runs = [self._result.runs[index, direction, n_temperatures] for index in search for direction in BOTH]
        n_transitions = sum(len(run.n_gradients) for run in runs) * (n_temperatures - 1)
        forward, reverse = (self._result.log_weights(name, n_temperatures, np.array(search)) for name in BOTH)
        return costs.Round(
            n_temperatures,
            costs.deciding_gap(
                conditional_gaps(forward, reverse),
                error_by_simulation(forward, reverse),
                self._plan.goal,
                self._plan.chains,
                len(search),
            ),
            sum(int(run.n_gradients.sum()) for run in runs) / n_transitions,
        )

    def expect(self, n_temperatures: int, n_confirm: int, later: Sequence[int] = (), *, has_curve: bool = True) -> None:
        """Tell the display what is to come at least, in chains at this T: those at others, consistency, draws."""
        plan, chains = self._plan, self._plan.chains
        draws = FEWEST_DRAWS if plan.draws is None else plan.draws
        more = (
            max(0, consistency.FIRST_SIMULATIONS - n_confirm) if has_curve and consistency.left_out(plan) is None else 0
        )
        others = 2 * chains * n_confirm * sum(later) / n_temperatures
        last = (later[-1] if later else n_temperatures) / n_temperatures
        self._display.expect("confirm", others + last * (chains * more + draws))
        self._display.expect("consistency", draws)
        self._display.expect("draws", 0)

    def reference_price(self, n_temperatures: int) -> float:
        """Return what a reference on a fresh simulation costs, over its chains at T; both as predicted."""
        chosen = self._preparation.cost
        if chosen is None:
            return 0.0
        return chosen.per_data_set / max(chosen.n_chains * n_temperatures * chosen.per_transition, 1.0)

    def show_curve(self, n_temperatures: int) -> None:
        """Anneal some confirming simulations at other numbers of temperatures, where that is nearly free."""
        confirm = [int(index) for index in self._result.indices("confirm")]
        spent = sum(self._result.n_gradients.values())
        per_transition = self.seen(confirm, n_temperatures).per_transition
        for number in curve.curve_temperatures(
            n_temperatures, self._plan.max_temperatures, per_transition, 2 * self._plan.chains, spent
        ):
            shown = confirm[: curve.SIMULATIONS]
            self._result.attempts.plan(shown, number, "none")
            for _ in self._annealing.both(shown, number, "curve"):
                pass

    def predicted_gap(self, n_temperatures: int) -> float:
        """Return the gap (nats) at T that the pilots predict for ideal kernels."""
        assert self._preparation.path_length is not None
        return min(self._preparation.path_length.total, 1e6) ** 2 / n_temperatures
