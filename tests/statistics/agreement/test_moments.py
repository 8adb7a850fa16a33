"""Shift of means and ratio of standard deviations: their values, and errors that are neither too small nor large."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.moments import compare_moments
from tests.support.user_draws import autoregression


@pytest.mark.statistical
def test_errors_are_those_of_repetitions():
    # Truth: a shift by 0.5 and a ratio of 1.5 of autoregressive draws; 400 columns are 400 repetitions.
    rng = np.random.default_rng(1)
    correlation, n_total = 0.7, 2000
    user = 0.5 + 1.5 * autoregression(rng, correlation, (4, 500, 400))
    annealed = rng.normal(size=(800, 400))
    size = n_total * (1 - correlation) / (1 + correlation)
    size_sd = n_total * (1 - correlation**2) / (1 + correlation**2)
    result = compare_moments(user, annealed, np.full(400, size), np.full(400, size_sd))
    for error, score in (
        (result.mean_shift_error, (result.mean_shift - 0.5) / result.mean_shift_error),
        (result.sd_ratio_error, (result.sd_ratio - 1.5) / result.sd_ratio_error),
    ):
        assert binom.ppf(0.005, 400, 0.05) <= (np.abs(score) > 1.96).sum() <= binom.ppf(0.995, 400, 0.05)
        assert (error > 0).all()
    naive = compare_moments(user, annealed, np.full(400, 2000.0), np.full(400, 2000.0))  # control: as if independent
    assert (np.abs(naive.mean_shift - 0.5) > 1.96 * naive.mean_shift_error).sum() > binom.ppf(0.9999, 400, 0.05)
    assert (np.abs(naive.sd_ratio - 1.5) > 1.96 * naive.sd_ratio_error).sum() > binom.ppf(0.9999, 400, 0.05)


@pytest.mark.statistical
def test_error_of_the_ratio_knows_the_kurtosis():
    rng = np.random.default_rng(2)
    user, annealed = rng.exponential(size=(1000, 400)), rng.exponential(size=(1000, 400))
    result = compare_moments(user, annealed, np.full(400, 1000.0), np.full(400, 1000.0))
    outside = (np.abs(result.sd_ratio - 1) > 1.96 * result.sd_ratio_error).sum()
    assert outside <= binom.ppf(0.995, 400, 0.07)  # the sample's own kurtosis is a little small
    normal = np.sqrt(0.5 / 1000 + 0.5 / 1000)  # control: the error that normal draws have
    assert (np.abs(result.sd_ratio - 1) > 1.96 * normal).sum() > 100


def test_constants():
    rng = np.random.default_rng(3)
    user = np.stack([1 + 1e-16 * rng.normal(size=100), np.full(100, 2.0), rng.normal(size=100)], axis=1)
    annealed = np.stack([np.ones(50), np.ones(50), np.zeros(50)], axis=1)
    result = compare_moments(user, annealed, np.full(3, 100.0), np.full(3, 100.0))
    assert result.mean_shift[0] == 0 and result.mean_shift[1] == np.inf and np.isinf(result.mean_shift[2])
    assert np.isnan(result.sd_ratio).all() and result.mean_shift_error[0] == 0
    assert np.isnan(compare_moments(user, annealed[:1], np.full(3, 9.0), np.full(3, 9.0)).mean_shift).all()


def test_errors():
    with pytest.raises(InvalidArgumentError, match=r"n_effective_sd must be positive and have shape \(1,\).*\(2,\)"):
        compare_moments(np.zeros((5, 1)), np.zeros((5, 1)), [5.0], [5.0, 5.0])
