"""`stan_models/real_data.py`: curves with quartiles, bounds, and a figure."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "stan_models" / "real_data.py"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.pymc
def test_a_quick_run_in_pymc(tmp_path: Path) -> None:
    """A made-up series of 12 prices: every curve at every T, its quartiles in order, and a bound at every T."""
    prices = tmp_path / "prices.csv"
    prices.write_text("price\n" + "".join(f"{100 + (7 * i) % 5}\n" for i in range(12)), encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "time_series", "--quick", "--ppl", "pymc", "--cores", "1"]
    done = subprocess.run(
        [*command, "--csv", str(prices), "--output", str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert "level: the log evidence of" in done.stdout and "reverse at S = 2 less S = 20" in done.stdout
    curves = rows_of(tmp_path / "real_data_time_series.csv")
    found = {(row["curve"], row["S"], int(row["n_temperatures"])) for row in curves}
    kinds = [
        ("real, forward", ""),
        ("simulated, forward", ""),
        ("simulated, reverse", "2"),
        ("simulated, reverse", "20"),
    ]
    assert found == {(*kind, n) for kind in kinds for n in (4, 16)} and len(curves) == len(found)
    for row in curves:
        low, middle, high = (float(row[name]) for name in ("lower_quartile", "median", "upper_quartile"))
        assert low <= middle <= high
        assert high <= 0 or "forward" not in row["curve"]  # the largest forward log weight is 0
    bounds = rows_of(tmp_path / "real_data_time_series_bounds.csv")
    assert [int(row["T"]) for row in bounds] == [4, 16]
    assert all(float(row["lower"]) <= float(row["B"]) <= float(row["upper"]) for row in bounds)
    assert (tmp_path / "real_data_time_series.png").stat().st_size > 10_000


@pytest.mark.slow
def test_too_few_ratings_end_the_script_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "u.data"
    path.write_text("1\t2\t3\t4\n", encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "movielens", "--csv", str(path), "--output", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "error: The ratings are of 1 users; the model takes the 50 with most ratings. Give a file with at least 50 "
        "users, such as MovieLens 100k's u.data."
    )
