"""Ranks of parameters in the groups that ArviZ's plots read, and the draws that they are ranks of."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kstest, uniform

from bread.report import container as report
from bread.seeds import Purpose, named_seed
from tests.support.fake_results import constrain, fake_result, shift_reverse_starts
from tests.support.marks import slow_but

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

SMALL: dict[str, Any] = {"temperatures": (16, 64), "n_forward": 0, "n_draws": 0}


@pytest.fixture(scope="module")
def result() -> Any:
    return fake_result(gap=0.5, **SMALL)


@pytest.fixture(scope="module")
def made(result: Any) -> Any:
    return report.to_container(result, constrain)


def test_ranks_are_those_of_the_formula(result: Any, made: Any) -> None:
    """By loops over paths, with the random numbers that their seeds give."""
    ranks = report.read_group(made, "prior_sbc")
    alarm = report.read_group(made, "alarm")
    for column, (simulation, number) in enumerate(
        zip(alarm["simulation"].values, alarm["ranked_at"].values, strict=True)
    ):
        forward, reverse = (result.runs[simulation, way, number] for way in ("forward", "reverse"))
        states = np.vstack([reverse.state_at_end[0], forward.state_at_end])
        weights = np.exp(np.append(reverse.log_weight[0], forward.log_weight) - reverse.log_weight[0])
        weights /= weights.sum()
        for name, values in constrain(states).items():
            v = np.random.default_rng(named_seed(1, Purpose.RANK, int(simulation), name)).random(values[0].size)
            for place in np.ndindex(values.shape[1:]):
                h = values[(slice(None), *place)]
                tied = weights[h == h[0]].sum()
                expected = weights[h < h[0]].sum() + v[place[0] if place else 0] * tied
                assert float(ranks[name].values[(0, column, *place)]) == pytest.approx(expected, abs=1e-12)


def test_the_draws_that_are_ranked_are_kept_with_their_weights(result: Any, made: Any) -> None:
    paths, alarm = report.read_group(made, "ranked_paths"), report.read_group(made, "alarm")
    assert paths.sizes["ranked_path"] == 1 + result.n_chains
    assert (paths["simulation"].values == alarm["simulation"].values).all()
    row = int(np.flatnonzero(alarm["ranked_at"].values == 64)[0])
    simulation = int(alarm["simulation"].values[row])
    forward = result.runs[simulation, "forward", 64]
    np.testing.assert_array_equal(paths["theta"].values[row, 1:], forward.state_at_end[:, 2:5])
    np.testing.assert_array_equal(alarm["ranked_log_weight"].values[row, 1:], forward.log_weight)
    assert alarm["ranked_log_weight"].values[row, 0] == result.runs[simulation, "reverse", 64].log_weight[0]


def test_ranks_are_uniform_and_those_of_a_wrong_start_are_not(result: Any, made: Any) -> None:
    """26 ranks of each of five continuous parameters; the smallest p-value of the right ones is above 0.01 / 5."""
    right = report.read_group(made, "prior_sbc")
    columns = [right["mu"].values, right["tau"].values, *np.moveaxis(right["theta"].values, -1, 0)]
    assert min(kstest(column.ravel(), uniform.cdf).pvalue for column in columns) > 0.01
    wrong = report.read_group(
        report.to_container(shift_reverse_starts(fake_result(gap=0.02, **SMALL)), constrain), "prior_sbc"
    )
    assert kstest(wrong["mu"].values.ravel(), uniform.cdf).pvalue < 1e-6  # 20 of 26 exact draws moved by 3 sd
    assert kstest(wrong["tau"].values.ravel(), uniform.cdf).pvalue > 0.001


def test_a_chain_of_weight_zero_has_no_say_wherever_it_ended() -> None:
    result = fake_result(**SMALL)
    key = (6, "forward", 64)
    run = result.runs[key]
    log_weight = run.log_weight.copy()
    log_weight[2] = -np.inf
    ranks = []
    for value in (np.nan, -30.0, 30.0):
        states = run.state_at_end.copy()
        states[2] = value
        result.runs[key] = replace(run, log_weight=log_weight, state_at_end=states)
        ranks.append(report.read_group(report.to_container(result, constrain), "prior_sbc")["mu"].values)
    assert np.isfinite(ranks[0]).all()
    np.testing.assert_array_equal(ranks[0], ranks[1])
    np.testing.assert_array_equal(ranks[0], ranks[2])
    result.runs[key] = replace(run, state_at_end=states)  # the same end with its weight counts
    other = report.read_group(report.to_container(result, constrain), "prior_sbc")["mu"].values
    assert (other != ranks[0]).sum() == 1


@pytest.mark.parametrize(
    ("simulate_from", "group", "meaning"),
    [
        ("fitted", "fitted_sbc", "diagnostic of init_steps, or a bug"),
        ("posterior", "posterior_sbc", "exact test of the draws that data were simulated at"),
    ],
)
def test_near_the_fit_the_group_has_another_name_and_says_what_it_is(simulate_from, group, meaning) -> None:
    made = report.to_container(fake_result(simulate_from=simulate_from, **SMALL), constrain)
    assert [name for name in report.group_names(made) if name.endswith("_sbc")] == [group]
    assert report.read_group(made, group).attrs["meaning"] == meaning


@pytest.mark.parametrize("kind", slow_but(("finished",), ["finished", "interrupted", "fitted", "no draws"]))
def test_arviz_opens_the_file_of_every_kind_of_report(kind: str, tmp_path: Any) -> None:
    result = fake_result(simulate_from="fitted" if kind == "fitted" else "prior", **SMALL)
    if kind == "interrupted":
        result.is_interrupted = True
        for key in [key for key in result.runs if key[2] == 64 and key[0] > 8]:
            del result.runs[key]
    made = report.to_container(result, None if kind == "no draws" else constrain)
    made.to_netcdf(str(tmp_path / "report.nc"))
    again = arviz.from_netcdf(str(tmp_path / "report.nc"))
    assert type(again) is type(made) and set(report.group_names(again)) == set(report.group_names(made))
    for name in report.group_names(made):
        xr.testing.assert_identical(
            report.read_group(made, name).drop_attrs(), report.read_group(again, name).load().drop_attrs()
        )
    assert ("prior_sbc" in report.group_names(again)) == (kind in ("finished", "interrupted"))
