"""The report: schema, round trips, partial results, names and coordinates that files refuse."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from bread.report import container as report
from bread.report.compat import make_container
from bread.running.state.results import OBSERVED
from bread.statistics.bounds import bounds, certificate
from bread.statistics.bounds.intervals import mean_interval
from tests.support.fake_results import SCHOOLS, constrain, fake_result
from tests.support.marks import slow_but

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz

IS_TREE = int(arviz.__version__.split(".")[0]) >= 1


def container(**changes):
    return report.to_container(fake_result(**changes), constrain)


def test_container_is_that_of_the_installed_arviz():
    made = container()
    assert isinstance(made, xr.DataTree) == IS_TREE
    if not IS_TREE:
        assert isinstance(made, arviz.InferenceData)


def test_what_was_done_to_draws_of_the_users_is_a_note():
    result = fake_result(posterior_shift=0.0)
    result.fit = replace(result.fit, notes=("posterior= has no 'z': it was computed.",))
    notes = json.loads(report.read_attributes(report.to_container(result, constrain))["notes"])
    assert notes[-1] == "posterior= has no 'z': it was computed." and len(notes) == 1 + len(result.info.identity.notes)


# Names of ours that xarray's datasets have methods or attributes of, so that `group.NAME` is not the variable.
KNOWN_HIDDEN = {("agreement", "quantile")}  # a dimension: xarray itself names it so in what Dataset.quantile returns


def hidden_names(made):
    """Return (group, name) of variables that an attribute of xarray's datasets hides, the model's own names apart."""
    groups = set(report.group_names(made)) - {
        "posterior", "approximate_posterior", "observed_data", "simulated_data", "constant_data",
        "ranked_paths", "prior_sbc", "fitted_sbc",
    }  # fmt: skip
    return {
        (group, str(name))
        for group in groups
        for name in report.read_group(made, group).variables
        if hasattr(xr.Dataset, str(name))
    }


def test_no_method_of_xarray_hides_a_variable():
    made = container(posterior_shift=0.0)
    assert hidden_names(made) == KNOWN_HIDDEN
    groups = {name: report.read_group(made, name) for name in report.group_names(made)}
    groups["agreement"] = groups["agreement"].rename({"mean_shift": "shift"})
    assert hidden_names(make_container(groups, {})) == KNOWN_HIDDEN | {("agreement", "shift")}


def test_schema_names_dimensions_and_types():
    made = container(posterior_shift=0.0)
    expected = {
        "forward", "reverse", "observed_forward", "bounds", "certificate", "by_data_set", "consistency", "fit", "alarm",
        "ranked_paths", "prior_sbc", "annealing_path", "kernel", "cost",
        "truth", "simulated_data", "approximate_posterior", "posterior", "agreement", "observed_data", "constant_data",
    }  # fmt: skip
    assert set(report.group_names(made)) == expected
    per_chain = ("n_temperatures", "simulation", "chain")
    for direction in ("forward", "reverse"):
        group = report.read_group(made, direction)
        for name in ("log_weight", "n_gradients", "n_evaluations", "n_divergences", "failure", "finished"):
            assert group[name].dims == per_chain
        assert group["n_gradients"].dtype == np.int64
        assert group["failure"].dtype == np.int64
        assert group["finished"].dtype == bool
        assert group["seconds"].dims == per_chain[:2]
    assert report.read_group(made, "observed_forward")["log_weight"].dims == ("n_temperatures", "chain")
    group = report.read_group(made, "bounds")
    for name in ("jeffreys", "jeffreys_raw", "kl_approx_exact", "kl_exact_approx", "jeffreys_resampled"):
        assert group[name].dims == ("n_temperatures",)
        assert group[f"{name}_ci"].dims == ("n_temperatures", "ci_bound")
    for name in ("jeffreys_reliable", "tail_index"):
        assert group[name].dims == ("n_temperatures",)
    errors = report.read_group(made, "certificate")
    for name in ("error", "error_raw", "error_limit_exact", "forms_difference", "forms_p_value"):
        assert errors[name].dims == ("n_temperatures",)
    assert errors["error_ci"].dims == ("n_temperatures", "ci_bound")
    for name in ("error_by_simulation", "error_raw_by_simulation"):
        assert errors[name].dims == ("n_temperatures", "simulation")
    for name in ("error", "jeffreys"):
        assert report.read_group(made, "by_data_set")[name].dims == ("chain", "draw")
    for name in ("lower", "upper", "lower_many", "upper_many"):
        assert group[f"log_evidence_{name}"].dims == ("n_temperatures", "simulation")
    assert report.read_group(made, "annealing_path")["log_ratio"].dims == ("direction", "simulation", "chain", "knot")
    assert report.read_group(made, "annealing_path")["inverse_temperature"].dims == ("knot",)
    alarm = report.read_group(made, "alarm")
    assert alarm["weighted_rank"].dims == ("simulation", "function")
    assert alarm["e_value"].dims == alarm["p_value"].dims == ()
    assert alarm["crooks_slope_ci"].dims == ("ci_bound",)
    assert report.read_group(made, "consistency")["p_value"].dims == ()


def test_model_names_dims_and_coords_survive():
    made = container()
    assert report.read_group(made, "truth")["theta"].dims == ("simulation", "school")
    assert report.read_group(made, "simulated_data")["y"].dims == ("simulation", "school", "day")
    assert report.read_group(made, "approximate_posterior")["theta"].dims == ("simulation", "chain", "school")
    assert report.read_group(made, "posterior")["theta"].dims == ("chain", "draw", "school")
    assert report.read_group(made, "constant_data")["sigma"].dims == ("school",)
    assert list(report.read_group(made, "posterior")["school"].values) == list(SCHOOLS)
    assert list(report.read_group(made, "observed_data")["day"].values) == ["2024-01-01", "2024-01-02"]
    assert report.read_group(made, "truth")["kind"].dtype == np.int64


def test_values_are_those_of_the_runs():
    result = fake_result()
    made = report.to_container(result, constrain)
    forward = report.read_group(made, "forward")
    run = result.runs[30, "forward", 32]
    at = forward.sel(n_temperatures=32, simulation=30)
    np.testing.assert_array_equal(at["log_weight"].values, run.log_weight)
    np.testing.assert_array_equal(at["n_gradients"].values, run.n_gradients)
    np.testing.assert_array_equal(at["inverse_temperature"].values[:32], result.schedules[32])
    assert np.isnan(at["inverse_temperature"].values[32:]).all()
    path = report.read_group(made, "annealing_path")
    np.testing.assert_array_equal(
        path["log_ratio"].sel(direction="reverse", simulation=7).values, result.runs[7, "reverse", 64].log_ratio
    )
    ends = report.read_group(made, "approximate_posterior")["theta"].sel(simulation=7).values
    np.testing.assert_array_equal(ends, result.runs[7, "forward", 64].state_at_end[:, 2:5])
    draws = report.read_group(made, "posterior")["mu"].values
    np.testing.assert_array_equal(draws.ravel(), result.observed_draws[:, 0])


def test_final_bounds_come_from_confirming_simulations_only():
    result = fake_result()
    made = report.read_group(report.to_container(result, constrain), "bounds")
    confirm = result.indices("confirm")
    forward, reverse = (result.log_weights(direction, 64, confirm) for direction in ("forward", "reverse"))
    expected = bounds.jeffreys_bound(forward, reverse, 0.95)
    here = made.sel(n_temperatures=64)
    np.testing.assert_allclose([float(here["jeffreys_raw"]), *here["jeffreys_raw_ci"].values], expected)
    gaps = certificate.conditional_gaps(forward, reverse)
    np.testing.assert_allclose([float(here["jeffreys"]), *here["jeffreys_ci"].values], mean_interval(gaps, 0.95))
    assert list(made["role_used"].values) == ["search", "search", "confirm"]
    np.testing.assert_array_equal(np.flatnonzero(here["used"].values), confirm)
    np.testing.assert_array_equal(np.flatnonzero(made.sel(n_temperatures=16)["used"].values), result.indices("search"))
    everyone = np.concatenate([result.indices("search"), confirm])
    pooled = bounds.jeffreys_bound(
        result.log_weights("forward", 64, everyone), result.log_weights("reverse", 64, everyone), 0.95
    )
    assert pooled.estimate != pytest.approx(expected.estimate, abs=1e-6)  # the control: pooling would show


@pytest.mark.statistical
def test_bounds_recover_the_gaussian_work_model():
    # B = 0.4; D_r has variance 2 * 0.4 / 4 = 0.2, so 400 simulations give a standard error of 0.022: 4 of them.
    made = report.read_group(
        container(gap=0.4, n_confirm=400, n_forward=0, n_search=0, temperatures=(8,), n_draws=0), "bounds"
    )
    assert abs(float(made["jeffreys"][0]) - 0.4) < 4 * np.sqrt(0.2 / 400)
    assert abs(float(made["jeffreys"][0]) - 0.8) > 4 * np.sqrt(0.2 / 400)  # control: twice the gap is rejected
    assert bool(made["jeffreys_reliable"][0])
    assert 0.0 < float(made["kl_exact_approx"][0]) < float(made["jeffreys"][0])


@pytest.mark.statistical
def test_weighted_ranks_are_uniform_and_rejected_for_a_wrong_exact_draw():
    result = fake_result(seed=5, n_confirm=60, n_forward=0)
    right = report.read_group(report.to_container(result, constrain), "alarm")
    assert float(right["weighted_rank_p_value_combined"]) > 0.001
    for index in result.indices("confirm"):
        run = result.runs[int(index), "reverse", 64]
        wrong = run.state_at_end.copy()
        wrong[:, 0] += 2.0  # reverse chains start from a shifted mu
        result.runs[int(index), "reverse", 64] = replace(run, state_at_end=wrong)
    alarm = report.read_group(report.to_container(result, constrain), "alarm")
    assert float(alarm["weighted_rank_p_value_combined"]) < 1e-6
    assert str(alarm["function"].values[int(np.argmin(alarm["weighted_rank_p_value"].values))]) == "mu (beta=1)"


def test_data_sets_at_draws_of_slow_chains_count_for_what_these_are_worth():
    """Every state of the fit is held for eight steps: some 100 of 800 draws, and 26 simulations taken from them."""
    groups = {}
    for protocol in ("prior", "posterior"):
        result = fake_result(simulate_from=protocol, posterior_shift=0.0)
        draws = {name: np.repeat(values[:, ::8], 8, axis=1) for name, values in result.fit.draws.items()}
        result.fit = replace(result.fit, draws=draws)
        groups[protocol] = report.read_group(report.to_container(result, constrain), "alarm")
    slow, exact = groups["posterior"], groups["prior"]
    np.testing.assert_array_equal(slow["weighted_rank"].values, exact["weighted_rank"].values)
    assert float(exact["effective_share"]) == 1.0 and 0.7 < float(slow["effective_share"]) < 0.9
    assert (slow["weighted_rank_p_value"] > exact["weighted_rank_p_value"]).all()


def test_ranks_depend_on_the_seed_alone_and_not_on_who_else_finished():
    result = fake_result()
    first = report.read_group(report.to_container(result, constrain), "alarm")["weighted_rank"]
    again = report.read_group(report.to_container(result, constrain), "alarm")["weighted_rank"]
    xr.testing.assert_equal(first, again)
    for missing in (20, 8):
        del result.runs[missing, "reverse", 64]
        fewer = report.read_group(report.to_container(result, constrain), "alarm")["weighted_rank"]
        xr.testing.assert_equal(fewer, first.sel(simulation=fewer["simulation"]))
        assert list(fewer["simulation"].values) == list(range(missing))  # those behind it may be there for their speed


def test_random_state_of_numpy_is_untouched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    container()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_consistency_uses_confirming_and_forward_simulations():
    result = fake_result()
    group = report.read_group(report.to_container(result, constrain), "consistency")
    assert list(group["simulation"].values) == list(range(6, 45))
    assert list(group["n_temperatures"].values) == [16, 32, 64]
    del result.runs[40, "forward", 32]
    group = report.read_group(report.to_container(result, constrain), "consistency")
    assert list(group["n_temperatures"].values) == [16, 64]


@pytest.mark.statistical
def test_consistency_notices_harder_data_and_only_those():
    assert float(report.read_group(container(observed_extra=8.0), "consistency")["p_value"]) < 0.05
    hard = report.read_group(container(observed_extra=8.0), "consistency")
    assert float(hard["effect"][0]) == pytest.approx(16.0, abs=3.0)  # 2 halvings of 8 nats; curves scatter by 0.8
    assert float(report.read_group(container(), "consistency")["p_value"]) > 0.05


@pytest.mark.statistical
def test_one_wild_chain_a_data_set_does_not_hide_harder_data():
    """A chain in four at -1e4 in a third of the simulated data sets: their means are lower than the real data's."""
    for observed_extra, is_noticed in ((8.0, True), (0.0, False)):
        result = fake_result(observed_extra=observed_extra)
        for simulation in range(6, 45, 3):
            for n_temperatures in (16, 32):
                result.runs[simulation, "forward", n_temperatures].log_weight[0] -= 1e4
        group = report.read_group(report.to_container(result, constrain), "consistency")
        assert (float(group["p_value"]) < 0.05) == is_noticed


@pytest.mark.parametrize("n_kept", slow_but([7], [1, 2, 7, 40, 111, 150]))
def test_interrupted_anywhere_is_a_valid_report(n_kept, tmp_path):
    result = fake_result()
    for key in list(result.runs)[n_kept:]:
        del result.runs[key]
    result.is_interrupted = True
    made = report.to_container(result, constrain)
    forward = report.read_group(made, "forward")
    finished = forward["finished"].values
    assert np.isnan(forward["log_weight"].values[~finished]).all()
    assert (forward["n_gradients"].values[~finished] == -1).all()
    assert finished.any() and not finished.all()
    n_runs = sum(key[0] != OBSERVED and key[1] == "forward" for key in result.runs)
    assert finished.all(axis=-1).sum() == n_runs
    made.to_netcdf(str(tmp_path / "report.nc"))


def test_a_group_that_cannot_be_built_costs_no_other():
    def broken(states):
        raise RuntimeError("no such thing")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = report.to_container(fake_result(), broken)
    assert any("lacks 'posterior': RuntimeError: no such thing" in str(warning.message) for warning in caught)
    assert report.read_group(made, "posterior") is None
    assert report.read_group(made, "bounds") is not None
    assert "no such thing" in report.read_attributes(made)["warnings"]


def test_without_constrain_states_are_left_out():
    made = report.to_container(fake_result())
    assert report.read_group(made, "posterior") is None
    assert report.read_group(made, "truth") is not None


def test_posterior_whose_number_is_no_multiple_of_the_chains():
    assert report.read_group(container(n_draws=101), "posterior")["mu"].shape == (1, 101)
    assert report.read_group(container(n_draws=0), "posterior") is None


def test_az_summary_works_on_the_report():
    table = arviz.summary(container())
    assert {"mu", "tau", "theta[Choate]"} <= set(table.index)


def test_kernels_of_their_own_per_data_set():
    result = fake_result()
    shared = result.kernels.pop(-2)
    result.kernels = {OBSERVED: shared, 0: shared, 3: replace(shared, betas=shared.betas[:2], settings={})}
    group = report.read_group(report.to_container(result, constrain), "kernel")
    assert list(group["data_set"].values) == ["observed", "0", "3"]
    assert group["inverse_metric"].dims == ("data_set", "knot", "coordinate")
    assert list(group["coordinate"].values) == list(result.info.layout.coordinates)
    assert np.isnan(group["step_size"].sel(data_set="3").values).all()
    assert np.isnan(group["inverse_temperature"].sel(data_set="3").values[2:]).all()


def test_kernels_are_in_the_order_of_data_sets_whichever_finished_first():
    result, other = fake_result(), fake_result()
    shared = result.kernels[-2]
    other_kernel = replace(shared, settings={name: 2.0 * values for name, values in shared.settings.items()})
    result.kernels = {4: shared, OBSERVED: shared, 0: other_kernel, -2: shared}
    other.kernels = {-2: shared, 0: other_kernel, OBSERVED: shared, 4: shared}
    one, two = (report.read_group(report.to_container(each, constrain), "kernel") for each in (result, other))
    assert list(one["data_set"].values) == ["shared", "observed", "0", "4"]
    xr.testing.assert_identical(one, two)


def test_groups_of_either_kind_can_be_read():
    groups = {"bounds": xr.Dataset({"a": ("x", [1.0])})}
    tree = xr.DataTree.from_dict(groups)
    for made in (tree, make_container(groups, {"seed": 1})):
        assert report.group_names(made) == ("bounds",)
        assert report.read_group(made, "bounds")["a"].values == 1.0
        assert report.read_group(made, "alarm") is None
