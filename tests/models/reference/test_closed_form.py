"""Closed forms of the reference backend's Gaussian models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.errors import UnsupportedKernelError
from tests.models.reference import (
    AutoregressiveKernel,
    HMCKernel,
    NormalMean,
    expected_work,
)
from tests.support.reference_models import ALL_MODELS


def test_closed_form_of_independent_draws_by_hand():
    """rho = 0, T = 2: forward E_prior[log L], reverse E_posterior[log L]."""
    model = NormalMean(np.array([1.3]), prior_sd=2.0, noise_sd=0.7, kernel=AutoregressiveKernel(rho=0.0))
    data, betas = {"y": np.array([1.3])}, np.array([0.0, 1.0])
    precision = 1 / 4 + 1 / 0.49
    mean = 1.3 / 0.49 / precision
    constant = -0.5 * np.log(2 * np.pi * 0.49)
    work = expected_work(model, betas, data)
    assert work.forward == pytest.approx(constant - (1.3**2 + 4.0) / 0.98, abs=1e-12)
    assert work.reverse == pytest.approx(constant - ((1.3 - mean) ** 2 + 1 / precision) / 0.98, abs=1e-12)
    assert work.forward < model.log_evidence(data) < work.reverse
    assert work.jeffreys == pytest.approx(0.0, abs=1e-12)


def test_closed_form_averages_over_data():
    """The average over data sets equals the mean of single data sets, within 4 standard errors (2000 data sets)."""
    model = ALL_MODELS["hierarchical"]
    betas = np.linspace(0.0, 1.0, 6)
    simulations = model.simulate(2000, fixed=None, seed=SeedSequence(8))
    bounds = np.array([expected_work(model, betas, simulations.data_of(row)).bound for row in range(2000)])
    error = bounds.std(ddof=1) / np.sqrt(2000)
    assert abs(bounds.mean() - expected_work(model, betas).bound) < 4 * error
    assert error < 0.1 * bounds.mean()


def test_closed_form_on_the_gaussian_path_of_habeck():
    """N(20, 10^2) -> N(0, 1) as a normal mean (prior precision 0.01, likelihood precision 0.99).

    The sandwich holds around log Z_1 / Z_0 = -log 10 after the constants of the likelihood are taken off, the bound is
    above the Jeffreys divergence of the last state, and both fall with T.
    """
    y = np.array([-0.2 / 0.99])
    bounds = []
    for count in (10, 100, 1000):
        model = NormalMean(y, prior_mean=20.0, prior_sd=10.0, noise_sd=0.99**-0.5, kernel=AutoregressiveKernel(0.8))
        work = expected_work(model, np.linspace(0.0, 1.0, count), {"y": y})
        # log L = log N(theta; 0, 1) / N(theta; 20, 100) up to this constant
        log_ratio_at_zero = -0.5 * (0.0 - 4.0)
        constant = model.log_likelihood(np.zeros((1, 1)), model.summarise({"y": y[None]}))[0] - log_ratio_at_zero
        assert model.log_evidence({"y": y}) - constant == pytest.approx(-np.log(10.0), abs=1e-10)
        assert work.forward - constant < -np.log(10.0) < work.reverse - constant
        assert 0 < work.jeffreys < work.bound
        bounds.append(work.bound)
    assert bounds[0] > bounds[1] > bounds[2]


def test_closed_form_needs_the_gaussian_kernel():
    with pytest.raises(UnsupportedKernelError, match="AutoregressiveKernel"):
        expected_work(NormalMean(np.zeros(2), kernel=HMCKernel()), np.array([0.0, 1.0]))
