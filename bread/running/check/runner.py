"""The check, phase by phase: fit, choose a path, search for T, confirm, consistency, draws on the real data.

Fills a `CheckResult` as it goes, so that an interruption at any moment leaves everything that was finished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bread.backends.base import Fit, Model
from bread.jobs.executors import Executor
from bread.jobs.progress import Display
from bread.running.budget.search import SearchInBudget
from bread.running.budget.spending import Spending
from bread.running.check.annealing import Annealing
from bread.running.check.bridge import bridge_the_fit
from bread.running.check.comparison import draw_and_compare, wanted_draws
from bread.running.check.doubling import Doubling
from bread.running.check.preparation import Preparation
from bread.running.check.rounds import Rounds
from bread.running.exactness.phase import DirectPhase
from bread.running.exactness.prior_integrals import integrate_priors
from bread.running.missed_modes.phase import look_for_modes
from bread.running.model_fit.phase import look_at_fit
from bread.running.pilots.fitted_hyperparameters import HeldDraws, mixing_of
from bread.running.state import consistency
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import OBSERVED, CheckResult


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
        spending: Spending | None = None,
    ) -> None:
        self.result = result
        self._model = model
        self._plan = plan
        self._display = display
        self._ledger = Ledger(result, executor, display)
        self._preparation = Preparation(model, plan, result, self._ledger)
        self._annealing = Annealing(plan, result, self._preparation, self._ledger)
        self._rounds = Rounds(plan, result, self._preparation, self._annealing, display)
        self._budgeted = (
            None if spending is None else SearchInBudget(plan, result, self._rounds, spending, display.note)
        )

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

    def _prepare(self, fit: Callable[[], Fit], look: Callable[[], None]) -> HeldDraws | None:
        """Fit the real data where that is needed, and choose the path; return what data sets are simulated at."""
        plan, held = self._plan, None
        if plan.simulate_from == "fitted":
            if self.result.fit is None:
                with self._ledger.phase("fitting", "fit"):
                    self.result.fit = fit()
                look()
            held = HeldDraws(self.result.fit, plan.hyperparameters, plan.root)
            self._preparation.hold(held)
        self._preparation.choose_path()
        return held

    def _run(self, fit: Callable[[], Fit], look: Callable[[], None]) -> None:
        plan = self._plan
        held = self._prepare(fit, look)
        DirectPhase(self._model, plan, self.result, self._ledger, held).run()
        integrate_priors(self._model, plan.root, self.result, self._ledger)
        if self._budgeted is not None:
            temperatures = self._budgeted.run()
        elif plan.n_temperatures is None:
            temperatures = Doubling(plan, self.result, self._rounds).run()
            self._rounds.show_curve(temperatures[-1])
        else:
            temperatures = list(plan.n_temperatures)
            confirm = self._preparation.simulate(plan.simulations, "confirm")
            for number, n_temperatures in enumerate(temperatures):
                self.result.n_temperatures = n_temperatures
                self._rounds.expect(
                    n_temperatures, len(confirm), temperatures[number + 1 :], has_curve=len(temperatures) > 1
                )
                self._rounds.anneal_both(confirm, n_temperatures, "confirm")
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
