"""`bread.check` on finite models: V, B, interval, ranks and alarm against exact values; a defect in one direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bread
from bread import exact
from bread.paths.schedules import linear
from bread.statistics.bounds.certificate import error_interval
from tests.models.finite import FiniteModel

PRIOR = np.array([0.5, 0.2, 0.3])
LIKELIHOOD = np.array([[0.7, 0.3], [0.1, 0.9], [0.45, 0.55]])
DATA = np.array([0, 1, 1])
T = 4


class WrongBack(exact.HeatBath):
    """Idle heat bath whose reverse chains take the inverse of the density: a defect in one direction."""

    def matrices(self, log_density: np.ndarray) -> np.ndarray:
        return 0.3 * np.eye(3) + 0.7 * super().matrices(log_density)

    def reversals(self, log_density: np.ndarray) -> np.ndarray:
        return self.matrices(-log_density)


def model_with(transition: exact.Transition) -> FiniteModel:
    return FiniteModel(PRIOR, LIKELIHOOD, DATA, transition)


RIGHT = model_with(exact.Lazy(exact.MetropolisHastings(exact.grid_neighbours((3,))), 0.3))


def check(model: FiniteModel, **settings: Any) -> Any:
    return bread.check(
        model, simulate_from="prior", path="prior", schedule="linear", n_temperatures=[T], cores=1, draws=0,
        progressbar=False, **settings,
    )  # fmt: skip


@pytest.fixture(scope="module")
def report() -> Any:
    return check(RIGHT, simulations=150, chains=4, random_seed=3)


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    """Means over all data sets of V as four chains estimate it, of V itself, J and B."""
    rows, probability = RIGHT.data_sets()
    chains = [RIGHT.chain({"y": row}) for row in rows]
    laws = [exact.weight_law(chain, linear(T)) for chain in chains]
    results = [exact.anneal(chain, linear(T)) for chain in chains]
    return {
        "four chains": float(probability @ [law.expected_error(4) for law in laws]),
        "V": float(probability @ [law.error for law in laws]),
        "J": float(probability @ [result.jeffreys for result in results]),
        "B": float(probability @ [result.bound for result in results]),
        "end": float(probability @ [result.total_variation for result in results]),
    }


def within(values: np.ndarray, expected: float, n_errors: float) -> bool:
    return abs(values.mean() - expected) <= n_errors * values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.statistical
def test_v_and_b_of_a_report_are_the_exact_ones(report: Any, truth: dict[str, float]) -> None:
    """4 standard errors over 150 data sets; wide limits hold the truth; J and the end's error are below."""
    by_simulation = report["certificate"]["error_by_simulation"].values.reshape(-1)
    assert len(by_simulation) == 150 and within(by_simulation, truth["four chains"], 4)
    assert not within(by_simulation, truth["four chains"] + 0.08, 4)  # what this many simulations can tell
    limits = error_interval(by_simulation, 0.95)
    np.testing.assert_allclose(report["certificate"]["error_ci"].values[0], limits[1:], atol=1e-12)
    wide = error_interval(by_simulation, 0.9999)  # how often 95% limits miss: tests of the backend
    assert wide.lower < truth["four chains"] < wide.upper and truth["end"] < truth["V"] < wide.upper
    bound, (low, high) = report["bounds"]["jeffreys"].values[0], report["bounds"]["jeffreys_ci"].values[0]
    assert low < truth["B"] < high and low < bound < high and truth["J"] < truth["B"]
    table = bread.summary(report, kind="bounds")
    assert table.loc[T, "error"] == pytest.approx(truth["four chains"], abs=0.04)
    assert truth["V"] <= table.loc[T, "error_limit_exact"]


@pytest.mark.statistical
def test_alarm_and_ranks_are_quiet(report: Any) -> None:
    alarm = report["alarm"]
    assert float(alarm["p_value"]) > 0.01 and float(alarm["forms_p_value"]) > 0.01
    assert float(alarm["weighted_rank_p_value_combined"]) > 0.01
    assert bread.verdict(report).status == "not converged"


@pytest.mark.statistical
def test_a_defect_in_one_direction_is_a_bug() -> None:
    """Negative control: forward chains are right, and exact draws and their kernel pass every direct test."""
    report = check(model_with(WrongBack([np.zeros(3, dtype=int)])), simulations=80, chains=4, random_seed=3)
    verdict = bread.verdict(report)
    assert verdict.status == "bug", str(verdict)
    assert float(report["alarm"]["weighted_rank_p_value_combined"]) < 1e-3


class Halved(exact.MetropolisHastings):
    """Acceptance by half the log ratio."""

    def matrices(self, log_density: np.ndarray) -> np.ndarray:
        return super().matrices(0.5 * np.asarray(log_density))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transition", "failed"),
    [
        (RIGHT.transition, ""),
        (Halved(exact.grid_neighbours((3,))), "averages of chains"),
        (WrongBack([np.zeros(3, dtype=int)]), "order of annealed weights"),
    ],
)
def test_debug_runs_a_finite_models_kernel(transition: exact.Transition, failed: str) -> None:
    report = bread.debug(model_with(transition), budget=0.05, random_seed=1, progressbar=False)
    assert bread.verdict(report).status == ("bug" if failed else "no bug found"), str(bread.verdict(report))
    table = bread.summary(report, kind="bounds")
    assert not failed or failed in set(table[table["fails"]]["test"])


class NotTurned(exact.HeatBath):
    """A sweep over both axes that reverse chains run in the same order: invariant, and not its own reversal."""

    def reversals(self, log_density: np.ndarray) -> np.ndarray:
        return self.matrices(log_density)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "is_right"), [(exact.HeatBath, True), (NotTurned, False)])
@pytest.mark.slow
def test_a_sweep_that_is_not_turned_round_is_a_bug(kind: type[exact.HeatBath], is_right: bool) -> None:
    """Axes that depend on each other, data that say little: only products across them tell."""
    prior = np.array([[0.30, 0.02, 0.02], [0.02, 0.20, 0.02], [0.10, 0.02, 0.30]])
    likelihood = np.linspace(0.4, 0.6, 9).reshape(3, 3)
    sweep = kind(exact.gibbs_on_grid((3, 3)).partitions)
    model = FiniteModel(prior, np.stack([likelihood, 1.0 - likelihood], axis=-1), np.array([0, 1]), sweep)
    report = bread.check(
        model, simulate_from="prior", path="prior", schedule="linear", n_temperatures=[2], simulations=600, chains=2,
        cores=1, draws=0, random_seed=1, progressbar=False,
    )  # fmt: skip
    alarm = report["alarm"]
    p_values = dict(zip(alarm["function"].values.tolist(), alarm["weighted_rank_p_value"].values, strict=True))
    crossed = [p for name, p in p_values.items() if "times" in name]
    assert len(crossed) == 2
    if is_right:
        assert float(alarm["weighted_rank_p_value_combined"]) > 0.01
    else:
        assert min(crossed) < 1e-4 and bread.verdict(report).status == "bug", p_values
        assert min(p for name, p in p_values.items() if "times" not in name) > 1e-3  # what was ranked before
