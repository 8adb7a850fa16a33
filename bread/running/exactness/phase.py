"""Before annealing: do simulator, density and kernel fit together? Tests of exact joint draws.

Draws come from the model's own simulator whatever `simulate_from` is, so the tests are exact under every protocol. They
spend at most a share of what the check is predicted to cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from bread.backends.base import Evolution, FloatArray, Kernel, Model, Simulations
from bread.jobs.task import Task
from bread.paths.kinds import PriorPath
from bread.running.exactness.score_tests import DRAWING, Held, ScoreResults, score_tests
from bread.running.exactness.scores import MIN_DRAWS
from bread.running.exactness.tasks import KernelTask
from bread.running.state.exactness_results import DirectTest, DirectTests
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import SHARED, CheckResult
from bread.seeds import Purpose, chain_seeds
from bread.statistics.exactness.invariance import invariance_test

SHARE = 0.045  # of the predicted gradient evaluations of the check
MOST_DRAWS = 1000  # joint draws of a test
MOST_NUMBERS = 4_000_000  # outcomes of all joint draws together: they travel between processes
BATCH = 50  # draws a task
KERNEL_DRAWS = 1000  # exact draws that a frozen kernel moves
MOST_STEPS = 10  # steps that it moves each
EVALUATIONS = 3  # of a density, about as dear as a gradient
FIRST_MOVED = 200  # draws that show what a step costs
PHASE = "direct tests"
_KERNEL = {0.0: "kernel at beta = 0", 1.0: "kernel at beta = 1"}
_Result = TypeVar("_Result")


class DirectPhase:
    """Runs the tests and leaves them in ``result.direct_tests``."""

    def __init__(self, model: Model, plan: Plan, result: CheckResult, ledger: Ledger, held: Held | None = None) -> None:
        self._info = model.info
        self._held = held
        self._plan = plan
        self._result = result
        self._ledger = ledger
        self._spent = 0
        self._tests: list[DirectTest] = []
        self._left_out: dict[str, str] = {}

    def run(self) -> None:
        """Run them; what cannot be run is left out with the reason, and the check goes on."""
        if not self._info.layout.dim:
            return
        budget = SHARE * self.predicted_cost()
        found = self._scores(0.5 * budget)
        for beta in (0.0, 1.0):
            if beta == 1.0 and found.inexact:
                self._left_out[_KERNEL[beta]] = found.inexact
                continue
            try:
                share = 0.5 * (budget - self._spent) if beta == 0.0 else budget - self._spent
                self._invariance(beta, self._real_data() if found.joint is None else found.joint, share)
            except Exception as error:
                self._left_out[_KERNEL[beta]] = _reason(error)
        self._ledger.count(PHASE, self._spent)
        discarded, n_kept = found.discarded, 0 if found.joint is None else len(found.joint) - found.n_lost
        n = discarded.n_parameters + discarded.n_outcomes
        self._result.direct_tests = DirectTests(
            tuple(self._tests), self._left_out, self._spent, n / max(n + n_kept, 1.0), discarded.reason
        )

    def predicted_cost(self) -> float:
        """Return about how many gradient evaluations the check takes, the pilots' included."""
        plan, result = self._plan, self._result
        spent = sum(result.n_gradients.values())
        kernel = result.kernels[SHARED]
        per_temperature = 2 * plan.chains * _per_transition(kernel, plan.tune) / kernel.every
        if plan.n_temperatures is None:
            most = plan.max_temperatures * per_temperature  # T may be predicted to be larger than any that is run
            predicted = spent + plan.check_simulations * min(result.path_costs.get(result.path.name, 0.0), most)
            if plan.budget is not None and not plan.budget.is_time:
                return min(predicted, plan.budget.amount)
            return predicted
        return spent + plan.simulations * sum(plan.n_temperatures) * per_temperature

    # -- scores -----------------------------------------------------------------------------------------------

    def _scores(self, budget: float) -> ScoreResults:
        """Test simulator against density."""
        is_split = PriorPath.name in self._info.paths or self._plan.adds_data
        size = max(1, sum(np.size(values) for values in self._info.data.observed.values()))
        most = min(MOST_DRAWS, MOST_NUMBERS // size)
        n_sets = 1 + (is_split and self._held is not None)  # those near the real data are as many again
        n_draws = int(np.clip(budget / (1 + 2 * is_split + DRAWING) / n_sets, MIN_DRAWS, max(most, MIN_DRAWS)))
        found = score_tests(
            self._info, self._plan.root, n_draws // BATCH, BATCH,
            lambda tasks: self._run(tasks, "testing the density"), self._held, are_given=self._plan.adds_data,
        )  # fmt: skip
        self._tests += found.tests
        self._left_out |= found.left_out
        self._spent += found.n_gradients + found.n_evaluations // EVALUATIONS
        return found

    def _real_data(self) -> Simulations:
        """Return the real data in place of those of joint draws, for the base of the path, which has its own draws."""
        data = {name: np.broadcast_to(values, (KERNEL_DRAWS, *np.shape(values)))
                for name, values in self._info.data.observed.items()}  # fmt: skip
        return Simulations(np.empty((KERNEL_DRAWS, self._info.layout.dim)), {}, data)

    # -- invariance -------------------------------------------------------------------------------------------

    def _invariance(self, beta: float, joint: Simulations, budget: float) -> None:
        """Move exact draws by the kernel that was tuned on an extra data set, and compare before with after."""
        plan, kernel = self._plan, self._result.kernels[SHARED]
        cost = _per_transition(kernel, plan.tune)
        n_draws = min(KERNEL_DRAWS, len(joint))
        n_steps = int(np.clip(budget / (n_draws * cost), 1, MOST_STEPS))
        first = self._move(beta, joint, range(min(FIRST_MOVED, n_draws)), n_steps)
        spent = max(first[2], 1)
        affordable = int(len(first[0]) * budget / spent)
        n_draws = min(n_draws, max(affordable - affordable % BATCH, len(first[0])))
        rest = self._move(beta, joint, range(len(first[0]), n_draws), n_steps)
        before, after = np.concatenate([first[0], rest[0]]), np.concatenate([first[1], rest[1]])
        self._tests.append(kernel_result(beta, before, after, self._info.layout.coordinates, n_steps))

    def _move(self, beta: float, joint: Simulations, rows: range, n_steps: int) -> tuple[FloatArray, FloatArray, int]:
        """Return draws before and after, and evaluations."""
        plan, result = self._plan, self._result
        end = int(beta)
        tasks = []
        for low in range(rows.start, rows.stop, BATCH):
            batch = range(low, min(low + BATCH, rows.stop))
            tasks.append(
                KernelTask(
                    {name: values[batch.start : batch.stop] for name, values in joint.data.items()},
                    result.path,
                    result.kernels[SHARED],
                    beta,
                    n_steps,
                    chain_seeds(plan.root, Purpose.DIRECT_MOVE, end, 0, batch),
                    joint.states[batch.start : batch.stop] if end else None,
                    () if end else chain_seeds(plan.root, Purpose.DIRECT_BASE, end, 0, batch),
                )
            )
        parts: list[tuple[FloatArray, Evolution]] = self._run(tasks, "testing the kernel")
        spent = sum(moved.n_gradients + moved.n_evaluations // EVALUATIONS for _, moved in parts)
        self._spent += spent
        none = np.empty((0, self._info.layout.dim))
        before, after = [part[0] for part in parts], [part[1].states for part in parts]
        return np.concatenate([none, *before]), np.concatenate([none, *after]), spent

    def _run(self, tasks: Sequence[Task], name: str) -> list[Any]:
        """Run tasks and return their results in order."""
        if not tasks:
            return []
        with self._ledger.phase(name, PHASE, sum(task.n_chains for task in tasks)):
            return self._ledger.in_order(tasks)


def kernel_result(
    beta: float, before: FloatArray, after: FloatArray, coordinates: Sequence[str], n_steps: int
) -> DirectTest:
    """Return what exact draws (n, dim) before and after ``n_steps`` of the kernel at one end of the path show."""
    test = invariance_test(before, after)
    pooled = np.full((1, len(test.functions)), np.nan)
    pooled[0, :2] = test.pooled_p_values
    return DirectTest(
        _KERNEL[beta],
        (*coordinates, "all coordinates"),
        test.functions,
        np.concatenate([test.p_values, pooled]),
        np.concatenate([test.effect, np.full_like(pooled, np.nan)]),
        len(before),
        n_steps,
    )


def _per_transition(kernel: Kernel, n_steps: int) -> float:
    """Return evaluations of one transition of the pilot, averaged over its knots."""
    spent = kernel.n_gradients or kernel.n_evaluations
    return max(1.0, spent / (len(kernel.betas) * n_steps))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
