"""What a report says of priors that do not integrate to one."""

import numpy as np
import pytest

import bread
from bread.reading.as_json import as_json
from bread.report import container as report
from bread.report.compat import read_group
from bread.running.state.prior_integral_results import PriorIntegral, PriorIntegrals
from bread.statistics.exactness.normalisation import Normalisation
from tests.support.fake_results import constrain, fake_result


def integral(name, *values, error=0.01, **changes):
    return PriorIntegral(name, tuple(Normalisation(value, error, 0) for value in values), **changes)


def made(*integrals, **left_out):
    result = fake_result()
    result.prior_integrals = PriorIntegrals(integrals, left_out, 4000)
    return report.to_container(result, constrain)


def test_a_constant_is_named_with_its_error_and_no_bug(tmp_path):
    found = made(integral("corr", 0.577), integral("sound", 0.012), integral("theta", 0.01, -0.02, 0.0, 0.015))
    verdict = bread.verdict(found)
    assert verdict.status == "converged"
    assert "Priors that do not integrate to one: the density of corr to exp(0.577) +- 0.01 nats." in verdict.details
    assert "sound" not in verdict.details
    assert (
        "The density of 'corr' integrates to exp(0.577), not to 1 (standard error 0.01 nats, p = "
        in (found.attrs["notes"])
    )
    assert (bread.summary(found, kind="bounds")["log_constant"] == 0.577).all()
    group = read_group(found, "prior_integrals")
    assert group["is_named"].values.tolist() == [True, False, False] and not group["varies"].values.any()
    np.testing.assert_array_equal(np.isnan(group["log_integral_by_parents"].values[0]), [False, True, True, True])
    found.to_netcdf(tmp_path / "report.nc")
    assert str(bread.verdict(tmp_path / "report.nc")) == str(verdict)


def test_an_integral_that_varies_is_a_bug_and_is_named():
    found = made(integral("theta", 0.4, -0.7, 0.1, 0.0), integral("corr", 0.577))
    verdict = bread.verdict(found)
    assert verdict.status == "bug"
    assert (
        "the density of theta integrates to exp(-0.7) to exp(0.4), by the values of what it depends on"
        in verdict.details
    )
    assert "log_constant" in bread.summary(found, kind="bounds")  # corr's, which is no bug
    assert "The density of 'theta' integrates to exp(-0.700) to exp(0.400)" in found.attrs["notes"]


@pytest.mark.slow
def test_draws_of_another_law_are_a_bug_and_no_constant_is_named(tmp_path):
    wrong = PriorIntegral("car", (Normalisation(2.2, 0.01, 0, 1e-9),))
    found = made(wrong, integral("corr", 0.577))
    verdict = bread.verdict(found)
    assert verdict.status == "bug"
    assert "the random draws of car do not follow the log density (p < 0.001 after correction" in verdict.details
    assert "integrates" not in verdict.details
    assert "The random draws of 'car' do not follow its density (p = 1e-09)" in found.attrs["notes"]
    group = read_group(found, "prior_integrals")
    assert group["draws_differ"].values.tolist() == [True, False]
    assert group["is_named"].values.tolist() == [False, True]
    found.to_netcdf(tmp_path / "report.nc")
    assert str(bread.verdict(tmp_path / "report.nc")) == str(verdict)
    numbers = as_json(found)
    assert numbers["p_values"]["prior_integrals"] == pytest.approx(2e-9)  # two variables were tested
    assert [row["variable"] for row in numbers["prior_integrals"]] == ["car", "corr"]
    assert numbers["prior_integrals"][0]["draws_p_value"] == 1e-9
    fair = made(PriorIntegral("car", (Normalisation(0.0, 0.01, 0, 0.0006),)), integral("corr", 0.0))
    assert bread.verdict(fair).status == "converged"  # 0.0012 after correction for two


@pytest.mark.parametrize("values", [(0.015,), (0.05,), (0.0, 0.03, 0.01, -0.02)])
def test_what_is_small_or_within_its_error_is_neither(values):
    error = 0.001 if values == (0.015,) else 0.02
    found = made(integral("theta", *values, error=error))
    assert bread.verdict(found).status == "converged"
    assert "integrate to one" not in bread.verdict(found).details and "log_constant" not in bread.summary(
        found, kind="bounds"
    )


def test_a_known_constant_needs_no_error():
    found = made(integral("cut", -np.log(6.0), error=0.0, is_known=True))
    assert "the density of cut to exp(-1.79)." in bread.verdict(found).details
    assert float(read_group(found, "prior_integrals")["standard_error"].values[0]) == 0.0


def test_json_holds_the_smallest_p_value_and_none_where_nothing_was_tested():
    varies = as_json(made(integral("theta", 0.4, -0.7, 0.1, 0.0), integral("corr", 0.577)))
    row = varies["prior_integrals"][0]
    assert varies["p_values"]["prior_integrals"] == row["varies_p_value"] < 1e-6  # corr has no parents
    assert row["log_integral"] == pytest.approx(-0.05) and row["standard_error"] == pytest.approx(0.005)
    sound = as_json(made(integral("theta", 0.01, -0.02, 0.0, 0.015)))
    assert 0.01 < sound["p_values"]["prior_integrals"] <= 1.0
    nothing = as_json(report.to_container(fake_result(), constrain))
    assert nothing["p_values"]["prior_integrals"] is None and nothing["prior_integrals"] == []


def test_reasons_are_kept_and_nothing_tested_is_no_group():
    found = made(walk="300 dependent coordinates are too many to integrate over.")
    assert read_group(found, "prior_integrals") is None
    assert "Whether these densities integrate to one was not tested: walk: 300 dependent" in found.attrs["notes"]
    assert read_group(report.to_container(fake_result(), constrain), "prior_integrals") is None
