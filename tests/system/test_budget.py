"""`bread.check(budget=...)` and `bread.plan` on whole models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import InvalidArgumentError
from tests.models.reference import BetaBinomial, HMCKernel, NormalMean

HMC = HMCKernel(n_leapfrog=5)
MODELS = {
    "normal mean": NormalMean(np.array([0.4, 1.9, 1.1]), prior_sd=1.5, kernel=HMC),
    "beta-binomial": BetaBinomial(np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0, kernel=HMC),
}
SETTINGS: dict[str, Any] = {
    "simulate_from": "prior", "path": "prior", "tune": 20, "tune_on": "shared", "cores": 1, "draws": 20,
    "progressbar": False,
}  # fmt: skip


def budget_of(report: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report.attrs["budget"])
    return found


@pytest.mark.slow
def test_same_seed_same_report_and_the_budget_is_kept(tmp_path: Any) -> None:
    """A number of gradients: bit-equal, from a checkpoint too, with what was spent and predicted."""
    model, call = MODELS["normal mean"], {**SETTINGS, "budget": 150_000, "random_seed": 4, "simulations": 10}
    reports = [bread.check(model, **call), bread.check(model, checkpoint=tmp_path / "run", **call)]
    reports.append(bread.check(model, checkpoint=tmp_path / "run", **call))
    found = [budget_of(report) for report in reports]
    assert found[0] == found[1] == found[2]
    assert 0.3 * 150_000 < found[0]["spent"] < 1.1 * 150_000
    for name in ("log_weight", "n_gradients"):
        values = [report["forward"][name].values for report in reports]
        assert np.array_equal(values[0], values[1], equal_nan=True) and np.array_equal(
            values[0], values[2], equal_nan=True
        )
    notes = json.loads(reports[0].attrs["notes"])
    assert any(note.startswith("Predicted from the first rounds") for note in notes)
    assert any(note.startswith("Budget 150 000 gradient evaluations:") for note in notes)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_prediction_against_outcome(name: str) -> None:
    """The limit that a check ends with is within a factor of 1.8 of what it said after its first rounds.

    The intervals are wide by a factor of about 1.5; outcomes of seven models were within a factor of 1.45.
    """
    report = bread.check(MODELS[name], budget=300_000, max_error=0.02, random_seed=1, **SETTINGS)
    row = bread.summary(report, kind="bounds").loc[report.attrs["n_temperatures"]]
    predicted = budget_of(report)["predicted"]["limit"]
    assert predicted / 1.8 < row["error_limit"] < predicted * 1.8


def test_plan_predicts_and_says_so_in_a_sentence() -> None:
    found = bread.plan(MODELS["normal mean"], budget=3_000_000, random_seed=2, **{**SETTINGS, "draws": None})
    assert found.lower < found.limit < found.upper and found.spent < 0.05 * found.budget
    text = f"In 3 million gradient evaluations I can see errors down to {found.limit:.2g}"
    assert str(found).startswith(text)


def test_plan_of_too_little_says_so() -> None:
    found = bread.plan(MODELS["normal mean"], budget=100, random_seed=2, **SETTINGS)
    assert "is too small" in str(found) and np.isnan(found.limit) and found.n_simulations == 0


def test_a_plan_ends_with_its_time_where_pilots_take_longer() -> None:
    found = bread.plan(MODELS["normal mean"], budget="0.01 s", random_seed=2, **SETTINGS)
    assert "is too small: what comes before the first chains" in str(found) and np.isnan(found.limit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "5"}, "budget must be a time as text with its unit"),
        ({"budget": 1.5}, "or a whole number of gradient evaluations above 0"),
        ({"budget": 1000, "n_temperatures": 8}, "goes with neither n_temperatures nor an array of betas"),
        ({"budget": 1000, "schedule": [0.0, 0.5, 1.0]}, "goes with neither n_temperatures nor an array of betas"),
    ],
)
def test_bad_budgets_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        bread.check(MODELS["normal mean"], **{**SETTINGS, **arguments})


def test_plan_keeps_nothing_and_needs_a_budget() -> None:
    with pytest.raises(InvalidArgumentError, match="takes budget= and no checkpoint="):
        bread.plan(MODELS["normal mean"], budget=1000, checkpoint="run", **SETTINGS)
    with pytest.raises(TypeError, match="unexpected keyword argument 'simulation'"):
        bread.plan(MODELS["normal mean"], budget=1000, simulation=3)
