"""`bread.evidence` of real checks on models whose log evidence is known, along both paths."""

from __future__ import annotations

import numpy as np
import pytest

import bread
from bread.report.compat import read_group
from tests.models.reference import HMCKernel, NormalMean

Y = np.array([0.4, 1.9, 1.1])
HMC = HMCKernel(n_leapfrog=3)
MODEL = NormalMean(Y, prior_mean=0.5, prior_sd=1.5, kernel=HMC)
WIDE = NormalMean(Y, prior_mean=0.5, prior_sd=40.0, kernel=HMC)
QUICK = {"cores": 1, "progressbar": False, "random_seed": 5, "tune": 100, "simulations": 12, "draws": 300}


def assert_holds(found, truth) -> None:
    assert found.kind == "interval", found.sentence()
    assert found.lower <= truth <= found.upper


@pytest.fixture(scope="module")
def reports():
    settings = {"prior": 24, "reference": 4}
    return {
        path: bread.check(MODEL, path=path, simulate_from="prior", n_temperatures=n, **QUICK)
        for path, n in settings.items()
    }


@pytest.mark.parametrize("path", ["prior", "reference"])
def test_the_interval_holds_the_exact_log_evidence(reports, path):
    found, truth = bread.evidence(reports[path]), MODEL.log_evidence({"y": Y})
    assert_holds(found, truth)
    assert found.upper - found.lower < 1.0 and found.path == path
    for wrong in (truth + 1.0, truth - 1.0):  # negative control
        with pytest.raises(AssertionError):
            assert_holds(found, wrong)


def test_estimators_with_both_directions_hit_the_evidence_of_simulated_data(reports):
    """BAR within 4 standard errors over data sets; forward means below the truth, reverse ones above, but for as many.

    Along the reference both are off by 0.006 nats, half a standard error; along the prior they are on their sides.
    """
    for path, report in reports.items():
        found = bread.evidence(report).simulated
        data = read_group(report, "simulated_data")["y"].sel(simulation=found.index.to_numpy()).values
        truth = np.array([MODEL.log_evidence({"y": y}) for y in data])
        errors = found["BAR"].to_numpy() - truth
        assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(len(errors))
        below, above = (found[name].to_numpy() - truth for name in ("mean log weight", "mean reverse log weight"))
        slack = 0.0 if path == "prior" else 4 * max(below.std(ddof=1), above.std(ddof=1)) / np.sqrt(len(truth))
        assert below.mean() < slack and above.mean() > -slack


def test_the_weights_are_those_of_the_draws(reports):
    group = read_group(reports["prior"], "observed_forward")
    assert group["draw_log_weight"].shape == (300,) and group["draw_log_ratio"].shape == (300, 2)
    posterior = read_group(reports["prior"], "posterior")
    assert posterior.sizes["chain"] * posterior.sizes["draw"] == 300


def test_occams_razor(reports):
    """A prior 27 times as wide loses by about its logarithm; the exact factor is in the interval."""
    wide = bread.check(WIDE, path="reference", simulate_from="prior", n_temperatures=4, **QUICK)
    exact = MODEL.log_evidence({"y": Y}) - WIDE.log_evidence({"y": Y})
    for report in reports.values():
        found = bread.bayes_factor(report, wide)
        assert found.favoured == "a" and found.strength in ("positive", "strong")
        assert found.lower < exact < found.upper < exact + 1.0
