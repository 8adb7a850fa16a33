"""The fit of the real data and shape, end to end: what is said, that it survives a file, that it shifts nothing."""

import numpy as np
import pytest

import bread
from bread.report.container import group_names, read_attributes, read_group
from tests.models.reference import AutoregressiveKernel, HMCKernel, NormalMean

Y = np.array([0.4, 1.9, 1.1, 0.2, -0.6, 0.9])
QUICK = {"simulate_from": "prior", "random_seed": 5, "cores": 1, "progressbar": False, "tune_on": "shared", "tune": 20}


def model(y, kernel=AutoregressiveKernel(rho=0.3)):  # noqa: B008  (a frozen value)
    return NormalMean(y, prior_mean=0.5, prior_sd=1.5, kernel=kernel)


def test_an_outlier_is_named_and_is_no_status(tmp_path):
    y = np.array([*Y[:-1], 12.0])
    report = bread.check(model(y), **QUICK)
    verdict = bread.verdict(report)
    assert verdict.fit == "poor" and verdict.fit_p_value <= 0.005 and verdict.status == "converged"
    assert "Your data do not look like the model's" in verdict.details and "y[5] is " in verdict.details
    fit = read_group(report, "fit")
    assert fit["p_value_by_node"].dims == ("node", "statistic")
    assert str(fit["extreme_element"].values[0, 0]) == "y[5]"
    assert list(fit["kind"].values) == ["data", "parameter", "predictive"]
    report.to_netcdf(str(tmp_path / "report.nc"))
    again = bread.verdict(tmp_path / "report.nc")
    assert again == verdict and again.fit == "poor"
    clean = bread.verdict(bread.check(model(Y), **QUICK))
    assert clean.fit == "ok" and "Your data look like the model's (fit p = " in clean.details


def test_the_fit_test_has_random_numbers_of_its_own():
    with_draws, without = (bread.check(model(Y), **QUICK, draws=draws) for draws in (20, 0))
    assert "fit" in group_names(with_draws) and "fit" not in group_names(without)
    assert bread.verdict(without).fit == "not tested"
    for group in ("forward", "reverse", "observed_forward"):
        one, other = (read_group(report, group)["log_weight"].values for report in (with_draws, without))
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_data_far_from_the_prior_are_compared_with_199_simulations_before_that_is_a_mismatch():
    report = bread.check(model(Y + 15.0), **QUICK, n_temperatures=[4, 16], simulations=10)
    consistency = read_group(report, "consistency")
    assert int(consistency["n_simulations"]) == 199 and int(consistency["is_final"]) == 1
    assert int(consistency["log_evidence_rank"]) == 0
    assert bread.verdict(report).status == "mismatch"


def test_no_more_are_compared_where_the_fit_they_come_from_did_not_converge():
    """The real data are far from both laws. Of chains that agree, so many data sets are compared until that is sure."""
    numbers, warnings = [], []
    for apart in (0.0, 1.0):
        rng = np.random.default_rng(2)
        draws = {"mean": 0.65 + apart * np.array([[-0.5], [0.5]]) + rng.normal(0.0, 0.1, (2, 300))}
        settings = QUICK | {"simulate_from": "fitted"}
        report = bread.check(
            model(Y + 15.0), **settings, posterior=draws, n_temperatures=[16, 256], simulations=20, draws=0
        )
        consistency = read_group(report, "consistency")
        numbers.append((int(consistency["n_simulations"]), int(consistency["is_final"])))
        warnings.append("ended after 40 of these" in str(read_attributes(report)["warnings"]))
    assert numbers == [(199, 1), (40, 0)] and warnings == [False, True]
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and "a fit that did not converge" in verdict.details


def test_one_reference_of_the_users_is_no_test_of_shape():
    rng = np.random.default_rng(1)
    draws = {"mean": rng.normal(0.65, 0.4, (2, 500))}
    report = bread.check(model(Y, HMCKernel()), **QUICK, path=draws, n_temperatures=[2, 4], simulations=10)
    assert "consistency" not in group_names(report)
    assert "one reference, which you passed as path=, serves all data sets" in read_attributes(report)["warnings"]
    assert np.isnan(bread.verdict(report).consistency_p_value)


def test_stan_end_to_end():
    stan_conjugate = pytest.importorskip("tests.support.stan_conjugate")
    report = bread.check(stan_conjugate.conjugate("hierarchical"), **QUICK, n_temperatures=[4], simulations=4, draws=8)
    fit = read_group(report, "fit")
    assert list(fit["node"].values) == ["y", "theta", "mu", "y given mu", "y from the prior"]
    assert np.isfinite(fit["p_value_by_node"].values).sum() == 7  # two of the data, two of latents, a rank, predictive
    assert bread.verdict(report).fit == "ok"
