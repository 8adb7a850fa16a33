"""The table: one row per number of temperatures, rounded, complete for interrupted checks too."""

import numpy as np
import pandas as pd

import bread
from bread.backends.base import Failure
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result


def test_one_row_per_number_of_temperatures():
    made = report.to_container(fake_result(), constrain)
    table = bread.summary(made, kind="bounds")
    assert isinstance(table, pd.DataFrame)
    assert list(table.index) == [16, 32, 64]
    assert table.index.name == "n_temperatures"
    assert list(table["role"]) == ["search", "search", "confirm"]
    assert list(table["n_simulations"]) == [6, 6, 20]
    assert table["reliable"].dtype == bool
    assert (table["lower"] <= table["jeffreys"]).all() and (table["jeffreys"] <= table["upper"]).all()
    assert not table.attrs


def test_numbers_are_those_of_the_report_to_three_digits():
    made = report.to_container(fake_result(), constrain)
    table = bread.summary(made, kind="bounds")
    bounds = report.read_group(made, "bounds")
    np.testing.assert_allclose(table["jeffreys"], bounds["jeffreys"].values, rtol=5e-3)
    np.testing.assert_allclose(table["upper"], bounds["jeffreys_ci"].sel(ci_bound="upper").values, rtol=5e-3)
    assert all(len(f"{value:.10g}".replace(".", "").lstrip("0")) <= 3 for value in table["jeffreys"])


def test_costs_are_sums_over_every_chain_real_data_included():
    result = fake_result()
    table = bread.summary(report.to_container(result, constrain), kind="bounds")
    for n_temperatures in (16, 64):
        runs = [run for key, run in result.runs.items() if key[2] == n_temperatures]
        assert table.loc[n_temperatures, "n_gradients"] == sum(int(run.n_gradients.sum()) for run in runs)
        assert table.loc[n_temperatures, "n_evaluations"] == sum(int(run.n_evaluations.sum()) for run in runs)
        assert table.loc[n_temperatures, "n_divergences"] == sum(int(run.n_divergences.sum()) for run in runs)
        assert abs(table.loc[n_temperatures, "seconds"] - sum(run.seconds for run in runs)) < 0.01


def test_failures_are_counted():
    result = fake_result()
    result.runs[7, "forward", 64].failure[:2] = Failure.ZERO_RATIO
    table = bread.summary(report.to_container(result, constrain), kind="bounds")
    assert list(table["n_failures"]) == [0, 0, 2]


def test_unfinished_runs_count_nothing():
    result = fake_result()
    for key in list(result.runs)[3:]:
        del result.runs[key]
    table = bread.summary(report.to_container(result, constrain), kind="bounds")
    assert (table["n_gradients"] >= 0).all()
    assert table["n_gradients"].sum() == 3 * 4 * 160
    assert table["jeffreys"].notna().sum() == 1


def test_empty_report():
    result = fake_result()
    result.runs.clear()
    result.roles.clear()
    result.schedules.clear()
    table = bread.summary(report.to_container(result, constrain), kind="bounds")
    assert table.empty and table.index.name == "n_temperatures"
