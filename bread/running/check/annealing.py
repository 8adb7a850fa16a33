"""Annealed chains of many data sets: tasks made, run and recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bread.backends.base import AnnealRun, Direction, Failure, FloatArray
from bread.errors import DensityError
from bread.jobs.task import AnnealTask
from bread.paths import schedules
from bread.running.check.preparation import Preparation
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.prior_integral_results import without_constant
from bread.running.state.results import OBSERVED, CheckResult
from bread.seeds import Purpose, chain_seeds

SMALLEST_BATCH = 8  # chains per task for the draws on the real data
DRAW_TASKS = 60  # at most: enough for the workers of one machine
BOTH: tuple[Direction, Direction] = ("forward", "reverse")


class Annealing:
    """Anneals prepared data sets; ``result.runs`` keeps every finished run."""

    def __init__(self, plan: Plan, result: CheckResult, preparation: Preparation, ledger: Ledger) -> None:
        self._plan = plan
        self._result = result
        self._preparation = preparation
        self._ledger = ledger

    def both(self, indices: Sequence[int], n_temperatures: int, phase: str) -> Iterator[None]:
        """Anneal what has not run, both ways on simulations and forward on the real data; yield after each task."""
        result = self._result
        pairs = self._missing(indices, n_temperatures)
        if not self._plan.adds_data and (OBSERVED, "forward", n_temperatures) not in result.runs:
            if OBSERVED not in result.paths and (self._plan.tune_each or result.reference_fit is not None):
                self._preparation.fit_paths([OBSERVED])
            pairs.append((OBSERVED, "forward"))
        name = f"T = {n_temperatures}" + (", confirm" if phase == "confirm" and self._plan.is_searching else "")
        yield from self._run(pairs, n_temperatures, name, phase)

    def on_real_data(self, n_temperatures: int) -> None:
        """Anneal forward on the real data, with a path and a kernel of their own."""
        self._preparation.fit_paths([OBSERVED])
        for _ in self._run([(OBSERVED, "forward")], n_temperatures, f"T = {n_temperatures}", "draws"):
            pass

    def simulated(self, indices: Sequence[int], n_temperatures: int, phase: str) -> None:
        """Anneal what has not run, both ways on simulations, and nothing on the real data."""
        for _ in self._run(self._missing(indices, n_temperatures), n_temperatures, f"T = {n_temperatures}", phase):
            pass

    def forward(self, indices: Sequence[int], n_temperatures: int) -> None:
        """Anneal forward on these data sets (`OBSERVED` may be one), where that has not been done."""
        pairs: list[tuple[int, Direction]] = [(index, "forward") for index in indices]
        missing = [pair for pair in pairs if (*pair, n_temperatures) not in self._result.runs]
        for _ in self._run(missing, n_temperatures, f"consistency, T = {n_temperatures}", "consistency"):
            pass

    def again_on_real_data(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Anneal other chains on the real data, as many as `forward` does, for each (repeat, T)."""
        root, chains = self._plan.root, range(self._plan.chains)
        if not wanted:
            return
        tasks = [
            replace(
                self._task(OBSERVED, "forward", n_temperatures),
                seeds=chain_seeds(root, Purpose.REPEAT, repeat, n_temperatures, chains),
                base_seeds=chain_seeds(root, Purpose.REPEAT_BASE, repeat, n_temperatures, chains),
            )
            for repeat, n_temperatures in wanted
        ]
        broken: list[tuple[AnnealTask, AnnealRun]] = []
        with self._ledger.phase("consistency, your data", "consistency", sum(task.n_chains for task in tasks)):
            for position, run in self._ledger.run_tasks(tasks):
                self._result.repeats[wanted[position]] = without_constant(
                    run, tasks[position].path, self._result.prior_integrals
                )
                if np.any(run.failure > Failure.ZERO_RATIO):
                    broken.append((tasks[position], run))
                self._ledger.count("consistency", int(run.n_gradients.sum()))
            _raise_if_broken(broken)

    def draws_on_real_data(self, n_temperatures: int, n_draws: int) -> None:
        """Anneal ``n_draws`` chains on the real data; the result keeps their ends, log densities there and weights.

        A chain that failed, or met a ratio of zero, ends nowhere: it is left out and counted.
        """
        plan, result = self._plan, self._result
        template = self._task(OBSERVED, "forward", n_temperatures)
        size = max(SMALLEST_BATCH, -(-n_draws // DRAW_TASKS))
        batches = [range(low, min(low + size, n_draws)) for low in range(0, n_draws, size)]
        tasks = [
            replace(
                template,
                seeds=chain_seeds(plan.root, Purpose.DRAW, OBSERVED, n_temperatures, batch),
                base_seeds=chain_seeds(plan.root, Purpose.DRAW_BASE, OBSERVED, n_temperatures, batch),
            )
            for batch in batches
        ]
        ends: dict[int, tuple[FloatArray, FloatArray]] = {}  # of a run, its ends and its weights are kept
        weights: dict[int, tuple[FloatArray, FloatArray]] = {}
        n_zero = 0
        with self._ledger.phase("draws, your data", "draws", n_draws):
            for position, run in self._ledger.run_tasks(tasks):
                usable = np.isfinite(run.log_weight)
                log_density = run.log_base_density[:, 1] + run.log_ratio[:, -1]
                ends[position] = run.state_at_end[usable], log_density[usable]
                normalised = without_constant(run, template.path, result.prior_integrals)
                weights[position] = normalised.log_weight, normalised.log_ratio[:, [0, -1]]
                n_zero += int(np.count_nonzero(run.failure == Failure.ZERO_RATIO))
                self._ledger.count("draws", int(run.n_gradients.sum()))
        states, log_densities = zip(*(ends[position] for position in sorted(ends)), strict=True)
        result.observed_draws = np.concatenate(states)
        result.observed_log_density = np.concatenate(log_densities)
        log_weights, log_ratios = zip(*(weights[position] for position in sorted(weights)), strict=True)
        result.observed_log_weight = np.concatenate(log_weights)
        result.observed_log_ratio = np.concatenate(log_ratios)
        result.draw_temperatures = n_temperatures
        result.n_draws_dropped, result.n_draws_zero = n_draws - len(result.observed_draws), n_zero

    def _missing(self, indices: Sequence[int], n_temperatures: int) -> list[tuple[int, Direction]]:
        """Return the pairs (simulation, direction) that have not run at this T."""
        directions: tuple[Direction, ...] = ("reverse", "forward")
        return [
            (index, direction)
            for index in indices
            for direction in directions
            if (index, direction, n_temperatures) not in self._result.runs
        ]

    def _run(
        self, pairs: Sequence[tuple[int, Direction]], n_temperatures: int, name: str, phase: str
    ) -> Iterator[None]:
        """Run chains, record each run under its (simulation, direction, T), and yield after each."""
        tasks = [self._task(index, direction, n_temperatures) for index, direction in pairs]
        broken: list[tuple[AnnealTask, AnnealRun]] = []
        with self._ledger.phase(name, phase, sum(task.n_chains for task in tasks)):
            for position, run in self._ledger.run_tasks(tasks):
                task = tasks[position]
                run = without_constant(run, task.path, self._result.prior_integrals)
                self._result.runs[task.simulation, task.direction, n_temperatures] = run
                if np.any(run.failure > Failure.ZERO_RATIO):
                    broken.append((task, run))
                self._ledger.count(phase, int(run.n_gradients.sum()))
                yield
            _raise_if_broken(broken)

    def _schedule(self, n_temperatures: int) -> FloatArray:
        result = self._result
        if n_temperatures not in result.schedules:
            betas = schedules.schedule(self._plan.schedule, n_temperatures, self._preparation.path_length)
            result.schedules[n_temperatures] = betas
        return result.schedules[n_temperatures]

    def _task(self, simulation: int, direction: Direction, n_temperatures: int) -> AnnealTask:
        root, chains = self._plan.root, range(self._plan.chains)
        forward = direction == "forward"
        purpose = Purpose.FORWARD if forward else Purpose.REVERSE
        return AnnealTask(
            simulation,
            self._preparation.data(simulation),
            self._result.path_of(simulation),
            direction,
            self._schedule(n_temperatures),
            self._preparation.kernel(simulation),
            seeds=chain_seeds(root, purpose, simulation, n_temperatures, chains),
            initial=None if forward else self._preparation.reverse_initial[simulation],
            base_seeds=chain_seeds(root, Purpose.BASE, simulation, n_temperatures, chains) if forward else None,
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
        Failure.ZERO_INITIAL: "an exact posterior draw has density zero: simulator and density disagree",
        Failure.NAN: "the log density is NaN outside a kernel",
        Failure.EXCEPTION: f"the log density raised: {run.message}",
    }[code]
    raise DensityError(
        f"{count} annealed chains failed, first a {task.direction} chain on {where}: {reason}. "
        "A density must be finite or -inf at every draw from the path's start and positive at the draw that produced "
        "the data. Look at the model there; what was finished is in the `report` attribute of this error."
    )
