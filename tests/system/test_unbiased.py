"""`bread.lab.unbiased` against conjugate models; two modes and heavy tails are never called bounded."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import bread
from bread.errors import BreadError, InvalidArgumentError
from bread.report.compat import require_group
from tests.models.reference import AbsoluteMean, HierarchicalNormal, LabelMixture, NormalMean

matplotlib.use("Agg")
NORMAL = NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2)
HIERARCHY = HierarchicalNormal(np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), prior_mean=0.3, group_sd=0.7)


def run(model, **options):
    return bread.lab.unbiased(model, random_seed=3, progressbar=False, **options)


@pytest.mark.statistical
@pytest.mark.parametrize("model", [NORMAL, HIERARCHY], ids=["normal_mean", "hierarchical"])
def test_means_are_exact_and_the_bound_is_reported(model):
    """Means within 5 standard errors of the exact ones; prior means are at least 10 away."""
    report = run(model, pairs=100)
    found = require_group(report, "unbiased")
    mean, _ = model.gaussian_targets(np.array([1.0]), model.summarise(model.info.data.observed))
    exact, error = np.ravel(mean), found["mean_standard_error"].values
    assert (np.abs(found["mean"].values - exact) < 5 * error).all()
    assert (np.abs(found["mean"].values - model.prior_location) > 10 * error).any()  # negative control
    verdict = bread.verdict(report)
    assert verdict.status == "bounded" and not verdict  # it rests on an assumption
    assert "Without that assumption" in verdict.details
    first = found.attrs["first_iteration"]
    table = bread.summary(report)
    assert table.loc[first, "limit"] <= 0.1 and first in table.index
    assert len(bread.lab.plot_unbiased(report).figure.axes) == 2


def test_two_modes_that_chains_do_not_leave_are_unknown():
    report = run(AbsoluteMean(np.repeat([1.1, 0.9, 1.2, 1.0], 5)), max_iterations=100, tune=100)
    verdict, found = bread.verdict(report), require_group(report, "unbiased")
    assert verdict.status == "inconclusive" and "not known" in verdict.details
    assert found.attrs["n_unmet"] > 5 and found.attrs["first_iteration"] == -1 and np.isnan(found["mean"]).all()
    assert bread.summary(report).empty and len(bread.lab.plot_unbiased(report).figure.axes) == 2


def test_a_report_is_repeatable_and_other_seeds_give_another():
    first, second = (require_group(run(NORMAL, pairs=40, lag=20, tune=60), "unbiased") for _ in range(2))
    assert first.identical(second)
    other = bread.lab.unbiased(NORMAL, pairs=40, lag=20, tune=60, random_seed=4, progressbar=False)
    assert (require_group(other, "unbiased")["meeting_time"].values != first["meeting_time"].values).any()


@pytest.mark.parametrize(
    "options",
    [{"start": "posterior"}, {"start": -1.0}, {"pairs": 39}, {"lag": 0}, {"lag": 600}, {"max_error": 0.0}, {"tune": 5}],
)
def test_arguments_are_refused(options):
    with pytest.raises(InvalidArgumentError, match="got"):
        run(NORMAL, **options)


def test_discrete_coordinates_are_refused():
    with pytest.raises(BreadError, match="discrete"):
        run(LabelMixture(np.array([1.2, 0.6])))


def test_other_reports_are_refused_by_the_plot():
    with pytest.raises(InvalidArgumentError):
        bread.lab.plot_unbiased(bread.debug(kernel=lambda x, rng: x, log_density=lambda x: -0.5 * float(x @ x),
                                        simulate=lambda n, rng: rng.normal(size=(n, 1)), only="simulator",
                                        budget=0.01, random_seed=1, progressbar=False))  # fmt: skip
