"""The check, phase by phase: fit, choose a path, search for T, confirm, consistency, draws on the real data.

Fills a `CheckResult` as it goes, so that an interruption at any moment leaves everything that was finished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bread.backends.base import Fit, Model
from bread.jobs.executors import Executor
from bread.jobs.progress import Display
from bread.running.budget.search import SearchInBudget
from bread.running.budget.spending import Purse
from bread.running.check import curve, fresh_simulations
from bread.running.check.annealing import BOTH, Annealing
from bread.running.check.bridge import bridge_the_fit
from bread.running.check.comparison import FEWEST_DRAWS, draw_and_compare, wanted_draws
from bread.running.check.preparation import Preparation
from bread.running.exactness.phase import DirectPhase
from bread.running.exactness.prior_integrals import integrate_priors
from bread.running.missed_modes.phase import look_for_modes
from bread.running.model_fit.phase import look_at_fit
from bread.running.path_choice import costs
from bread.running.pilots.fitted_hyperparameters import HeldDraws, mixing_of
from bread.running.state import consistency
from bread.running.state.ledger import Ledger
from bread.running.state.plan import FIRST_TEMPERATURES, Plan
from bread.running.state.results import OBSERVED, CheckResult
from bread.statistics.bounds import bounds, intervals
from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation
from bread.statistics.bounds.goal import Decision, one_sided, simulations_needed


def look_at_model(model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
    """Ask of the user's own model whether the real data look like its data, and whether draws miss modes of it."""
    look_at_fit(model, plan, result, ledger)
    look_for_modes(model, plan, result, ledger)


class Runner:
    """Runs a plan on a model with an executor; ``result`` holds what is finished."""

    def __init__(
        self,
        model: Model,
        plan: Plan,
        result: CheckResult,
        executor: Executor,
        display: Display,
        purse: Purse | None = None,
    ) -> None:
        self.result = result
        self._model = model
        self._plan = plan
        self._display = display
        self._ledger = Ledger(result, executor, display)
        self._preparation = Preparation(model, plan, result, self._ledger)
        self._annealing = Annealing(plan, result, self._preparation, self._ledger)
        self._attempts = 0
        self._purse = purse
        self._budgeted = None if purse is None else SearchInBudget(plan, result, self, purse, display.note)

    def run(self, fit: Callable[[], Fit], look: Callable[[], None]) -> None:
        """Run every phase in order.

        ``fit`` samples the posterior on the real data, where it is needed; ``look`` looks at the draws then, and knows
        whether it has.
        """
        self._run(fit, look)
        if self._budgeted is not None:
            self._budgeted.close()

    def foresee(self, fit: Callable[[], Fit], look: Callable[[], None]) -> None:
        """Run what a forecast of the budget rests on, and no more; ``result.budget`` keeps it."""
        assert self._budgeted is not None
        self._prepare(fit, look)
        self._budgeted.foresee_only()

    def _prepare(self, fit: Callable[[], Fit], look: Callable[[], None]) -> None:
        """Fit the real data where that is needed, and choose the path."""
        plan = self._plan
        if plan.simulate_from == "fitted":
            if self.result.fit is None:
                with self._ledger.phase("fitting", "fit"):
                    self.result.fit = fit()
                look()
            self._preparation.held = HeldDraws(self.result.fit, plan.hyperparameters, plan.root)
        self._preparation.choose_path()

    def _run(self, fit: Callable[[], Fit], look: Callable[[], None]) -> None:
        plan = self._plan
        self._prepare(fit, look)
        DirectPhase(self._model, plan, self.result, self._ledger, self._preparation.held).run()
        integrate_priors(self._model, plan.root, self.result, self._ledger)
        if self._budgeted is not None:
            temperatures = self._budgeted.run()
        elif plan.n_temperatures is None:
            temperatures = self._search_and_confirm()
            self._show_curve(temperatures[-1])
        else:
            temperatures = list(plan.n_temperatures)
            confirm = self._preparation.simulate(plan.simulations, "confirm")
            for number, n_temperatures in enumerate(temperatures):
                self.result.n_temperatures = n_temperatures
                self._expect(n_temperatures, len(confirm), temperatures[number + 1 :], has_curve=len(temperatures) > 1)
                self._anneal_both(confirm, n_temperatures, "confirm")
        self._consistency(temperatures)
        if plan.adds_data:  # chains on the real data are of another model, on other workers: `draw_alone`
            return
        if self._budgeted is not None:
            plan = self._budgeted.with_draws(wanted_draws(plan, self.result, temperatures[-1]))
        draw_and_compare(self._model, plan, self.result, self._annealing, self._ledger, temperatures[-1])
        bridge_the_fit(self._model, plan, self.result, self._ledger)
        if plan.simulate_from != "localised":  # that is another model than the user's
            look_at_model(self._model, plan, self.result, self._ledger)

    def draw_alone(self, model: Model, executor: Executor) -> None:
        """Draw on the real data alone, where simulated data came on top of them; ``model`` is of the real data."""
        result, n_temperatures = self.result, self.result.n_temperatures
        ledger = Ledger(result, executor, self._display)
        annealing = Annealing(self._plan, result, self._preparation.alone(model, ledger), ledger)
        annealing.on_real_data(n_temperatures)
        plan = self._plan
        if self._budgeted is not None:
            plan = self._budgeted.with_draws(wanted_draws(plan, result, n_temperatures))
        draw_and_compare(model, plan, result, annealing, ledger, n_temperatures)
        bridge_the_fit(model, plan, result, ledger)

    # -- what a search within a budget needs ------------------------------------------------------------------

    def simulate(self, n: int, role: str) -> list[int]:
        """Add simulated data sets, ready to be annealed."""
        return self._preparation.simulate(n, role)

    def anneal_both(self, indices: Sequence[int], n_temperatures: int, phase: str) -> Decision:
        """Anneal both ways what has not run at this T, and return what decides."""
        return self._anneal_both(indices, n_temperatures, phase)

    def first_temperatures(self) -> int:
        """Return the T to begin with."""
        return self._first_temperatures()

    def takes_another_path(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        """Take another path where the present one costs more than it seemed and another is cheaper."""
        return self._takes_another_path(search, temperatures)

    def predicted_gap(self, n_temperatures: int) -> float:
        """Return the gap (nats) at T that the pilots predict for ideal kernels."""
        assert self._preparation.path_length is not None
        return min(self._preparation.path_length.total, 1e6) ** 2 / n_temperatures

    # -- search, confirm --------------------------------------------------------------------------------------

    def _search_and_confirm(self) -> list[int]:
        """Double T on one set of simulations until the bound is small; confirm on fresh ones. Return every T run."""
        plan = self._plan
        search = self._preparation.simulate(plan.search_simulations, "search")
        n_temperatures = self._first_temperatures()
        temperatures: list[int] = []
        while True:
            temperatures.append(n_temperatures)
            self.result.n_temperatures = n_temperatures
            decision = self._anneal_both(search, n_temperatures, "search")
            is_last = n_temperatures >= plan.max_temperatures
            if (self._is_near(decision, n_temperatures) or is_last) and self._confirm(n_temperatures, is_last):
                return temperatures
            if self._takes_another_path(search, temperatures):
                search = self._preparation.simulate(len(search), "search")
                n_temperatures, temperatures = self._first_temperatures(), []
                continue
            if self._proposes_late(search, temperatures):
                n_temperatures, temperatures = self._first_temperatures(), []
                continue
            n_temperatures = min(2 * n_temperatures, plan.max_temperatures)

    def _is_near(self, decision: Decision, n_temperatures: int) -> bool:
        """Return whether the search shows that few fresh simulations at this T will do: less than at twice the T."""
        plan = self._plan
        few = fresh_simulations.few(plan.search_simulations, plan.simulations, self._reference_price(n_temperatures))
        return (
            decision.is_reached or simulations_needed(decision, intervals.alpha_level(self._attempts), few) is not None
        )

    def _confirm(self, n_temperatures: int, is_last: bool) -> bool:
        """Anneal fresh simulations at this T, and more while that is cheaper than more temperatures.

        Returns whether the search ends here.

        Each look at the interval spends half of the error that is left (`intervals.alpha_level`).
        """
        fresh = self._preparation.simulate(self._plan.simulations, "confirm")
        while True:
            self.result.level = intervals.alpha_level(self._attempts)
            self.result.error_level = one_sided(self.result.level)
            self._attempts += 1
            self._expect(n_temperatures, len(fresh))
            decision = self._anneal_both(fresh, n_temperatures, "confirm")
            if decision.is_reached:
                return True
            wanted = simulations_needed(
                decision,
                intervals.alpha_level(self._attempts),
                self._most_simulations(len(fresh), n_temperatures, is_last),
            )
            if wanted is None:
                break
            fresh += self._preparation.simulate(wanted - len(fresh), "confirm")
        if is_last:
            return True
        for index in fresh:  # they helped to choose a larger T: no longer fresh
            self.result.roles[index] = "search"
        return False

    def _show_curve(self, n_temperatures: int) -> None:
        """Anneal some confirming simulations at other numbers of temperatures, where that is nearly free."""
        confirm = [int(index) for index in self.result.indices("confirm")]
        spent = sum(self.result.n_gradients.values())
        per_transition = self._seen(confirm, n_temperatures).per_transition
        for number in curve.curve_temperatures(
            n_temperatures, self._plan.max_temperatures, per_transition, 2 * self._plan.chains, spent
        ):
            shown = confirm[: curve.SIMULATIONS]
            self.result.attempts.plan(shown, number, "none")
            for _ in self._annealing.both(shown, number, "curve"):
                pass

    def _reference_price(self, n_temperatures: int) -> float:
        """Return what a reference on a fresh simulation costs, over its chains at T; both as predicted."""
        chosen = self._preparation.cost
        if chosen is None:
            return 0.0
        return chosen.per_data_set / max(chosen.n_chains * n_temperatures * chosen.per_transition, 1.0)

    def _most_simulations(self, n_now: int, n_temperatures: int, is_last: bool) -> int:
        """Return how many simulations may be run at this T."""
        plan, price = self._plan, self._reference_price(n_temperatures)
        return fresh_simulations.most(n_now, plan.search_simulations, plan.simulations, price, is_last=is_last)

    def _anneal_both(self, indices: Sequence[int], n_temperatures: int, phase: str) -> Decision:
        """Anneal simulations both ways where that has not been done, showing the bound so far; return what decides."""
        runs = self.result.runs
        self.result.attempts.plan(indices, n_temperatures, "first" if self._plan.is_searching else "all")
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
        forward, reverse = (self.result.log_weights(way, n_temperatures, np.array(indices)) for way in BOTH)
        if np.isnan(forward).any() or not np.isfinite(reverse).all():
            return None
        is_reliable = self._plan.goal.target is not None and bounds.jeffreys_is_reliable(
            self.result.base_log_ratio, forward, self.result.end_log_ratio, self.result.exact_end_log_ratio
        )
        return self._plan.goal.decide(forward, reverse, self.result.level, is_reliable=is_reliable)

    def _first_temperatures(self) -> int:
        """Return the T to begin with: a quarter of what the pilot's path length asks for, as a power of two."""
        assert self._preparation.path_length is not None
        total = min(self._preparation.path_length.total, 1e100)
        wanted = total**2 / self._plan.target / 4
        first = 2 ** int(np.floor(np.log2(max(wanted, FIRST_TEMPERATURES))))
        return int(min(max(first, FIRST_TEMPERATURES), self._plan.max_temperatures))

    def _takes_another_path(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        """Look for another path where the present one costs more than it seemed; forget its chains if one is found."""
        seen = [self._seen(search, n_temperatures) for n_temperatures in temperatures]
        spent = sum(self.result.n_gradients.get(phase, 0) for phase in ("search", "confirm"))
        if not (
            self._preparation.may_look_again(spent, seen[-1].per_transition)
            or self._preparation.may_race_again(temperatures[-1])
        ):
            return False
        now = costs.PathCost(
            self.result.path.name, True, temperatures[-1], seen[-1].per_transition, 0.0, 2 * self._plan.chains
        )
        return self._preparation.look_again(costs.measured(now, seen, self._plan.target), temperatures[-1])

    def _proposes_late(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        """Propose draws from references where the search has found chains dear; forget those that had none."""
        chosen = self._preparation.cost
        if chosen is None:
            return False
        per_transition = self._seen(search, temperatures[-1]).per_transition
        return self._preparation.proposes_late(
            replace(
                chosen, n_temperatures=2.0 * temperatures[-1], per_transition=per_transition,
                n_chains=2 * self._plan.chains,
            )
        )  # fmt: skip

    def _seen(self, search: Sequence[int], n_temperatures: int) -> costs.Round:
        """Return what the search has measured at this T."""
        runs = [self.result.runs[index, direction, n_temperatures] for index in search for direction in BOTH]
        n_transitions = sum(len(run.n_gradients) for run in runs) * (n_temperatures - 1)
        forward, reverse = (self.result.log_weights(name, n_temperatures, np.array(search)) for name in BOTH)
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

    def _expect(
        self, n_temperatures: int, n_confirm: int, later: Sequence[int] = (), *, has_curve: bool = True
    ) -> None:
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

    # -- the real data ----------------------------------------------------------------------------------------

    @property
    def _is_fit_doubtful(self) -> bool:
        """Whether data sets are simulated at draws of a fit that did not converge."""
        fit = self.result.fit if self._plan.simulate_from == "fitted" else None
        return fit is not None and mixing_of(fit).is_doubtful

    def _consistency(self, temperatures: Sequence[int]) -> None:
        """Anneal forward at every T: the confirming simulations, more forward-only ones, and the real data.

        Where the real data look unlike the others, more are added before anything is said: a verdict must not change
        with the seed. None are where these are simulated at draws of a fit that did not converge: they show nothing of
        the real data, however many they are.
        """
        reason = consistency.left_out(self._plan)
        if reason is not None:
            self.result.warnings.append(reason)
            self.result.is_shape_left_out = True
            return
        confirm = [int(index) for index in self.result.indices("confirm")]
        if self._plan.n_temperatures is None:  # what the search ran: a part of it shows the curve
            largest = temperatures[-1]
            temperatures = sorted({max(2, largest // 16), max(2, largest // 4), largest})
        if len(temperatures) < 2:
            self.result.warnings.append(
                "The consistency test compares curves over at least two numbers of temperatures; one was run."
            )
            return
        compared = [*confirm, OBSERVED]
        wanted = max(0, consistency.FIRST_SIMULATIONS - len(confirm))
        while True:
            compared += self._preparation.simulate(wanted, "forward")
            for n_temperatures in temperatures:
                self._annealing.forward(compared, n_temperatures)
            wanted = consistency.more_simulations(self.result)
            if wanted and self._is_fit_doubtful:
                self.result.warnings.append(consistency.ended_early(self.result))
                break
            if not wanted or (self._budgeted is not None and not self._budgeted.affords_forward(wanted)):
                break
        self._annealing.again_on_real_data(consistency.repeats_wanted(self.result))
