"""Quantities that are added to a report: what was asked for at the check and what is computed after it are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bread
from bread.errors import InvalidArgumentError
from bread.report import container as report
from bread.report.compat import make_container
from tests.support.fake_results import constrain, draw_states, fake_result
from tests.support.reports import assert_same_report

SMALL: dict[str, Any] = {"temperatures": (16, 64), "n_forward": 0}
ALONE = {name: (lambda p, name=name: p[name]) for name in ("mu", "tau", "kind")}


def own_draws(seed: int, **changes: Any) -> dict[str, np.ndarray]:
    """Four chains of 300 draws from the law of the certified ones."""
    states = draw_states(np.random.default_rng(seed), 1200)
    values = constrain(states) | changes
    return {name: array.reshape(4, 300, *array.shape[1:]) for name, array in values.items()}


@pytest.fixture(scope="module")
def result() -> Any:
    return fake_result(gap=0.01, posterior_shift=0.4, **SMALL)


@pytest.fixture(scope="module")
def made(result: Any) -> Any:
    return report.to_container(result, constrain)


def test_ranks_are_bit_equal_to_those_of_the_check(made: Any, tmp_path: Any) -> None:
    """Two continuous parameters and one with ties; alone, together, and from a file."""
    expected = report.read_group(made, "prior_sbc")
    made.to_netcdf(str(tmp_path / "report.nc"))
    for source in (made, tmp_path / "report.nc"):
        added = bread.add_quantities(source, ALONE)
        ranks = report.read_group(added, "quantities")["weighted_rank"]
        for name in ALONE:
            np.testing.assert_array_equal(ranks.sel(quantity=name).values, expected[name].values[0])
        alone = bread.add_quantities(source, {"kind": ALONE["kind"]})
        single = report.read_group(alone, "quantities")["weighted_rank"].sel(quantity="kind")
        np.testing.assert_array_equal(single.values, expected["kind"].values[0])
    other = bread.add_quantities(made, {"mu": lambda p: -p["mu"]})  # negative control
    assert (report.read_group(other, "quantities")["weighted_rank"].values[:, 0] != expected["mu"].values[0]).all()


def test_nothing_else_of_the_report_changes(made: Any) -> None:
    added = bread.add_quantities(made, ALONE)
    groups = {name: report.read_group(added, name) for name in report.group_names(added) if name != "quantities"}
    assert_same_report(make_container(groups, report.read_attributes(added)), made)
    assert report.read_attributes(added) == report.read_attributes(made)
    annealed = report.read_group(added, "quantities")["annealed"].sel(quantity="tau")
    np.testing.assert_array_equal(annealed.values, report.read_group(made, "posterior")["tau"].values)


def test_contents_and_shifts_are_bit_equal_to_those_of_the_check(result: Any, made: Any) -> None:
    """Only what is adjusted for the number of comparisons may differ."""
    expected = report.read_group(made, "agreement").sel(parameter=list(ALONE))
    added = bread.add_quantities(made, ALONE, posterior=result.fit.draws)
    found = report.read_group(added, "quantity_agreement")
    for name in (
        "fit_quantile", "interval_content", "central_content", "mean_shift", "mean_shift_error", "sd_ratio",
        "cdf_difference", "n_effective_quantile", "fit_cdf", "annealed_cdf",
    ):  # fmt: skip
        np.testing.assert_array_equal(found[name].values, expected[name].values, err_msg=name)
    for name in ("error", "n_annealed", "n_draws", "n_dropped", "n_zero", "source"):
        assert found.attrs[name] == report.read_group(made, "agreement").attrs[name]
    assert float(found["mean_shift"].sel(parameter="mu")) == pytest.approx(0.4, abs=0.2)


def test_a_quantity_of_the_data_sees_what_no_parameter_does() -> None:
    """The exact mu has the sign of the first outcome: its law is the right one, its law given the data is not."""
    result = fake_result(gap=0.01, **SMALL)
    for (simulation, direction, number), run in list(result.runs.items()):
        if direction == "reverse":
            states = run.state_at_end.copy()
            states[:, 0] = np.abs(states[:, 0]) * np.sign(result.simulations.data["y"][simulation, 0, 0])
            result.runs[simulation, direction, number] = replace(run, state_at_end=states)
    made = report.to_container(result, constrain)
    assert bread.verdict(made).status == "converged"
    blind = bread.verdict(bread.add_quantities(made, {"mu": ALONE["mu"]}))
    assert blind.status == "converged" and blind.quantity_p_value > 0.01
    assert "1 added quantity (mu)" in blind.details
    seeing = bread.add_quantities(made, {"mu": ALONE["mu"], "aligned": lambda p, data: p["mu"] * data["y"][0, 0]})
    verdict = bread.verdict(seeing)
    assert verdict.status == "bug" and verdict.quantity_p_value < 1e-4 and verdict.rank_p_value > 0.01
    assert "the quantity aligned, which was added after the check" in verdict.details
    p_values = report.read_group(seeing, "quantities")["weighted_rank_p_value"].values
    assert verdict.quantity_p_value == pytest.approx(2 * p_values.min())


def test_near_the_fit_it_is_a_diagnostic_and_no_bug() -> None:
    result = fake_result(gap=0.01, simulate_from="fitted", **SMALL)
    for key, run in list(result.runs.items()):
        if key[1] == "reverse":
            result.runs[key] = replace(run, state_at_end=np.abs(run.state_at_end))
    added = bread.add_quantities(report.to_container(result, constrain), {"size of mu": lambda p: p["mu"]})
    verdict = bread.verdict(added)
    assert verdict.status != "bug" and verdict.quantity_p_value < 0.001
    assert "not to have forgotten their start" in verdict.details


@pytest.mark.parametrize("wrong", [False, True])
def test_own_draws_that_are_wrong_together_disagree(wrong: bool) -> None:
    """Marginal laws are right; in the wrong draws theta[0] and theta[1] are one number, in the right independent."""
    made = report.to_container(fake_result(gap=0.001, **SMALL), constrain)
    states = draw_states(np.random.default_rng(3), 1200)
    if wrong:
        states[:, 3] = states[:, 2]
    own = own_draws(3, theta=states[:, 2:5])
    added = bread.add_quantities(made, {"gap": lambda p: p["theta"][0] - p["theta"][1]}, posterior=own)
    verdict = bread.verdict(added)
    assert verdict.status == ("disagreement" if wrong else "converged")
    assert (
        "interval of gap holds" if wrong else "Your 90% intervals of 1 added quantity (gap) hold 0."
    ) in verdict.details


def test_paths_of_weight_zero_are_not_asked_and_failed_chains_are_left_out() -> None:
    result = fake_result(**SMALL)
    zero, failed = (6, "forward", 64), (7, "forward", 64)
    for key, value in ((zero, -np.inf), (failed, np.nan)):
        run = result.runs[key]
        log_weight, states = run.log_weight.copy(), run.state_at_end.copy()
        log_weight[1], states[1] = value, np.nan
        result.runs[key] = replace(run, log_weight=log_weight, state_at_end=states)
    made = report.to_container(result, constrain)
    seen: list[float] = []
    added = bread.add_quantities(made, {"mu": lambda p: seen.append(float(p["mu"])) or p["mu"]})
    group = report.read_group(added, "quantities")
    assert group.attrs["n_excluded"] == 1 and 7 not in group["simulation"].values
    assert np.isfinite(seen).all() and np.isfinite(group["weighted_rank"].values).all()
    assert np.isnan(group["value"].sel(simulation=6).values[:, 0]).tolist() == [False, False, True, False, False]
    np.testing.assert_array_equal(
        group["weighted_rank"].values[:, 0], report.read_group(made, "prior_sbc")["mu"].values[0]
    )


def test_infinite_values_have_ranks() -> None:
    made = report.to_container(fake_result(**SMALL), constrain)
    added = bread.add_quantities(made, {"split": lambda p: np.inf if p["mu"] > 0 else -np.inf})
    assert np.isfinite(report.read_group(added, "quantities")["weighted_rank"].values).all()
    with pytest.raises(InvalidArgumentError, match="infinite"):
        bread.add_quantities(made, {"split": lambda p: np.inf if p["mu"] > 0 else 0.0}, posterior=own_draws(1))


def grow(p: Any) -> None:
    p["theta"][0] = 1.0


@pytest.mark.parametrize(
    ("quantities", "words"),
    [
        ({}, "an empty one"),
        ([abs], "got list"),
        ({"a": 3}, "must be a function, got int"),
        ({1: abs}, "named by text"),
        ({"a": lambda: 1.0}, "takes"),
        ({"a": lambda p, data, rng: 1.0}, "takes"),
        ({"a": lambda p: p["nu"]}, "KeyError.*Parameters: mu, tau, theta, kind"),
        ({"a": lambda p: p["theta"]}, r"an array of shape \(3,\)"),
        ({"a": lambda p: np.nan}, "is NaN at a draw of simulation 0"),
        ({"a": lambda p: "much"}, "returned 'much'"),
        ({"a": grow}, "read-only"),
    ],
)
def test_what_is_no_quantity_is_refused(made: Any, quantities: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        bread.add_quantities(made, quantities)


def test_reports_without_what_is_needed_are_refused(made: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="quantities already: mu"):
        bread.add_quantities(bread.add_quantities(made, {"mu": ALONE["mu"]}), {"tau": ALONE["tau"]})
    groups = {name: report.read_group(made, name) for name in report.group_names(made)}
    attributes = report.read_attributes(made)

    def without(*names: str) -> Any:
        return make_container({name: groups[name] for name in groups if name not in names}, attributes)

    with pytest.raises(InvalidArgumentError, match="older version"):
        bread.add_quantities(without("ranked_paths"), ALONE)
    with pytest.raises(InvalidArgumentError, match="no simulated data set was annealed both ways"):
        bread.add_quantities(without("ranked_paths", "alarm"), ALONE)
    with pytest.raises(InvalidArgumentError, match="none of bread.check"):
        bread.add_quantities(without("ranked_paths", "forward"), ALONE)
    with pytest.raises(InvalidArgumentError, match="does not keep"):
        bread.add_quantities(without("posterior"), ALONE, posterior=own_draws(1))
    with pytest.raises(InvalidArgumentError, match="none of the variables"):
        bread.add_quantities(made, ALONE, posterior={"nu": np.zeros((2, 100))})
    localised = make_container(groups, attributes | {"simulate_from": "localised"})
    with pytest.raises(InvalidArgumentError, match="another prior"):
        bread.add_quantities(localised, ALONE, posterior=own_draws(1))


def test_own_draws_come_as_arviz_has_them(made: Any, result: Any) -> None:
    labels = np.array(["Choate", "Deerfield", "Exeter"])
    variables = {
        name: (("chain", "draw", "school")[: values.ndim], values) for name, values in result.fit.draws.items()
    }
    own = xr.Dataset(variables, coords={"school": labels})
    wrapped = make_container({"posterior": own}, {})
    found, expected = (
        report.read_group(bread.add_quantities(made, ALONE, posterior=one), "quantity_agreement")
        for one in (wrapped, result.fit.draws)
    )
    assert found.identical(expected)
    with pytest.raises(InvalidArgumentError, match="coordinates"):
        bread.add_quantities(made, ALONE, posterior=own.assign_coords(school=labels[::-1]))
    with pytest.raises(InvalidArgumentError, match="comes from Bambi's fit, which moves intercepts"):
        bread.add_quantities(made, ALONE, posterior=own.assign_attrs(modeling_interface="bambi"))


def test_the_file_of_a_report_with_quantities_comes_back(made: Any, result: Any, tmp_path: Any) -> None:
    added = bread.add_quantities(made, ALONE, posterior=result.fit.draws)
    added.to_netcdf(str(tmp_path / "report.nc"))
    assert bread.verdict(tmp_path / "report.nc") == bread.verdict(added)
