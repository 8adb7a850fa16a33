"""The check, phase by phase: fit, simulate, tune, search for T, confirm, consistency, draws on the real data.

Fills a `CheckResult` as it goes, so that an interruption at any moment leaves everything that was finished.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread import bounds, path_choice, schedules
from bread.backends.base import AnnealRun, Direction, Failure, Fit, FloatArray, Kernel, Model, Simulations
from bread.errors import DensityError
from bread.executors import Executor
from bread.paths import BoundedPath, PriorPath, ReferencePath
from bread.progress import Display
from bread.reference_pilots import MOVE_BURN_IN, MOVE_DRAWS, FitRequest, ReferenceFit
from bread.references import Reference
from bread.results import OBSERVED, RACE, SHARED, CheckResult
from bread.seeds import Purpose, chain_seeds, seed_sequence
from bread.tasks import (
    AnnealTask,
    MoveTask,
    PilotTask,
    RaceResult,
    RaceTask,
    ReverseStarts,
    ReverseStartTask,
    Task,
)
from bread.tuning import PathRequest, Pilot

FIRST_TEMPERATURES = 4  # the smallest T of a search
CONSISTENCY_SIMULATIONS = 39  # the two-sided level 0.05 needs p = 2 / (39 + 1)
REVERSE_START_SPACING = 20  # kernel steps between the starts of a simulation's reverse chains
DRAW_BATCH = 25  # chains per task for the draws on the real data
START_DRAWS = 2000  # draws from the start in the pilots on extra data sets: they show the tail of log_ratio
KNOT_DRAWS = 250  # draws from the start in a pilot on a data set itself: they place its first knot
AUTO = "auto"
CANDIDATES = (PriorPath.name, ReferencePath.name)  # under path="auto"; the bounded path where the prior's B is infinite
REFIT_CHAINS, REFIT_SELECTION_DRAWS = 2, 100  # of a fit that is made for every data set
RACE_SIMULATIONS = 4  # extra simulated data sets that choose between paths of like cost
RACE_TEMPERATURES = 64  # most temperatures of that race
RACE_MARGIN = 5.0  # paths predicted to cost more than this times the cheapest do not run
PRIOR_PILOTS = 3  # pilot data sets that place the temperatures when simulated data sets differ widely


@dataclass(frozen=True)
class Plan:
    """What to run, after defaults: see `bread.check` for the meaning of each field."""

    simulate_from: str
    hyperparameters: tuple[str, ...]
    init_steps: int
    simulations: int
    chains: int
    n_temperatures: tuple[int, ...] | None
    max_temperatures: int
    target: float
    schedule: Any
    path: str
    reference: Reference | None
    tune: int
    tune_each: bool
    draws: int
    root: int


class Runner:
    """Runs a plan on a model with an executor; ``result`` holds what is finished."""

    def __init__(self, model: Model, plan: Plan, result: CheckResult, executor: Executor, display: Display) -> None:
        self.result = result
        self._model = model
        self._plan = plan
        self._executor = executor
        self._display = display
        self._request = PathRequest(PriorPath.name)
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

    def _draw_simulations(self, n: int, simulation: int) -> Simulations:
        fixed = self.result.point_estimate or None
        return self._model.simulate(n, fixed=fixed, seed=seed_sequence(self._plan.root, Purpose.SIMULATE, simulation))

    def _simulate(self, n: int, role: str) -> list[int]:
        """Add ``n`` simulated data sets with this role, tune their kernels, find where reverse chains start."""
        first = len(self.result.roles)
        if n == 0:
            return []
        with self._phase("simulating", "simulate"):
            self.result.simulations = _joined(self.result.simulations, self._draw_simulations(n, first))
            self.result.roles += [role] * n
        indices = list(range(first, first + n))
        self._fit_paths(indices)
        if role != "forward":
            self._find_reverse_starts(indices)
        return indices

    def _pilot_task(
        self, simulation: int, data: dict[str, NDArray[Any]], request: PathRequest, n_draws: int, source: str
    ) -> PilotTask:
        return PilotTask(simulation, data, request, self._plan.root, self._plan.tune, n_draws, source)

    def _tune_pilots(self) -> None:
        """Tune on extra simulated data sets: they choose the path, place the temperatures, may give all the kernel."""
        n = PRIOR_PILOTS if self._plan.simulate_from == "prior" else 1
        extra = self._draw_simulations(n, SHARED)
        pilots = self._choose_path(extra)
        result = self.result
        result.path, result.reference_fit = pilots[0].path, pilots[0].fit
        result.kernels[SHARED] = pilots[0].kernel
        result.start_log_ratio = [pilot.start_log_ratio for pilot in pilots]
        result.end_log_ratio = [pilot.end_log_ratio for pilot in pilots if pilot.fit is not None]
        self._request = self._quick(self._request)
        self._path_length = path_choice.path_length(pilots)

    def _request_of(self, kind: str) -> PathRequest:
        info = self._model.info
        if kind != ReferencePath.name or self._plan.reference is not None:
            return PathRequest(kind, self._plan.reference if kind == ReferencePath.name else None)
        transformed = np.ones(info.dim, dtype=bool) if info.transformed is None else info.transformed
        return PathRequest(kind, None, FitRequest(info.dim, transformed, self._plan.tune))

    def _quick(self, request: PathRequest) -> PathRequest:
        """Return the request with a fit short enough to be made for every data set."""
        if request.fit is None:
            return request
        steps = max(10, self._plan.tune // 2)
        fit = replace(request.fit, n_steps=steps, n_chains=REFIT_CHAINS, n_selection_draws=REFIT_SELECTION_DRAWS)
        return replace(request, fit=fit)

    def _choose_path(self, extra: Simulations) -> list[Pilot]:
        """Run pilots on the extra data sets along the path asked for, or along the candidates, and choose."""
        auto = self._plan.path == AUTO
        kinds = [self._plan.path] if not auto else [name for name in CANDIDATES if name in self._model.info.paths]
        pilots: dict[str, list[Pilot]] = {}
        errors: list[DensityError] = []

        def attempt(kind: str) -> None:
            tasks = [
                replace(
                    self._pilot_task(
                        SHARED - i, extra.data_of(i), self._request_of(kind), START_DRAWS, "an extra simulated data set"
                    ),
                    may_fail=True,
                )
                for i in range(len(extra))
            ]
            found = self._run_pilots(tasks)
            failed = [item for item in found if isinstance(item, DensityError)]
            errors.extend(failed)
            if not failed:
                pilots[kind] = [item for item in found if isinstance(item, Pilot)]

        for kind in kinds:
            attempt(kind)
        usual = pilots.get(PriorPath.name)
        if auto and usual and not path_choice.is_reliable(usual) and BoundedPath.name in self._model.info.paths:
            attempt(BoundedPath.name)
        if not pilots:
            raise errors[0]
        costs = [self._predicted_cost(kind, found) for kind, found in pilots.items()]
        if path_choice.needs_race(costs):
            costs = self._race(costs, pilots)
        self.result.path_costs = {cost.kind: cost.total for cost in costs}
        chosen = path_choice.best(costs).kind
        self._request = self._request_of(chosen)
        return pilots[chosen]

    def _predicted_cost(self, kind: str, pilots: list[Pilot]) -> path_choice.PathCost:
        plan, fit = self._plan, pilots[0].fit
        if fit is None:
            per_data_set = float(np.mean([pilot.n_gradients for pilot in pilots])) if plan.tune_each else 0.0
        else:
            quick = self._quick(self._request_of(kind)).fit
            assert quick is not None
            n_transitions = (MOVE_BURN_IN + MOVE_DRAWS) * len(fit.reference.components)
            if plan.tune_each:
                n_transitions = (2 * quick.n_chains + len(pilots[0].kernel.betas)) * quick.n_steps
            per_data_set = fit.n_gradients / (2 * fit.n_chains * plan.tune) * n_transitions
        return path_choice.predicted_cost(
            kind, pilots, target=plan.target, n_chains=2 * plan.chains, n_steps=plan.tune, per_data_set=per_data_set
        )

    def _race(self, costs: list[path_choice.PathCost], pilots: dict[str, list[Pilot]]) -> list[path_choice.PathCost]:
        """Anneal a few more simulated data sets along each path that may win, and correct the predictions."""
        plan = self._plan
        extra = self._draw_simulations(RACE_SIMULATIONS, RACE)
        limit = RACE_MARGIN * min(cost.total for cost in costs if cost.is_reliable)
        corrected = []
        for cost in costs:
            if not cost.is_reliable or cost.total > limit:
                corrected.append(cost)
                continue
            n_temperatures = int(np.clip(round(cost.n_temperatures), FIRST_TEMPERATURES, RACE_TEMPERATURES))
            betas = schedules.schedule("adaptive", n_temperatures, path_choice.path_length(pilots[cost.kind]))
            tasks = []
            for index in range(RACE_SIMULATIONS):
                pilot = pilots[cost.kind][index % len(pilots[cost.kind])]
                request = self._quick(self._request_of(cost.kind))
                tasks.append(
                    RaceTask(
                        RACE - index, extra.data_of(index), request, plan.root, plan.tune, pilot, plan.tune_each, betas,
                        extra.states[index],
                    )
                )  # fmt: skip
            with self._phase(f"choosing a path: {cost.kind}", "race", sum(task.n_chains for task in tasks)):
                runs: list[RaceResult] = [run for _, run in sorted(self._run(tasks), key=lambda item: item[0])]
            self._count("race", sum(run.n_gradients + run.n_other_gradients for run in runs))
            gaps = np.array([run.gap for run in runs])
            per_transition = sum(run.n_gradients for run in runs) / (2 * len(runs) * (n_temperatures - 1))
            corrected.append(path_choice.measured(cost, n_temperatures, gaps, per_transition, plan.target))
        return corrected

    def _tune(self, indices: Sequence[int]) -> None:
        """Tune one kernel, along its own path, for each of these data sets, on that data set."""
        source = "the data set itself"
        tasks = [self._pilot_task(index, self._data(index), self._request, KNOT_DRAWS, source) for index in indices]
        for index, pilot in zip(indices, self._run_pilots(tasks), strict=True):
            assert isinstance(pilot, Pilot)
            self.result.kernels[index] = pilot.kernel
            self.result.paths[index] = pilot.path

    def _fit_paths(self, indices: Sequence[int]) -> None:
        """Give each of these data sets what is its own: kernel and path, or its place of the shared reference."""
        if self._plan.tune_each:
            self._tune(indices)
        elif self.result.reference_fit is not None:
            shared, plan = self.result.reference_fit, self._plan
            kernel = self.result.kernels[SHARED]
            tasks = [MoveTask(index, self._data(index), shared, kernel, plan.root) for index in indices]
            with self._phase("moving the reference", "tune", len(tasks)):
                fit: ReferenceFit
                for position, fit in self._run(tasks):
                    self.result.paths[indices[position]] = ReferencePath(fit.reference)
                    self._count("tune", fit.n_gradients)

    def _run_pilots(self, tasks: Sequence[PilotTask]) -> list[Pilot | DensityError]:
        """Run pilots and record them in the order of the tasks, whichever finished first."""
        with self._phase("tuning", "tune", len(tasks)):
            finished: dict[int, Pilot | DensityError] = dict(self._run(tasks))
        pilots = [finished[position] for position in range(len(tasks))]
        for pilot in pilots:
            if isinstance(pilot, Pilot):
                self._count("tune", pilot.n_gradients)
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
        with self._phase("reverse starts", "start", len(tasks)):
            starts: ReverseStarts
            for position, starts in self._run(tasks):
                self._reverse_starts[indices[position]] = starts.states
                self._count("start", starts.n_gradients)

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
        for position, run in self._run(tasks):
            task = tasks[position]
            self.result.runs[task.simulation, task.direction, n_temperatures] = run
            if np.any(run.failure > Failure.ZERO_RATIO):
                broken.append((task, run))
            yield task
        _raise_if_broken(broken)

    def _anneal_both(self, indices: Sequence[int], n_temperatures: int, name: str, phase: str) -> bounds.Interval:
        """Anneal forward and reverse on simulations; forward on the real data. Return the deciding bound."""
        directions: tuple[Direction, ...] = ("reverse", "forward")
        pairs = [(index, direction) for index in indices for direction in directions]
        if (OBSERVED, "forward", n_temperatures) not in self.result.runs:
            if OBSERVED not in self.result.paths and (self._plan.tune_each or self.result.reference_fit is not None):
                self._fit_paths([OBSERVED])
            pairs.append((OBSERVED, "forward"))
        tasks = [self._anneal_task(index, direction, n_temperatures) for index, direction in pairs]
        with self._phase(name, phase, sum(task.n_chains for task in tasks)):
            for task in self._anneal(tasks, n_temperatures):
                self._count(
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

    def _deciding_bound(self, indices: NDArray[np.int64], n_temperatures: int) -> tuple[str, bounds.Interval]:
        """Return B with its interval, or the one-sided bound where B has no finite mean."""
        forward = self.result.log_weights("forward", n_temperatures, indices)
        reverse = self.result.log_weights("reverse", n_temperatures, indices)
        if np.isnan(forward).any() or np.isnan(reverse).any():
            return "B", bounds.Interval(np.nan, np.nan, np.nan)
        if bounds.jeffreys_is_reliable(self.result.start_tails(), forward, self.result.end_log_ratio):
            return "B", bounds.jeffreys_bound(forward, reverse, self.result.level)
        return "KL", bounds.kl_exact_approx(forward, reverse, self.result.level)

    # -- search, confirm --------------------------------------------------------------------------------------

    def _search_and_confirm(self) -> list[int]:
        plan = self._plan
        search = self._simulate(max(5, plan.simulations // 2), "search")
        n_temperatures = self._first_temperatures()
        temperatures: list[int] = []
        while True:
            temperatures.append(n_temperatures)
            self.result.n_temperatures = n_temperatures
            interval = self._anneal_both(search, n_temperatures, f"T = {n_temperatures}", "search")
            is_last = n_temperatures >= plan.max_temperatures
            if (interval.upper <= plan.target or is_last) and self._confirm(n_temperatures, is_last):
                return temperatures
            n_temperatures = min(2 * n_temperatures, plan.max_temperatures)

    def _first_temperatures(self) -> int:
        """Return the T to begin with: a quarter of what the pilot's path length asks for, as a power of two."""
        assert self._path_length is not None
        wanted = self._path_length.total**2 / self._plan.target / 4
        first = 2 ** int(np.floor(np.log2(max(wanted, FIRST_TEMPERATURES))))
        return int(min(max(first, FIRST_TEMPERATURES), self._plan.max_temperatures))

    def _confirm(self, n_temperatures: int, is_last: bool) -> bool:
        """Anneal fresh simulations at this T; return whether their bound decides."""
        self.result.level = bounds.alpha_level(self._attempts)
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
        if len(temperatures) < 2:
            if self._plan.n_temperatures is not None or temperatures[0] <= 2:
                self.result.warnings.append(
                    "The consistency test compares curves over at least two numbers of temperatures; one was run."
                )
                return
            temperatures = [max(2, temperatures[0] // 4), temperatures[0]]
        extra = self._simulate(max(0, CONSISTENCY_SIMULATIONS - len(confirm)), "forward")
        for n_temperatures in temperatures:
            tasks = [
                self._anneal_task(index, "forward", n_temperatures)
                for index in [*confirm, *extra, OBSERVED]
                if (index, "forward", n_temperatures) not in self.result.runs
            ]
            name = f"consistency, T = {n_temperatures}"
            with self._phase(name, "consistency", sum(task.n_chains for task in tasks)):
                for task in self._anneal(tasks, n_temperatures):
                    run = self.result.runs[task.simulation, task.direction, n_temperatures]
                    self._count("consistency", int(run.n_gradients.sum()))

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
        with self._phase("draws, real data", "draws", n_draws):
            for position, run in self._run(tasks):
                states[position] = run.state_at_end[np.isfinite(run.log_weight)]
                self._count("draws", int(run.n_gradients.sum()))
        self.result.observed_draws = np.concatenate([states[position] for position in sorted(states)])

    # -- book-keeping -----------------------------------------------------------------------------------------

    def _run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        for position, result in self._executor.run(tasks):
            failed = int(np.count_nonzero(result.failure)) if isinstance(result, AnnealRun) else 0
            self._display.advance(tasks[position].n_chains, failed)
            yield position, result

    def _count(self, phase: str, n_gradients: int) -> None:
        self.result.n_gradients[phase] = self.result.n_gradients.get(phase, 0) + n_gradients

    def _phase(self, name: str, phase: str, n_chains: int | None = None) -> AbstractContextManager[None]:
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
