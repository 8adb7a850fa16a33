"""The check, phase by phase: fit, simulate, tune, search for T, confirm, consistency, draws on the real data.

Fills a `CheckResult` as it goes, so that an interruption at any moment leaves everything that was finished.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, Failure, Fit, FloatArray, Kernel, Model, Simulations
from bread.errors import DensityError
from bread.paths import schedules
from bread.paths.kinds import PriorPath
from bread.running import costs as path_choice
from bread.running.choice import PathChooser
from bread.running.executors import Executor
from bread.running.interrupts import interruptible
from bread.running.plan import FIRST_TEMPERATURES, Plan
from bread.running.progress import Display
from bread.running.results import OBSERVED, SHARED, CheckResult
from bread.running.tasks import (
    AnnealTask,
    MoveTask,
    PilotTask,
    ReverseStarts,
    ReverseStartTask,
    Task,
)
from bread.running.tuning import PathRequest, Pilot
from bread.seeds import Purpose, chain_seeds, seed_sequence
from bread.statistics import bounds, intervals

CONSISTENCY_SIMULATIONS = 39  # the two-sided level 0.05 needs p = 2 / (39 + 1)
REVERSE_START_SPACING = 20  # kernel steps between the starts of a simulation's reverse chains
DRAW_BATCH = 8  # chains per task for the draws on the real data: enough tasks for a dozen workers
_BOTH: tuple[Direction, Direction] = ("forward", "reverse")
PRIOR_PILOTS = 3  # pilot data sets that place the temperatures when simulated data sets differ widely


class Runner:
    """Runs a plan on a model with an executor; ``result`` holds what is finished."""

    def __init__(self, model: Model, plan: Plan, result: CheckResult, executor: Executor, display: Display) -> None:
        self.result = result
        self._model = model
        self._plan = plan
        self._executor = executor
        self._display = display
        self._request = PathRequest(PriorPath.name)
        self._chooser = PathChooser(model.info, plan, self)
        self._shared: Pilot | None = None
        self._path_length: schedules.PathLength | None = None
        self._reverse_starts: dict[int, FloatArray] = {}
        self._attempts = 0

    def run(self, cores: int) -> None:
        """Run every phase in order."""
        plan = self._plan
        if plan.simulate_from == "fitted":
            if self.result.fit is None:
                with timed_phase(self.result, self._display, "fitting", "fit"):
                    self.result.fit = fit_real_data(self._model, plan.root, cores)
            self.result.point_estimate = self._model.point_estimate(self.result.fit, plan.hyperparameters)
        self._tune_pilots()
        if plan.n_temperatures is None:
            temperatures = self._search_and_confirm()
        else:
            temperatures = list(plan.n_temperatures)
            confirm = self._simulate(plan.simulations, "confirm")
            for n_temperatures in temperatures:
                self.result.n_temperatures = n_temperatures
                self._anneal_both(confirm, n_temperatures, f"T = {n_temperatures}", "confirm")
        self._consistency(temperatures)
        self._draw_on_real_data(temperatures[-1])

    # -- simulate and tune ------------------------------------------------------------------------------------

    def draw_simulations(self, n: int, simulation: int) -> Simulations:
        """Draw ``n`` parameters and data sets as the plan asks; ``simulation`` names their random numbers."""
        fixed = self.result.point_estimate or None
        seed = seed_sequence(self._plan.root, Purpose.SIMULATE, simulation)
        with interruptible():
            return self._model.simulate(n, fixed=fixed, seed=seed)

    def _simulate(self, n: int, role: str) -> list[int]:
        """Add ``n`` simulated data sets with this role, tune their kernels, find where reverse chains start."""
        first = len(self.result.roles)
        if n == 0:
            return []
        with self.phase("simulating", "simulate"):
            self.result.simulations = _joined(self.result.simulations, self.draw_simulations(n, first))
            self.result.roles += [role] * n
        indices = list(range(first, first + n))
        self._fit_paths(indices, "consistency" if role == "forward" else "tune")
        if role != "forward":
            self._find_reverse_starts(indices)
        return indices

    def _tune_pilots(self) -> None:
        """Tune on extra simulated data sets: they choose the path, place the temperatures, may give all the kernel."""
        n = PRIOR_PILOTS if self._plan.simulate_from == "prior" else 1
        self._take(self._chooser.choose(self.draw_simulations(n, SHARED)))

    def _take(self, pilots: Sequence[Pilot]) -> None:
        """Follow the path of these pilots from now on."""
        result, chooser = self.result, self._chooser
        result.path_costs = chooser.costs
        result.path, result.reference_fit = pilots[0].path, pilots[0].fit
        result.kernels[SHARED], self._shared = pilots[0].kernel, pilots[0].without_draws()
        result.start_log_ratio = [pilot.start_log_ratio for pilot in pilots]
        result.end_log_ratio = [pilot.end_log_ratio for pilot in pilots if pilot.fit is not None]
        self._request = chooser.quick(chooser.request(pilots[0].path.name))
        self._path_length = path_choice.path_length(list(pilots))

    def _tune(self, indices: Sequence[int], phase: str) -> None:
        """Tune one kernel, along its own path, for each of these data sets, on that data set."""
        source = "the data set itself"
        root, n_steps = self._plan.root, self._plan.tune
        tasks = [
            PilotTask(index, self._data(index), self._request, root, n_steps, False, source, shared=self._shared)
            for index in indices
        ]
        for index, pilot in zip(indices, self.run_pilots(tasks, phase), strict=True):
            assert isinstance(pilot, Pilot)
            self.result.kernels[index] = pilot.kernel
            self.result.paths[index] = pilot.path
            if pilot.is_moved:
                self.result.unfitted.append(index)

    def _fit_paths(self, indices: Sequence[int], phase: str = "tune") -> None:
        """Give each of these data sets what is its own: kernel and path, or its place of the shared reference."""
        if self._plan.tune_each:
            self._tune(indices, phase)
        elif self._shared is not None and self._shared.fit is not None:
            tasks = [MoveTask(index, self._data(index), self._shared, self._plan.root) for index in indices]
            with self.phase("moving the reference", phase, len(tasks)):
                pilot: Pilot
                for position, pilot in self.run_tasks(tasks):
                    self.result.paths[indices[position]] = pilot.path
                    self.count(phase, pilot.n_gradients)

    def run_pilots(self, tasks: Sequence[PilotTask], phase: str = "tune") -> list[Pilot | DensityError]:
        """Run pilots and record them in the order of the tasks, whichever finished first."""
        with self.phase("tuning", phase, len(tasks)):
            finished: dict[int, Pilot | DensityError] = dict(self.run_tasks(tasks))
        pilots = [finished[position] for position in range(len(tasks))]
        for pilot in pilots:
            if isinstance(pilot, Pilot):
                self.count(phase, pilot.n_gradients)
        return pilots

    def _find_reverse_starts(self, indices: Sequence[int]) -> None:
        plan = self._plan
        skipped = plan.init_steps if plan.simulate_from == "fitted" else 0
        keep = tuple(skipped + REVERSE_START_SPACING * chain for chain in range(plan.chains))
        tasks = [
            ReverseStartTask(
                index, self._data(index), self.result.path_of(index), plan.root, self._kernel(index),
                self.result.simulations.states[index], keep,
            )
            for index in indices
        ]  # fmt: skip
        with self.phase("reverse starts", "start", len(tasks)):
            starts: ReverseStarts
            for position, starts in self.run_tasks(tasks):
                self._reverse_starts[indices[position]] = starts.states
                self.count("start", starts.n_gradients)

    def _data(self, simulation: int) -> dict[str, NDArray[Any]]:
        if simulation == OBSERVED:
            return dict(self._model.info.observed_data)
        return self.result.simulations.data_of(simulation)

    def _kernel(self, simulation: int) -> Kernel:
        return self.result.kernels[simulation if self._plan.tune_each else SHARED]

    # -- anneal -----------------------------------------------------------------------------------------------

    def _schedule(self, n_temperatures: int) -> FloatArray:
        if n_temperatures not in self.result.schedules:
            betas = schedules.schedule(self._plan.schedule, n_temperatures, self._path_length)
            self.result.schedules[n_temperatures] = betas
        return self.result.schedules[n_temperatures]

    def _anneal_task(self, simulation: int, direction: Direction, n_temperatures: int) -> AnnealTask:
        root, chains = self._plan.root, range(self._plan.chains)
        forward = direction == "forward"
        purpose = Purpose.FORWARD if forward else Purpose.REVERSE
        return AnnealTask(
            simulation,
            self._data(simulation),
            self.result.path_of(simulation),
            direction,
            self._schedule(n_temperatures),
            self._kernel(simulation),
            seeds=chain_seeds(root, purpose, simulation, n_temperatures, chains),
            start=None if forward else self._reverse_starts[simulation],
            start_seeds=chain_seeds(root, Purpose.START, simulation, n_temperatures, chains) if forward else None,
        )

    def _anneal(self, tasks: Sequence[AnnealTask], n_temperatures: int) -> Iterator[AnnealTask]:
        """Run tasks, record each run under its (simulation, direction, T), and yield the finished task."""
        broken: list[tuple[AnnealTask, AnnealRun]] = []
        for position, run in self.run_tasks(tasks):
            task = tasks[position]
            self.result.runs[task.simulation, task.direction, n_temperatures] = run
            if np.any(run.failure > Failure.ZERO_RATIO):
                broken.append((task, run))
            yield task
        _raise_if_broken(broken)

    def _anneal_both(self, indices: Sequence[int], n_temperatures: int, name: str, phase: str) -> intervals.Interval:
        """Anneal forward and reverse on simulations; forward on the real data. Return the deciding bound."""
        directions: tuple[Direction, ...] = ("reverse", "forward")
        pairs = [(index, direction) for index in indices for direction in directions]
        if (OBSERVED, "forward", n_temperatures) not in self.result.runs:
            if OBSERVED not in self.result.paths and (self._plan.tune_each or self.result.reference_fit is not None):
                self._fit_paths([OBSERVED])
            pairs.append((OBSERVED, "forward"))
        tasks = [self._anneal_task(index, direction, n_temperatures) for index, direction in pairs]
        with self.phase(name, phase, sum(task.n_chains for task in tasks)):
            for task in self._anneal(tasks, n_temperatures):
                self.count(
                    phase, int(self.result.runs[task.simulation, task.direction, n_temperatures].n_gradients.sum())
                )
                self._show_bound(indices, n_temperatures)
        return self._deciding_bound(np.array(indices), n_temperatures)[1]

    def _show_bound(self, indices: Sequence[int], n_temperatures: int) -> None:
        runs = self.result.runs
        done = [
            index
            for index in indices
            if (index, "forward", n_temperatures) in runs and (index, "reverse", n_temperatures) in runs
        ]
        if len(done) > 1:
            name, interval = self._deciding_bound(np.array(done), n_temperatures)
            self._display.bound(name, interval.estimate, interval.lower, interval.upper)

    def _deciding_bound(self, indices: NDArray[np.int64], n_temperatures: int) -> tuple[str, intervals.Interval]:
        """Return B with its interval, or the one-sided bound where B has no finite mean."""
        forward = self.result.log_weights("forward", n_temperatures, indices)
        reverse = self.result.log_weights("reverse", n_temperatures, indices)
        if np.isnan(forward).any() or np.isnan(reverse).any():
            return "B", intervals.Interval(np.nan, np.nan, np.nan)
        if bounds.jeffreys_is_reliable(self.result.start_tails(), forward, self.result.end_log_ratio):
            return "B", bounds.jeffreys_bound(forward, reverse, self.result.level)
        return "KL", bounds.kl_exact_approx(forward, reverse, self.result.level)

    # -- search, confirm --------------------------------------------------------------------------------------

    def _search_and_confirm(self) -> list[int]:
        plan = self._plan
        search = self._simulate(plan.search_simulations, "search")
        n_temperatures = self._first_temperatures()
        temperatures: list[int] = []
        while True:
            temperatures.append(n_temperatures)
            self.result.n_temperatures = n_temperatures
            interval = self._anneal_both(search, n_temperatures, f"T = {n_temperatures}", "search")
            is_last = n_temperatures >= plan.max_temperatures
            if (interval.upper <= plan.target or is_last) and self._confirm(n_temperatures, is_last):
                return temperatures
            if self._takes_another_path(search, temperatures):
                search = self._simulate(len(search), "search")
                n_temperatures, temperatures = self._first_temperatures(), []
                continue
            n_temperatures = min(2 * n_temperatures, plan.max_temperatures)

    def _takes_another_path(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        """Look for another path where the present one costs more than it seemed; forget its chains if one is found."""
        seen = [self._seen(search, n_temperatures) for n_temperatures in temperatures]
        spent = sum(self.result.n_gradients.get(phase, 0) for phase in ("search", "confirm"))
        if not self._chooser.may_look_again(spent, seen[-1].per_transition):
            return False
        now = path_choice.PathCost(
            self.result.path.name, True, temperatures[-1], seen[-1].per_transition, 0.0, 2 * self._plan.chains
        )
        current = path_choice.measured(now, seen, self._plan.target)
        pilots = self._chooser.look_again(current)
        if pilots is None:
            return False
        for table in (self.result.runs, self.result.schedules, self.result.paths, self._reverse_starts):
            table.clear()
        self.result.unfitted.clear()
        self._take(pilots)
        return True

    def _seen(self, search: Sequence[int], n_temperatures: int) -> path_choice.Round:
        """Return what the search has measured at this T."""
        runs = [self.result.runs[index, direction, n_temperatures] for index in search for direction in _BOTH]
        n_transitions = sum(len(run.n_gradients) for run in runs) * (n_temperatures - 1)
        forward, reverse = (self.result.log_weights(name, n_temperatures, np.array(search)) for name in _BOTH)
        return path_choice.Round(
            n_temperatures,
            path_choice.expected_upper(bounds.simulation_gaps(forward, reverse), len(search)),
            sum(int(run.n_gradients.sum()) for run in runs) / n_transitions,
        )

    def _first_temperatures(self) -> int:
        """Return the T to begin with: a quarter of what the pilot's path length asks for, as a power of two."""
        assert self._path_length is not None
        total = min(self._path_length.total, 1e100)
        wanted = total**2 / self._plan.target / 4
        first = 2 ** int(np.floor(np.log2(max(wanted, FIRST_TEMPERATURES))))
        return int(min(max(first, FIRST_TEMPERATURES), self._plan.max_temperatures))

    def _confirm(self, n_temperatures: int, is_last: bool) -> bool:
        """Anneal fresh simulations at this T; return whether their bound decides."""
        self.result.level = intervals.alpha_level(self._attempts)
        self._attempts += 1
        fresh = self._simulate(self._plan.simulations, "confirm")
        interval = self._anneal_both(fresh, n_temperatures, f"T = {n_temperatures}, confirm", "confirm")
        if interval.upper <= self._plan.target or is_last:
            return True
        for index in fresh:  # they helped to choose a larger T: no longer fresh
            self.result.roles[index] = "search"
        return False

    # -- the real data ----------------------------------------------------------------------------------------

    def _consistency(self, temperatures: Sequence[int]) -> None:
        """Anneal forward at every T: the confirming simulations, more forward-only ones, and the real data."""
        confirm = [int(index) for index in self.result.indices("confirm")]
        if self._plan.n_temperatures is None:  # what the search ran: a part of it shows the curve
            largest = temperatures[-1]
            temperatures = sorted({max(2, largest // 16), max(2, largest // 4), largest})
        if len(temperatures) < 2:
            self.result.warnings.append(
                "The consistency test compares curves over at least two numbers of temperatures; one was run."
            )
            return
        extra = self._simulate(max(0, CONSISTENCY_SIMULATIONS - len(confirm)), "forward")
        for n_temperatures in temperatures:
            tasks = [
                self._anneal_task(index, "forward", n_temperatures)
                for index in [*confirm, *extra, OBSERVED]
                if (index, "forward", n_temperatures) not in self.result.runs
            ]
            name = f"consistency, T = {n_temperatures}"
            with self.phase(name, "consistency", sum(task.n_chains for task in tasks)):
                for task in self._anneal(tasks, n_temperatures):
                    run = self.result.runs[task.simulation, task.direction, n_temperatures]
                    self.count("consistency", int(run.n_gradients.sum()))

    def _draw_on_real_data(self, n_temperatures: int) -> None:
        plan = self._plan
        n_draws = -(-plan.draws // plan.chains) * plan.chains  # whole rows of (chain, draw)
        if n_draws == 0:
            return
        template = self._anneal_task(OBSERVED, "forward", n_temperatures)
        batches = [range(low, min(low + DRAW_BATCH, n_draws)) for low in range(0, n_draws, DRAW_BATCH)]
        tasks = [
            replace(
                template,
                seeds=chain_seeds(plan.root, Purpose.DRAW, OBSERVED, n_temperatures, batch),
                start_seeds=chain_seeds(plan.root, Purpose.DRAW_START, OBSERVED, n_temperatures, batch),
            )
            for batch in batches
        ]
        states: dict[int, FloatArray] = {}
        with self.phase("draws, real data", "draws", n_draws):
            for position, run in self.run_tasks(tasks):
                states[position] = run.state_at_end[np.isfinite(run.log_weight)]
                self.count("draws", int(run.n_gradients.sum()))
        self.result.observed_draws = np.concatenate([states[position] for position in sorted(states)])

    # -- book-keeping -----------------------------------------------------------------------------------------

    def run_tasks(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run tasks, show their progress and yield (position, result) as they finish."""
        for position, result in self._executor.run(tasks):
            failed = int(np.count_nonzero(result.failure)) if isinstance(result, AnnealRun) else 0
            self._display.advance(tasks[position].n_chains, failed)
            yield position, result

    def count(self, phase: str, n_gradients: int) -> None:
        """Add gradient evaluations to a phase."""
        self.result.n_gradients[phase] = self.result.n_gradients.get(phase, 0) + n_gradients

    def phase(self, name: str, phase: str, n_chains: int | None = None) -> AbstractContextManager[None]:
        """Show a phase and add its wall time to the result."""
        return timed_phase(self.result, self._display, name, phase, n_chains)


@contextmanager
def timed_phase(
    result: CheckResult, display: Display, name: str, phase: str, n_chains: int | None = None
) -> Iterator[None]:
    """Show a phase and add its wall time to the result."""
    display.phase(name, n_chains)
    began = time.perf_counter()
    try:
        yield
    finally:
        result.seconds[phase] = result.seconds.get(phase, 0.0) + time.perf_counter() - began
    display.done()


def fit_real_data(model: Model, root: int, cores: int) -> Fit:
    """Sample the posterior on the real data with the PPL's own sampler."""
    seed = int(seed_sequence(root, Purpose.FIT).generate_state(1)[0])
    with interruptible():
        return model.fit(seed=seed, cores=cores, progressbar=False)  # ours is live


def _joined(first: Simulations, second: Simulations) -> Simulations:
    if len(first) == 0:
        return second
    n, m = len(first), len(second)
    return Simulations(
        np.concatenate([first.states, second.states]),
        {name: np.concatenate([values, second.parameters[name]]) for name, values in first.parameters.items()},
        {name: np.concatenate([values, second.data[name]]) for name, values in first.data.items()},
        acceptance=(n + m) / (n / first.acceptance + m / second.acceptance),
    )


def _raise_if_broken(broken: Sequence[tuple[AnnealTask, AnnealRun]]) -> None:
    """Raise for chains whose density failed where it must not (never dropped silently)."""
    if not broken:
        return
    task, run = broken[0]
    code = Failure(int(run.failure[run.failure > Failure.ZERO_RATIO][0]))
    count = sum(int(np.count_nonzero(item.failure > Failure.ZERO_RATIO)) for _, item in broken)
    where = "the real data" if task.simulation == OBSERVED else f"simulated data set {task.simulation}"
    reason = {
        Failure.ZERO_START: "an exact posterior draw has density zero: simulator and density disagree",
        Failure.NAN: "the log density is NaN outside a kernel",
        Failure.EXCEPTION: f"the log density raised: {run.message}",
    }[code]
    raise DensityError(
        f"{count} annealed chains failed, first a {task.direction} chain on {where}: {reason}. "
        "A density must be finite or -inf at every draw from the prior and positive at the draw that produced the "
        "data. Look at the model there; what was finished is in the `report` attribute of this error."
    )
