"""Bounds and certificates of a report: which simulations they come from, and what makes them infinite."""

from dataclasses import replace

import numpy as np
import pytest

from bread.backends.base import Failure
from bread.report import container as report
from bread.statistics.bounds import certificate
from bread.statistics.bounds.betting import betting_upper_limit
from tests.support.fake_results import constrain, fake_result


def container(**changes):
    return report.to_container(fake_result(**changes), constrain)


def test_only_searched_reports_the_search_and_says_so():
    result = fake_result()
    for key in list(result.runs):
        if result.roles[key[0]] != "search":
            del result.runs[key]
    group = report.read_group(report.to_container(result, constrain), "bounds")
    assert set(group["role_used"].values) == {"search"}
    assert np.isfinite(group["jeffreys"].values).all()


def test_the_certificate_is_of_the_confirming_simulations():
    result = fake_result()
    confirm = result.indices("confirm")
    forward, reverse = (result.log_weights(direction, 64, confirm) for direction in ("forward", "reverse"))
    errors = certificate.error_by_simulation(forward, reverse)
    made = report.read_group(report.to_container(result, constrain), "certificate").sel(n_temperatures=64)
    expected = certificate.error_interval(errors, 0.95)
    np.testing.assert_allclose([float(made["error"]), *made["error_ci"].values], expected)
    assert float(made["error_limit_exact"]) == pytest.approx(betting_upper_limit(errors, 0.95))
    raw = certificate.raw_error_by_simulation(forward, reverse)
    assert float(made["error_raw"]) == pytest.approx(raw.mean()) != pytest.approx(errors.mean())
    np.testing.assert_allclose(made["error_by_simulation"].values[confirm], errors)
    assert np.isnan(made["error_by_simulation"].values[result.indices("search")]).sum() == 0
    assert np.isnan(made["error_by_simulation"].values[result.indices("forward")]).all()


def test_a_zero_forward_weight_makes_the_bound_infinite():
    result = fake_result()
    run = result.runs[8, "forward", 64]
    log_weight, failure = run.log_weight.copy(), run.failure.copy()
    log_weight[1], failure[1] = -np.inf, Failure.ZERO_RATIO
    result.runs[8, "forward", 64] = replace(run, log_weight=log_weight, failure=failure)
    group = report.read_group(report.to_container(result, constrain), "bounds").sel(n_temperatures=64)
    assert np.isposinf(group["jeffreys"])
    assert np.isfinite(group["kl_exact_approx"])
    assert not bool(group["jeffreys_reliable"])
    assert np.isposinf(group["jeffreys_raw"])


def test_a_failed_chain_leaves_no_bound_and_is_never_dropped():
    result = fake_result()
    run = result.runs[8, "forward", 64]
    log_weight, states = run.log_weight.copy(), run.state_at_end.copy()
    log_weight[1], states[1] = np.nan, np.nan
    failure = np.array([0, Failure.NAN, 0, 0])
    result.runs[8, "forward", 64] = replace(run, log_weight=log_weight, failure=failure, state_at_end=states)
    made = report.to_container(result, constrain)
    here = report.read_group(made, "bounds").sel(n_temperatures=64)
    assert np.isnan(here["jeffreys"])
    errors = report.read_group(made, "certificate").sel(n_temperatures=64)
    assert np.isnan(errors["error"]) and np.isnan(errors["error_ci"]).all() and np.isnan(errors["error_limit_exact"])
    assert int(report.read_group(made, "alarm")["n_excluded"]) == 1
    assert report.read_group(made, "approximate_posterior")["mu"].isnull().sum() == 1


def test_heavy_tails_at_the_start_make_the_bound_unreliable():
    result = fake_result()
    rng = np.random.default_rng(3)
    scale = np.abs(rng.standard_cauchy(2000))
    result.base_log_ratio = [-(scale**2)]  # tail index 2: no mean
    heavy = report.read_group(report.to_container(result, constrain), "bounds")
    assert not heavy["jeffreys_reliable"].values.any()
    assert float(heavy["start_tail_index"]) == pytest.approx(2.0, abs=0.8)
    assert heavy["kl_exact_approx_reliable"].values.all()  # four chains outweigh an index of 2
    light = report.read_group(container(), "bounds")
    assert light["jeffreys_reliable"].values.all()


def test_one_chain_cannot_certify_a_tail_without_a_mean():
    result = fake_result(n_chains=1)
    result.base_log_ratio = [-(np.random.default_rng(3).standard_cauchy(2000) ** 2)]
    group = report.read_group(report.to_container(result, constrain), "bounds")
    assert not group["kl_exact_approx_reliable"].values.any()
