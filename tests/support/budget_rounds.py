"""Rounds of a budgeted search on a finite model, with log weights drawn from their exact laws, so that V is known.

Each data set has its own V, and those with a larger V cost more: what makes a careless stopping rule wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.stats import binom

from bread import exact
from bread.paths.schedules import linear
from bread.running.state.budget import Budget, BudgetResult
from bread.running.state.plan import PathRequest, Plan
from bread.statistics.bounds.goal import Decision, Goal
from tests.models.finite import FiniteModel

PRIOR = np.array([0.5, 0.2, 0.3])
LIKELIHOOD = np.array([[0.8, 0.2], [0.1, 0.9], [0.4, 0.6]])
N_OUTCOMES = 5
MODEL = FiniteModel(
    PRIOR, LIKELIHOOD, np.array([0, 1, 1, 0, 1]), exact.Lazy(exact.MetropolisHastings(exact.grid_neighbours((3,))), 0.5)
)
SHARES = PRIOR @ binom.pmf(np.arange(N_OUTCOMES + 1)[None, :], N_OUTCOMES, LIKELIHOOD[:, 1][:, None])


@cache
def laws(n_temperatures: int) -> list[exact.WeightLaw]:
    """Return the laws of log weights, one for each number of ones in the data."""
    rows = [np.arange(N_OUTCOMES) < ones for ones in range(N_OUTCOMES + 1)]
    return [exact.weight_law(MODEL.chain({"y": row.astype(int)}), linear(n_temperatures)) for row in rows]


@cache
def errors(n_temperatures: int) -> np.ndarray:
    """Return V as one chain each way estimates it, on each data set, exactly."""
    return np.array([law.expected_error(1) for law in laws(n_temperatures)])


def true_error(n_temperatures: int) -> float:
    return float(SHARES @ errors(n_temperatures))


def plan_of(amount: float, max_error: float, simulations: int = 20) -> Plan:
    return Plan(
        "prior", ("state",), 0, simulations, 1, None, 32, Goal(max_error), "linear", PathRequest("prior"), 200, False,
        None, 0, Budget(amount, False),
    )  # fmt: skip


class SampledRounds:
    """Both the runner and the result, as far as `SearchInBudget` needs them.

    Parameters
    ----------
    plan : Plan
    seed : int
    dearer : float
        By how much of itself a data set with V = 1 costs more than one with V = 0.
    """

    def __init__(self, plan: Plan, seed: int, dearer: float = 5.0) -> None:
        self.rng, self.plan, self.dearer = np.random.default_rng(seed), plan, dearer
        self.roles: list[str] = []
        self.rows: list[int] = []
        self.runs: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self.n_gradients = {"tune": 1000}
        self.budget: BudgetResult | None = None
        self.level = self.error_level = 0.95
        self.n_temperatures = 0
        self.looks: list[tuple[int, int, float]] = []

    def simulate(self, n: int, role: str) -> list[int]:
        first = len(self.roles)
        self.roles += [role] * n
        self.rows += [int(row) for row in self.rng.choice(len(SHARES), size=n, p=SHARES)]
        self.n_gradients["tune"] += 10 * n
        return list(range(first, first + n))

    def anneal(self, index: int, n_temperatures: int) -> None:
        law, rng = laws(n_temperatures)[self.rows[index]], self.rng
        self.runs[index, n_temperatures] = (
            rng.choice(law.forward_log_weight, size=1, p=law.forward / law.forward.sum()),
            rng.choice(law.reverse_log_weight, size=1, p=law.reverse / law.reverse.sum()),
        )
        scale = 1.0 + self.dearer * errors(n_temperatures)[self.rows[index]]
        self.n_gradients["tune"] += int(2 * (n_temperatures - 1) * scale)

    def anneal_both(self, indices: Sequence[int], n_temperatures: int, phase: str) -> Decision:
        for index in indices:
            if (index, n_temperatures) not in self.runs:
                self.anneal(index, n_temperatures)
        forward, reverse = (self.log_weights(way, n_temperatures, np.array(indices)) for way in ("forward", "reverse"))
        decision = self.plan.goal.decide(forward, reverse, self.level, is_reliable=False)
        if phase == "confirm":
            self.looks.append((n_temperatures, len(indices), self.error_level))
        return decision

    def log_weights(self, direction: str, n_temperatures: int, indices: np.ndarray) -> np.ndarray:
        way = 0 if direction == "forward" else 1
        return np.array([self.runs[int(index), n_temperatures][way] for index in indices])

    def indices(self, role: str) -> np.ndarray:
        return np.flatnonzero(np.array(self.roles) == role)

    def first_temperatures(self) -> int:
        return 4

    def takes_another_path(self, search: Sequence[int], temperatures: Sequence[int]) -> bool:
        return False

    def predicted_gap(self, n_temperatures: int) -> float:
        return 4.0 / n_temperatures
