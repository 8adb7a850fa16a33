"""`bread.lab.path_sampling` against exact evidence and exact leave-one-out scores; doubts leave no interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.errors import BreadError, InvalidArgumentError
from bread.reading.other_verbs.path_sampling import path_sampling_answer
from bread.report.compat import make_container, require_group
from bread.report.path_sampling import path_sampling_dataset
from bread.running.path_sampling.path_sampling import PathPairs
from tests.models.reference import (
    AbsoluteMean,
    HierarchicalNormal,
    LabelMixture,
    LinearRegression,
    NormalMean,
    NormalScale,
    UniformLocation,
)
from tests.support.direct_models import WideDataDraws, WidePriorDraws

Y = np.array([0.4, 1.9, 1.1, -3.0])
NORMAL = NormalMean(Y[:3], prior_mean=0.5, prior_sd=1.5, noise_sd=1.2)
WIDE = replace(NORMAL, prior_sd=30.0)
HIERARCHY = HierarchicalNormal(np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), prior_mean=0.3, group_sd=0.7)
DESIGN = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])
REGRESSION = LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), DESIGN, noise_sd=0.7)
SCALE = NormalScale(np.array([0.3, -1.2, 2.0, 0.4]))  # the prior mean of its log likelihood is -infinity
K = 4.0  # standard errors


def run(model, seed=3, **options):
    report = bread.lab.path_sampling(model, random_seed=seed, progressbar=False, **{"tune": 60, **options})
    return report, require_group(report, "path_sampling")


def evidence(model):
    return model.log_evidence(model.observed_data)


@pytest.mark.parametrize("broken", [WidePriorDraws, WideDataDraws])
def test_draws_that_do_not_follow_the_density_are_a_bug(broken):
    """Draws of the prior are proposed as if they followed its density: evidence would be off, and nothing say so."""
    model = broken(Y, prior_sd=2.0, noise_sd=2.0)
    verdict = bread.verdict(run(model, pairs=40)[0])
    assert verdict.status == "bug" and "not follow" in verdict.details
    right = NormalMean(Y, prior_sd=2.0, noise_sd=2.0)
    assert bread.verdict(run(right, pairs=40)[0]).status != "bug"


@pytest.mark.statistical
@pytest.mark.parametrize(
    "model", [NORMAL, WIDE, HIERARCHY, SCALE], ids=["normal mean", "wide prior", "hierarchical", "scale"]
)
def test_log_evidence_is_within_its_standard_errors(model):
    """Within 4; half of the data (negative control) has another evidence, 10 away."""
    report, found = run(model, pairs=200)
    value, error = float(found["value"][0]), float(found["standard_error"][0])
    assert abs(value - evidence(model)) < K * error < 0.5
    assert abs(value - evidence(model) / 2) > 10 * error
    verdict = bread.verdict(report)
    assert verdict.status == "estimated" and not verdict
    assert "unbiased on the log scale" in verdict.details and "may go unseen" in verdict.details
    assert float(found["lower"][0]) < value < float(found["upper"][0])
    assert bread.summary(report).loc["log evidence", "value"] == pytest.approx(value, abs=1e-3)
    assert float(found["pilot_share"].sum()) == pytest.approx(1.0)


@pytest.mark.statistical
def test_leave_one_out_scores_are_exact():
    """Each within 4 standard errors of the difference of two exact evidences; the neighbour's is not."""
    exact = np.array([evidence(REGRESSION) - evidence(_without(i)) for i in range(len(DESIGN))])
    report, found = run(REGRESSION, leave_out="each", pairs=80)
    away = np.abs(found["value"].values - exact) / found["standard_error"].values
    assert (away < K).all()
    shuffled = np.abs(found["value"].values - np.roll(exact, 1)) / found["standard_error"].values
    assert (shuffled > K).sum() > 2  # negative control
    assert abs(found.attrs["total"] - exact.sum()) < K * found.attrs["total_standard_error"]
    assert found.attrs["total_lower"] < found.attrs["total"] < found.attrs["total_upper"]
    verdict = bread.verdict(report)
    assert verdict.status == "estimated" and f"observation {exact.argmin()}" in verdict.details
    assert list(bread.summary(report).index) == ["0", "1", "2", "3", "4"]


def _without(index):
    return replace(REGRESSION, y=np.delete(REGRESSION.y, index), x=np.delete(DESIGN, index, axis=0))


def test_some_observations_can_be_left_out():
    _, found = run(REGRESSION, leave_out=[3, 1], pairs=40)
    assert list(found["target"].values) == ["3", "1"] and found["estimate"].shape == (2, 40)
    _, other = run(REGRESSION, leave_out=[1], pairs=40)
    assert abs(float(found["value"][1] - other["value"][0])) < 0.5


def test_modes_that_chains_do_not_leave_are_unknown():
    model = AbsoluteMean(np.repeat([1.1, 0.9, 1.2, 1.0], 5), noise_sd=0.02)
    report, found = run(model, max_iterations=40, pairs=40, tune=50)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and "did not meet" in verdict.details
    assert np.isnan(found["value"]).all() and found.attrs["n_unmet"] > 0
    assert found.attrs["is_pilot"] and found.attrs["unmet_at"] == 1.0  # the first that is looked at
    assert bread.summary(report).loc["log evidence", "upper"] == np.inf


@pytest.mark.statistical
def test_two_modes_that_chains_leave_are_counted():
    model = AbsoluteMean(np.repeat([1.1, 0.9, 1.2, 1.0], 5))
    _, found = run(model, pairs=100)
    assert abs(float(found["value"][0]) - evidence(model)) < K * float(found["standard_error"][0]) < 0.5


def test_estimates_with_heavy_tails_have_no_interval():
    """Cauchy estimates stand for a law without a variance."""
    values = np.random.default_rng(1).standard_cauchy((1, 300))
    flat, knots = np.ones((1, 300)), np.zeros(1)
    run_of_it = PathPairs(values, flat, 5 * flat, 2 * flat, knots, knots, knots, knots, 1, 0, float("nan"))
    settings = {"leave_out": None, "level": 0.95, "pairs": 300, "max_iterations": 100}
    report = make_container({"path_sampling": path_sampling_dataset(run_of_it, settings)}, {"seed": 1})
    answer = path_sampling_answer(report)
    assert answer.status == "inconclusive" and "no interval of the log evidence" in answer.details
    assert "index" in answer.details and "95%" not in f"{answer.lines()} {answer.details}"


def test_a_report_is_repeatable_and_other_seeds_give_another(tmp_path):
    (report, first), (_, second) = (run(NORMAL, pairs=40) for _ in range(2))
    assert first.identical(second)
    _, other = run(NORMAL, seed=4, pairs=40)
    assert (other["estimate"].values != first["estimate"].values).all()
    for read in (bread.to_html, bread.to_markdown, bread.evidence):
        with pytest.raises(InvalidArgumentError, match=r"got one of bread\.lab\.path_sampling"):
            read(report)
    report.to_netcdf(str(tmp_path / "report.nc"))
    assert bread.verdict(str(tmp_path / "report.nc")) == bread.verdict(report)


@pytest.mark.parametrize(
    "options",
    [
        {"pairs": 39}, {"max_iterations": 5}, {"tune": 5}, {"level": 1.0}, {"leave_out": "all"}, {"leave_out": [7]},
        {"leave_out": [0, 0]}, {"leave_out": [0.5]}, {"leave_out": []},
    ],
)  # fmt: skip
def test_arguments_are_refused(options):
    with pytest.raises(InvalidArgumentError, match="got"):
        run(NORMAL, **options)


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        (LabelMixture(np.array([1.2, 0.6])), {}, "discrete"),
        (UniformLocation(np.array([0.3, 0.6])), {}, "zero or not finite"),
        (HIERARCHY, {"leave_out": "each"}, "leave-one-out"),
    ],
    ids=["label", "zero likelihood", "dependent"],
)
def test_models_are_refused(model, options, reason):
    with pytest.raises(BreadError, match=reason):
        run(model, **options)
