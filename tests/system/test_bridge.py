"""Bridge sampling from the user's draws: the exact log evidence, and none where draws are not worth it."""

from __future__ import annotations

import numpy as np
import pytest

import bread
from tests.models.reference import HMCKernel
from tests.models.reference.models.gaussian_models import LinearRegression
from tests.support.user_draws import autoregression

X = np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.9], [0.2, 1.5], [-1.4, 0.1], [0.8, -0.6]])
Y = np.array([0.4, 1.9, 1.1, 0.7, 1.6, -0.3])
MODEL = LinearRegression(Y, X, kernel=HMCKernel())
QUICK = {"cores": 1, "progressbar": False, "tune": 60, "simulations": 5, "n_temperatures": 4, "chains": 2, "draws": 40}


def draws_with(correlation, seed, shift=0.0, n=1000):
    """Return autocorrelated draws of the exact posterior, shape (4, n, 2)."""
    precision = np.eye(2) + X.T @ X
    mean, covariance = np.linalg.solve(precision, X.T @ Y), np.linalg.inv(precision)
    normal = autoregression(np.random.default_rng(seed), correlation, (4, n, 2))
    return {"coefficients": mean + shift + normal @ np.linalg.cholesky(covariance).T}


def bridged(posterior, seed=1):
    report = bread.check(MODEL, posterior=posterior, simulate_from="prior", random_seed=seed, **QUICK)
    return bread.evidence(report).table.loc["bridge sampling"]


def test_the_prior_is_what_the_exact_evidence_takes():
    precision = np.eye(2) + X.T @ X
    at_mean = np.linalg.solve(precision, X.T @ Y)
    residual = Y - X @ at_mean
    log_joint = -0.5 * (residual @ residual + at_mean @ at_mean) - 4 * np.log(2 * np.pi)
    evidence = log_joint + np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    assert MODEL.log_evidence({"y": Y}) == pytest.approx(evidence, abs=1e-10)


@pytest.mark.statistical
def test_the_exact_evidence_within_its_errors():
    """Over 6 seeds of draws worth a third of their number: the root mean square of z below 2 (chi square, p = 5e-4)."""
    exact = MODEL.log_evidence({"y": Y})
    z = []
    for seed in range(6):
        row = bridged(draws_with(0.5, seed), seed)
        assert row["direction"] == "fit" and row["role"] == "estimate" and row["standard_error"] < 0.05
        z.append((row["log_evidence"] - exact) / row["standard_error"])
    assert np.sqrt(np.mean(np.square(z))) < 2.0
    shifted = bridged(draws_with(0.5, 0, shift=0.5))  # control: draws of another law give another number
    assert abs(shifted["log_evidence"] - exact) > 5 * shifted["standard_error"]


@pytest.mark.parametrize("what", ["few", "unmixed", "none"])
def test_no_number_from_draws_that_are_not_worth_it(what):
    draws = draws_with(0.5, 3, n=50 if what == "few" else 1000)
    if what == "unmixed":
        draws["coefficients"][0] += 1.0
    row = bridged(None if what == "none" else draws)
    assert np.isnan(row["log_evidence"]) and np.isnan(row["lower"])
