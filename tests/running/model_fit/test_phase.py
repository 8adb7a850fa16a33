"""Simulated from the prior a small p-value of the fit is ranked among those of simulated data sets."""

import numpy as np
import pytest
from numpy.random import SeedSequence

import bread
from bread.report.container import read_group
from tests.models.reference import AutoregressiveKernel, NormalMean

QUICK = {"simulations": 20, "cores": 1, "progressbar": False, "tune_on": "shared", "tune": 20, "draws": 20}


def checked(y, rho, n_temperatures, seed=1, **other):
    model = NormalMean(y, prior_sd=3.0, kernel=AutoregressiveKernel(rho=rho))
    options = {"simulate_from": "prior", "n_temperatures": [n_temperatures], "random_seed": seed, **QUICK, **other}
    report = bread.check(model, **options)
    return bread.verdict(report), read_group(report, "fit")


def clean(seed):
    model = NormalMean(np.zeros(20), prior_sd=3.0)
    return model.simulate(1, fixed=None, seed=SeedSequence([1, seed])).data["y"][0]


@pytest.mark.slow
@pytest.mark.statistical
def test_a_sampler_far_from_the_posterior_makes_no_misfit():
    """Two temperatures and a kernel that hardly moves: annealed draws are nearly draws from the prior."""
    small, poor = 0, 0
    for seed in range(10):
        verdict, fit = checked(clean(seed), 0.99, 2, seed)
        small += verdict.fit_p_value <= 0.005
        poor += verdict.fit == "poor"
        if verdict.fit_p_value <= 0.005:
            assert int(fit["n_ranked"]) == 20
            assert (verdict.fit == "poor") == (float(fit["ranked_p_value"]) <= 0.05)
    assert small >= 6 and poor <= 2  # exact level 1 / 21: 3 of 10 or more has a probability of 0.01


def test_a_misfit_is_poor_by_both():
    y = np.append(np.sin(np.arange(19.0)), 12.0)
    verdict, fit = checked(y, 0.3, 16)
    assert verdict.fit == "poor" and verdict.fit_p_value <= 0.005
    assert float(fit["ranked_p_value"]) == pytest.approx(1 / 21) and int(fit["n_ranked"]) == 20


@pytest.mark.parametrize(
    "other", [{"simulate_from": "fitted"}, {"simulations": 10}], ids=["other protocol", "too few data sets"]
)
def test_where_ranks_mean_nothing_there_are_none(other):
    y = np.append(np.sin(np.arange(19.0)), 12.0)
    verdict, fit = checked(y, 0.3, 16, **other)
    assert verdict.fit == "poor" and np.isnan(float(fit["ranked_p_value"])) and int(fit["n_ranked"]) == 0


def test_what_is_no_misfit_is_not_ranked():
    verdict, fit = checked(clean(1), 0.3, 16)
    assert verdict.fit == "ok" and np.isnan(float(fit["ranked_p_value"]))
