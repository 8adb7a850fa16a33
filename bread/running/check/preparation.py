"""What comes before chains are annealed: simulated data sets, tuned kernels, paths, and where reverse chains begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray, Kernel, Model
from bread.backends.support.independence import name_with
from bread.fitting.gaussian.families import localisation
from bread.jobs.interrupts import interruptible
from bread.jobs.progress import Display
from bread.paths import schedules
from bread.paths.kinds import Path
from bread.running.path_choice import costs
from bread.running.path_choice.chooser import PathChooser
from bread.running.path_choice.costs import PathCost
from bread.running.path_choice.proposing import moves_every, wants_proposals
from bread.running.path_choice.tails import END_BATCH, END_DRAWS, EndTask
from bread.running.pilots.fitted_hyperparameters import HeldDraws
from bread.running.pilots.reverse_starts import ReverseInitial, ReverseInitialTask
from bread.running.pilots.stage import Stage
from bread.running.pilots.tasks import MoveTask, PilotTask
from bread.running.pilots.tuning import Pilot
from bread.running.state.ledger import Ledger, timed_phase
from bread.running.state.plan import PathRequest, Plan
from bread.running.state.results import END, SHARED, CheckResult
from bread.seeds import Purpose, seed_sequence

LOCALISATION_WIDTH = 1.5  # standard deviations of the hyperparameters' law over those of their posterior
DENSE = "with a dense metric"  # in the name of a kernel, for the report
REVERSE_SPACING = 20  # transitions between the initial states of a simulation's reverse chains
_UNKNOWN = "It is not known whether log_density of the reference given as path= integrates to one"
PRIOR_PILOTS = 3  # pilot data sets that place the temperatures when simulated data sets differ widely


class Preparation:
    """Simulates data sets; gives each kernel, path and initial states of reverse chains. ``result`` keeps them."""

    def __init__(self, model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
        self.path_length: schedules.PathLength | None = None
        self.reverse_initial: dict[int, FloatArray] = {}
        self._model = model
        self._plan = plan
        self._result = result
        self._ledger = ledger
        self._stage = Stage(model, plan.root, result, ledger)
        self._chooser = PathChooser(model.info, plan, self._stage)
        self._request: PathRequest | None = None  # of the path that was taken
        self._shared: Pilot | None = None
        self._proposes = False  # draws from the reference, whatever the kernel
        self._every = 1  # temperatures at which the kernel moves once, where they are

    def hold(self, held: HeldDraws) -> None:
        """Simulate data sets from now on at these hyperparameters."""
        self._stage.held = held

    # -- simulate ---------------------------------------------------------------------------------------------

    def simulate(self, n: int, role: str) -> list[int]:
        """Add ``n`` simulated data sets with this role, with kernels, paths and (but for "forward") initial states."""
        result, first = self._result, len(self._result.roles)
        if n == 0:
            return []
        with self._ledger.phase("simulating", "simulate"):
            result.simulations = result.simulations.joined(self._stage.draw_simulations(n, first))
            result.roles += [role] * n
        indices = list(range(first, first + n))
        self.fit_paths(indices, "consistency" if role == "forward" else "tune")
        if role != "forward":
            self._find_reverse_initial(indices)
        return indices

    def data(self, simulation: int) -> dict[str, NDArray[Any]]:
        """Return a data set: simulated, or the real one."""
        return self._stage.data(simulation)

    def kernel(self, simulation: int) -> Kernel:
        """Return the frozen kernel of a data set."""
        kernels = self._result.kernels
        return kernels[simulation if simulation in kernels else SHARED]

    # -- path and kernel --------------------------------------------------------------------------------------

    def choose_path(self) -> None:
        """Tune on extra simulated data sets: they choose the path, place the temperatures, may give all the kernel."""
        n = PRIOR_PILOTS if self._plan.simulate_from == "prior" else 1
        pilots = self._chooser.choose(self._stage.draw_simulations(n, SHARED))
        self._take(pilots, self._chosen_cost())

    def alone(self, model: Model, ledger: Ledger) -> Preparation:
        """Return what prepares the real data alone, of ``model``, as this one prepares those that are added to them."""
        other = copy(self)
        stage = Stage(model, self._plan.root, self._result, ledger)
        vars(other).update(_model=model, _ledger=ledger, _plan=replace(self._plan, tune_each=True), _stage=stage)
        return other

    def may_look_again(self, n_gradients: int, per_transition: float) -> bool:
        """Return whether a path that looked cheap has cost more than looking for another would."""
        return self._chooser.may_look_again(n_gradients, per_transition)

    def may_race_again(self, n_temperatures: int) -> bool:
        """Return whether a search has gone so far beyond the T at which paths raced that the other may be cheaper."""
        return self._chooser.may_race_again(n_temperatures)

    def look_again(self, current: PathCost, n_temperatures: int) -> bool:
        """Take another path if it is cheaper than the present one; what was annealed along that is then forgotten."""
        pilots = self._chooser.look_again(current, n_temperatures)
        if pilots is None:
            return False
        result = self._result
        result.attempts.leave_path(result.runs)
        for table in (result.runs, result.schedules, result.paths, result.kernels, self.reverse_initial):
            table.clear()
        result.unfitted.clear()
        self._take(pilots, self._chosen_cost())
        return True

    def _chosen_cost(self) -> PathCost:
        assert self._chooser.chosen is not None
        return self._chooser.chosen

    def proposes_late(self, current: PathCost) -> bool:
        """Let draws from the references be proposed where chains came to cost more than was predicted.

        What was annealed without them is then forgotten; data sets keep their paths, and starts of reverse chains.

        Parameters
        ----------
        current : PathCost
            Of the present path, at the T that would be next.
        """
        if self._proposes or not wants_proposals(self._model.info, list(self._pilots), current):
            return False
        result = self._result
        result.attempts.leave_path(result.runs)
        result.runs.clear()
        own = dict(result.kernels)
        self._take(self._pilots, current)
        result.kernels.update({index: self._with_proposals(own[index]) for index in own})
        return True

    @property
    def cost(self) -> PathCost | None:
        """What the path that was chosen is predicted to cost a data set; None before."""
        return self._chooser.chosen

    def fit_paths(self, indices: Sequence[int], phase: str = "tune") -> None:
        """Give each of these data sets what is its own: kernel and path, or its place of the shared reference."""
        if self._plan.tune_each:
            self._tune(indices, phase)
        elif self._shared is not None and self._shared.fit is not None:
            tasks = [MoveTask(index, self._stage.data(index), self._shared, self._plan.root) for index in indices]
            with self._ledger.phase("reference, by data set", phase, len(tasks)):
                pilot: Pilot
                for position, pilot in self._ledger.run_tasks(tasks):
                    self._result.paths[indices[position]] = pilot.path
                    self._result.kernels[indices[position]] = pilot.kernel
                    self._ledger.count(phase, pilot.n_gradients)

    def _take(self, pilots: Sequence[Pilot], cost: PathCost) -> None:
        """Follow the path of these pilots from now on, which costs so much."""
        self._pilots = pilots
        result, chooser = self._result, self._chooser
        result.path, result.reference_fit = pilots[0].path, pilots[0].fit
        self._proposes = wants_proposals(self._model.info, list(pilots), cost)
        self._every = moves_every(list(pilots), cost) if self._proposes else 1
        result.path_costs = {**chooser.costs, cost.kind: replace(cost, every=self._every).total}
        kernel, name = self._with_proposals(pilots[0].kernel), self._model.info.identity.kernel
        name = name if kernel.correlation is None else f"{name} {DENSE}"
        result.info = result.info.with_kernel(name_with(name, self._every) if self._proposes else name)
        result.kernels[SHARED], self._shared = kernel, pilots[0]._replace(kernel=kernel).without_draws()
        result.base_log_ratio = [pilot.base_log_ratio for pilot in pilots]
        result.end_log_ratio = [pilot.end_log_ratio for pilot in pilots if pilot.fit is not None]
        if self._plan.path.reference is not None:
            result.exact_end_log_ratio = self._exact_end(pilots[0].path)
            if result.path.doubt and not any(_UNKNOWN in one for one in result.warnings):
                result.warnings.append(f"{_UNKNOWN}: {result.path.doubt}. Its weights are not taken for evidences.")
        self._request = chooser.quick(chooser.request(pilots[0].path.name))
        self.path_length = costs.path_length(list(pilots))

    def _with_proposals(self, kernel: Kernel) -> Kernel:
        return replace(kernel, proposes_base=self._proposes, every=self._every)

    def _exact_end(self, path: Path) -> FloatArray:
        """Return log ratios at exact draws, each with its data set: one reference of the user's serves all of these."""
        drawn = self._stage.draw_simulations(END_DRAWS, END)
        batches = [range(low, min(low + END_BATCH, END_DRAWS)) for low in range(0, END_DRAWS, END_BATCH)]
        tasks = [EndTask(path, drawn.states[list(rows)], tuple(map(drawn.data_of, rows))) for rows in batches]
        with self._ledger.phase("tuning, end of path", "tune", len(tasks)):
            return np.concatenate(self._ledger.in_order(tasks))

    def _tune(self, indices: Sequence[int], phase: str) -> None:
        """Tune one kernel, along its own path, for each of these data sets, on that data set."""
        assert self._request is not None
        source = "the data set itself"
        root, n_steps = self._plan.root, self._plan.tune
        tasks = [
            PilotTask(index, self._stage.data(index), self._request, root, n_steps, False, source, shared=self._shared)
            for index in indices
        ]
        for index, pilot in zip(indices, self._stage.run_round(tasks, phase), strict=True):
            assert isinstance(pilot, Pilot)
            self._ledger.count(phase, pilot.n_gradients)
            self._result.kernels[index] = self._with_proposals(pilot.kernel)
            self._result.paths[index] = pilot.path
            if pilot.is_moved:
                self._result.unfitted.append(index)

    def _find_reverse_initial(self, indices: Sequence[int]) -> None:
        plan = self._plan
        skipped = plan.init_steps if plan.simulate_from == "fitted" else 0
        keep = tuple(skipped + REVERSE_SPACING * chain for chain in range(plan.chains))
        tasks = [
            ReverseInitialTask(
                index, self._stage.data(index), self._result.path_of(index), plan.root, self.kernel(index),
                self._result.simulations.states[index], keep,
            )
            for index in indices
        ]  # fmt: skip
        with self._ledger.phase("starts, reverse chains", "start", len(tasks)):
            initial: ReverseInitial
            for position, initial in self._ledger.run_tasks(tasks):
                self.reverse_initial[indices[position]] = initial.states
                self._ledger.count("start", initial.n_gradients)


def localise(model: Model, plan: Plan, result: CheckResult, fit: Callable[[], Fit], display: Display) -> Model:
    """Return the model whose hyperparameters have a widened fit to their posterior on the real data as their law.

    ``fit`` samples that posterior, where the user gave no draws.
    """
    if result.fit is None:
        with timed_phase(result, display, "fitting", "fit"):
            result.fit = fit()
    with timed_phase(result, display, "localising", "compile"):
        chosen = np.sort(np.concatenate([model.info.layout.positions[name] for name in plan.hyperparameters]))
        draws = model.unconstrain(result.fit.flat_draws())
        law = localisation(draws[:, chosen], LOCALISATION_WIDTH)
        with interruptible():
            localised = model.localise(plan.hyperparameters, law)
        result.localisation, result.info = law, localised.info
    return localised


def fit_real_data(model: Model, root: int, cores: int) -> Fit:
    """Sample the posterior on the real data with the PPL's own sampler."""
    seed = int(seed_sequence(root, Purpose.FIT).generate_state(1)[0])
    with interruptible():
        return model.fit(seed=seed, cores=cores, progressbar=False)  # ours is live
