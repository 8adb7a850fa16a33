"""Tests of exact draws in a whole check: planted defects are found and named, sound models are not accused."""

import numpy as np
import pytest

import bread
from bread.report.compat import read_group
from bread.report.direct_tests import direct_tests_dataset
from tests.models.reference import AbsoluteMean, BetaBinomial, LabelMixture, NormalScale, UniformLocation
from tests.support.direct_models import CLEAN, PLANTED, combined, direct_tests
from tests.support.reference_models import CONJUGATE

pytestmark = pytest.mark.statistical
LEVEL = 0.001
EXPECTED = {
    "sd for variance in the prior": ("prior score", "The random draws of mean do not follow its log density"),
    "sd for variance in the likelihood": ("outcome score", "Simulated data do not follow the likelihood"),
    "a drift without correction": ("kernel at beta", "Steps of the kernel change the law of exact draws"),
    "a step size that depends on the state": ("kernel at beta", "Steps of the kernel change the law of exact draws"),
}


def check(model, seed, **arguments):
    settings = {"path": "prior", "n_temperatures": 256, "tune": 100, "simulations": 10, "draws": 0, "cores": 1}
    return bread.check(model, random_seed=seed, progressbar=False, tune_on="shared", **{**settings, **arguments})


@pytest.mark.parametrize(
    ("name", "simulate_from"),
    [
        ("sd for variance in the prior", "fitted"),
        ("sd for variance in the likelihood", "localised"),
        ("a drift without correction", "prior"),
        ("a step size that depends on the state", "fitted"),
    ],
)
def test_a_planted_defect_is_a_bug_and_is_named(name, simulate_from):
    verdict = bread.verdict(check(PLANTED[name], 1, simulate_from=simulate_from, n_temperatures=1024))
    test, sentence = EXPECTED[name]
    assert verdict.status == "bug"
    assert verdict.direct_p_value < LEVEL
    assert f"the {test}" in verdict.details and sentence in verdict.details


def test_a_sound_model_passes_and_the_report_says_what_was_tested(tmp_path):
    report = check(CLEAN, 2, simulate_from="fitted")
    assert bread.verdict(report).status != "bug"
    group = read_group(report, "direct_tests")
    assert list(group["test"].values) == [
        "prior score", "likelihood score", "outcome score", "kernel at beta = 0", "kernel at beta = 1",
    ]  # fmt: skip
    assert float(group["p_value"]) > LEVEL
    assert (group["n_draws"].values >= 200).all() and (group["n_tested"].values > 0).all()
    costs = read_group(report, "cost")["n_gradients"]
    assert 0 < int(costs.sel(phase="direct tests")) < 0.05 * int(costs.sum())
    report.to_netcdf(tmp_path / "report.nc")
    assert bread.verdict(tmp_path / "report.nc").direct_p_value == bread.verdict(report).direct_p_value


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_planted_defects_are_found_with_several_seeds_and_the_sound_model_is_not_accused(name):
    wrong = [combined(direct_tests(PLANTED[name], seed)) for seed in range(3)]
    assert max(wrong) < LEVEL
    sound = [combined(direct_tests(CLEAN, seed)) for seed in range(3)]
    assert min(sound) > LEVEL


SOUND = {
    "a scale": NormalScale(np.array([1.0, 2.0, 0.3])),
    "absolute value": AbsoluteMean(np.array([1.0, 2.0])),
    "support that depends on a parameter": UniformLocation(np.array([0.3, -0.1, 0.2, 0.5])),
    "counts": next(model for model in CONJUGATE.values() if isinstance(model, BetaBinomial)),
    "a discrete label": next(model for model in CONJUGATE.values() if isinstance(model, LabelMixture)),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_models_with_bounds_labels_and_counts_are_not_accused(name):
    found = direct_tests(SOUND[name], 5)
    assert combined(found) > LEVEL
    assert {"kernel at beta = 0", "kernel at beta = 1"} <= {test.name for test in found.tests}


def test_where_the_support_of_the_data_depends_on_a_parameter_its_score_is_left_out():
    """E[d log p(y | theta) / d theta] is not zero there, in a model without fault."""
    found = direct_tests(SOUND["support that depends on a parameter"], 5)
    assert "the support of the data depends on it" in found.left_out["likelihood score of location"]
    assert not next(test for test in found.tests if test.name == "likelihood score").n_tested


def test_a_simulator_that_cannot_draw_everywhere_is_tested_where_it_can_and_the_verdict_says_so():
    class NoDraws(type(CLEAN)):
        def draw_data(self, parameters, generator):
            if float(parameters["mean"]) > 2.0:
                raise ValueError("no draws here")
            return super().draw_data(parameters, generator)

    model = NoDraws(**{name: getattr(CLEAN, name) for name in ("y", "prior_mean", "prior_sd", "noise_sd", "kernel")})
    report = check(model, 3, simulate_from="localised")
    tested = list(read_group(report, "direct_tests")["test"].values)
    assert tested == ["prior score", "likelihood score", "outcome score", "kernel at beta = 0"]
    verdict = bread.verdict(report)
    assert verdict.status != "bug" and "Not tested: kernel at beta = 1 (outcomes may come from" in verdict.details
    assert "no draws here" in report.attrs["notes"] and "no draws here" in verdict.details


def test_results_do_not_depend_on_the_number_of_processes():
    one, two = (direct_tests(CLEAN, 4, cores=cores) for cores in (1, 2))
    assert one.n_gradients == two.n_gradients
    for left, right in zip(one.tests, two.tests, strict=True):
        assert left.name == right.name
        np.testing.assert_array_equal(left.p_values, right.p_values)


def test_nothing_tested_is_no_group():
    assert direct_tests_dataset(None) is None


@pytest.mark.study
@pytest.mark.slow
def test_power_and_level():
    """Planted defects in >= 95% of 40 seeds; 400 sound runs within the 99% binomial quantile of 0.001 (two)."""
    for name, model in PLANTED.items():
        found = np.mean([combined(direct_tests(model, seed)) < LEVEL for seed in range(100, 140)])
        print(f"{name}: {found:.3f}")
        assert found >= 0.95
    false = sum(combined(direct_tests(CLEAN, seed)) < LEVEL for seed in range(1000, 1400))
    print(f"false alarms: {false} of 400")
    assert false <= 2  # the 99% quantile of Binomial(400, 0.001): P(at most 2) = 0.992
