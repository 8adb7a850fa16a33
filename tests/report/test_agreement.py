"""Group `agreement`: what is compared, under which names, and when it is left out."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from bread.fitting.search.work import plain
from bread.report import container as report
from bread.statistics.bounds.certificate import error_interval
from tests.support.fake_results import constrain, fake_result, model_info

NAMES = ["mu", "tau", "theta[Choate]", "theta[Deerfield]", "theta[Exeter]", "kind", "log density"]


def group(result):
    return report.read_group(report.to_container(result, constrain), "agreement")


@pytest.fixture(scope="module")
def same():
    return group(fake_result(posterior_shift=0.0))


def test_names_are_those_of_az_summary(same):
    arviz = pytest.importorskip("arviz")
    made = report.to_container(fake_result(), constrain)
    table = arviz.summary(made, round_to=6)
    assert same["parameter"].values.tolist() == NAMES
    assert list(table.index) == NAMES[:-1]


def test_unlabelled_dimensions_are_numbered():
    info = model_info(coords={}, parameters={"mu": (), "tau": (), "theta": (), "kind": ()})
    assert "theta[2]" in group(fake_result(posterior_shift=0.0, info=info))["parameter"].values


def test_contents_are_of_the_users_quantiles(same):
    result = fake_result(posterior_shift=0.0)
    mu, annealed = result.fit.draws["mu"], result.observed_draws[:, 0]
    here = same.sel(parameter="mu")
    for quantile in (0.05, 0.5, 0.95):
        own = np.quantile(mu, quantile, method="inverted_cdf")
        assert float(here["fit_quantile"].sel(quantile=quantile)) == own
        share = float(here["interval_content"].sel(quantile=quantile))
        assert abs(share - (annealed < own).mean()) < 1.5e-3  # no ties but the draw itself
        low, high = here["interval_content_ci"].sel(quantile=quantile).values
        assert low < share < high
    assert same["interval_content"].sel(parameter="mu", quantile=0.95) - same["interval_content"].sel(
        parameter="mu", quantile=0.05
    ) == pytest.approx(float(here["central_content"]))


def test_agreement_and_disagreement():
    same, other = (group(fake_result(posterior_shift=shift)) for shift in (0.0, 1.5))
    assert same.attrs["status"] == "agreement" and float(same["p_value_combined"]) > 0.01
    assert other.attrs["status"] == "disagreement" and float(other["p_value_beyond_error_combined"]) < 0.001
    mu = other.sel(parameter="mu")
    assert abs(float(mu["mean_shift"]) - 1.5) < 4 * float(mu["mean_shift_error"]) < 0.6
    assert abs(float(mu["sd_ratio"]) - 1.0) < 4 * float(mu["sd_ratio_error"]) < 0.4
    assert str(other["tested"].values[int(np.argmin(other["p_value"].values))]) == "mu"
    assert "mu * tau" in other["tested"].values and "log density" in other["tested"].values
    assert float(other.sel(parameter="theta[Exeter]")["content_p_value"].min()) > 0.01  # the control


def test_the_limit_adds_three_errors(same):
    errors = report.read_group(report.to_container(fake_result(), constrain), "certificate")
    mine = errors["error_by_simulation"].sel(n_temperatures=64).values[6:26]
    shared = error_interval(mine, 0.975).upper
    assert shared > error_interval(mine, 0.95).upper == pytest.approx(same.attrs["error"])
    np.testing.assert_allclose(same["error_limit"], same["cdf_difference"] + same.attrs["sampling_error"] + shared)
    assert same.attrs["sampling_error"] == pytest.approx(np.sqrt(np.log(2 * 7 / 0.025) / 2000))


def test_what_could_have_been_seen_shrinks_with_more_draws(same):
    fewer = group(fake_result(posterior_shift=0.0, n_draws=200))
    for name in ("detectable_shift", "detectable_missing_mass", "detectable_shift_beyond_error"):
        assert 0 < float(same[name]) < float(fewer[name])
    assert float(same["detectable_shift"]) < float(same["detectable_shift_beyond_error"])


def test_too_few_draws_decide_nothing():
    result = fake_result(posterior_shift=3.0)
    result.fit = replace(result.fit, draws={name: values[:, :10] for name, values in result.fit.draws.items()})
    result.fit_log_density = result.fit_log_density[:, :10]
    few = group(result)
    assert few.attrs["status"] == "too few draws"
    assert np.isnan(float(few["detectable_shift"]))


def test_a_log_density_that_is_not_finite_is_left_out():
    result = fake_result(posterior_shift=0.0)
    result.fit_log_density[0, 3] = -np.inf
    assert group(result)["parameter"].values.tolist() == NAMES[:-1]


def test_where_v_is_not_known_it_explains_any_difference():
    result = fake_result(posterior_shift=3.0)
    for key in [key for key in result.runs if key[1] == "reverse"]:
        del result.runs[key]
    unknown = group(result)
    assert unknown.attrs["status"] == "difference" and unknown.attrs["error"] == 1.0
    assert (unknown["error_limit"] == 1.0).all()


def test_left_out_where_there_is_nothing_to_compare():
    assert group(fake_result()) is None
    assert group(fake_result(posterior_shift=0.0, n_draws=0)) is None
    localised = fake_result(posterior_shift=0.0)
    localised.info.layout.positions["mu"] = np.array([0])
    localised.settings["hyperparameters"] = ["mu"]
    localised.localisation = plain(1)  # annealed draws are then from another posterior
    assert group(localised) is None


@pytest.mark.slow
def test_the_same_after_a_file(tmp_path, same):
    arviz = pytest.importorskip("arviz")
    report.to_container(fake_result(posterior_shift=0.0), constrain).to_netcdf(str(tmp_path / "report.nc"))
    again = report.read_group(arviz.from_netcdf(str(tmp_path / "report.nc")), "agreement")
    xr.testing.assert_identical(again.load(), same)
    assert again.attrs == same.attrs


def test_chains_that_ended_nowhere_are_counted():
    result = fake_result(posterior_shift=0.0)
    result.n_draws_dropped = 7
    assert group(result).attrs["n_dropped"] == 7
