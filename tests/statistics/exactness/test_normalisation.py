"""Bridge sampling of a density's integral: exact constants, honest errors, and a constant that is missing."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from bread.errors import DensityError, InvalidArgumentError
from bread.statistics.exactness.normalisation import bridge, fit_student_t, log_constant

LKJ = np.array([2.5, 2.5, 2.0])
COVARIANCE = 0.6 + 0.4 * np.eye(10)


def funnel(x):
    with np.errstate(over="ignore"):
        return (
            -(x[:, 0] ** 2) / 18.0 - np.log(6.0 * np.pi) - (x[:, 1] * np.exp(-x[:, 0] / 2.0)) ** 2 / 2.0 - x[:, 0] / 2.0
        )


def funnel_draws(rng, n):
    v = 3.0 * rng.normal(size=n)
    return np.column_stack([v, np.exp(v / 2.0) * rng.normal(size=n)])


def lkj(x):
    constant = (betaln(LKJ, LKJ) + (2.0 * LKJ - 1.0) * np.log(2.0)).sum()
    return (LKJ * -2.0 * (np.abs(x) + np.log1p(np.exp(-2.0 * np.abs(x))) - np.log(2.0))).sum(axis=1) - constant


def two_modes(x):
    return np.logaddexp(-(x[:, 0] ** 2) / 2.0, -((x[:, 0] - 8.0) ** 2) / 2.0) - 0.5 * np.log(8.0 * np.pi)


# name: (draws, normalised log density, largest standard error in nats of 10000 draws)
DENSITIES = {
    "normal": (lambda rng, n: rng.normal(size=(n, 1)), lambda x: -(x[:, 0] ** 2 + np.log(2 * np.pi)) / 2, 0.001),
    "Cauchy": (lambda rng, n: rng.standard_cauchy((n, 1)), lambda x: -np.log(np.pi * (1 + x[:, 0] ** 2)), 0.001),
    "log half-Cauchy": (
        lambda rng, n: np.log(np.abs(rng.standard_cauchy((n, 1)))),
        lambda x: np.log(2.0 / np.pi) + x[:, 0] - np.logaddexp(0.0, 2.0 * x[:, 0]),
        0.002,
    ),
    "log gamma(0.3)": (
        lambda rng, n: np.log(rng.gamma(0.3, size=(n, 1))),
        lambda x: 0.3 * x[:, 0] - np.exp(np.minimum(x[:, 0], 700.0)) - gammaln(0.3),
        0.01,
    ),
    "funnel": (funnel_draws, funnel, 0.015),
    "LKJ": (lambda rng, n: np.arctanh(2.0 * rng.beta(LKJ, LKJ, size=(n, 3)) - 1.0), lkj, 0.002),
    "two modes": (lambda rng, n: rng.normal(size=(n, 1)) + 8.0 * rng.integers(0, 2, (n, 1)), two_modes, 0.02),
    "ten correlated": (
        lambda rng, n: rng.multivariate_normal(np.zeros(10), COVARIANCE, size=n),
        multivariate_normal(np.zeros(10), COVARIANCE).logpdf,
        0.005,
    ),
}


def check_calibration(name, n_runs):
    draws, log_density, _ = DENSITIES[name]
    rng = np.random.default_rng(2)
    results = [log_constant(draws(rng, 2000), log_density, rng) for _ in range(n_runs)]
    z = np.array([result.log_constant / result.standard_error for result in results])
    assert abs(z.mean()) < 4.0 / np.sqrt(n_runs)  # 4 standard errors
    assert abs(np.sqrt((z**2).mean()) - 1.0) < 4.0 / np.sqrt(2.0 * n_runs)
    accused = sum(result.p_value < 0.01 for result in results)
    assert accused <= stats.binom.ppf(0.9999, n_runs, 0.01)


@pytest.mark.statistical
@pytest.mark.parametrize("name", DENSITIES)
def test_normalised_densities_and_a_missing_constant(name):
    draws, log_density, limit = DENSITIES[name]
    rng = np.random.default_rng(1)
    result = log_constant(draws(rng, 10_000), log_density, rng)
    assert result.standard_error < limit
    assert abs(result.log_constant) < 4.0 * result.standard_error
    wrong = log_constant(draws(rng, 10_000), lambda x: log_density(x) + 1.4, rng)
    assert abs(wrong.log_constant - 1.4) < 4.0 * wrong.standard_error
    assert wrong.log_constant > 20.0 * wrong.standard_error  # negative control: it is far from "normalised"


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["log half-Cauchy", "funnel"])
def test_the_error_is_honest(name):
    check_calibration(name, 12)


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", DENSITIES)
def test_the_error_is_honest_over_400_runs(name):
    check_calibration(name, 400)


@pytest.mark.statistical
def test_the_t_law_is_fitted_and_normalised():
    rng = np.random.default_rng(3)
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    truth = multivariate_t([1.0, -2.0], scale, df=4.0, seed=rng)
    law = fit_student_t(truth.rvs(20_000))
    np.testing.assert_allclose(law.location, [1.0, -2.0], atol=0.05)  # 4 standard errors of about 0.012
    np.testing.assert_allclose(law.factor @ law.factor.T, scale, atol=0.12)
    assert 3.5 < law.degrees < 4.6
    points = law.sample(50, rng)
    exact = multivariate_t(law.location, law.factor @ law.factor.T, df=law.degrees)
    np.testing.assert_allclose(law.log_density(points), exact.logpdf(points), rtol=1e-10)


def test_bridge_by_hand():
    assert bridge(np.full(7, 2.5), np.full(7, 2.5)).log_constant == pytest.approx(2.5)  # the proposal is the density
    assert bridge(np.full(7, 2.5), np.full(3, 2.5)).standard_error == 0.0
    rng = np.random.default_rng(4)
    half = np.where(rng.random(10_000) < 0.5, np.log(2.0), -np.inf)  # the density is twice the proposal on one half
    result = bridge(np.full(10_000, np.log(2.0)), half)
    assert result.log_constant == pytest.approx(0.0, abs=4 * result.standard_error)
    assert result.n_zero == np.isneginf(half).sum()


def test_a_density_that_vanishes_away_from_the_draws():
    rng = np.random.default_rng(5)
    result = log_constant(rng.random((4000, 1)), lambda x: np.where((x[:, 0] > 0) & (x[:, 0] < 1), 0.0, -np.inf), rng)
    assert abs(result.log_constant) < 4 * result.standard_error and result.n_zero > 0


def test_errors():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 1))
    with pytest.raises(InvalidArgumentError, match="n >= 40 d"):
        log_constant(x[:30], lambda x: x[:, 0], rng)
    with pytest.raises(InvalidArgumentError, match="1 values that are not finite"):
        log_constant(np.r_[x, [[np.nan]]], lambda x: x[:, 0], rng)
    with pytest.raises(InvalidArgumentError, match="singular"):
        log_constant(np.column_stack([x, np.ones(400)]), lambda x: x[:, 0], rng)
    with pytest.raises(DensityError, match=r"draws must be 200 numbers.*200 NaN"):
        log_constant(x, lambda x: np.full(len(x), np.nan), rng)
    with pytest.raises(DensityError, match="-inf at .* exact draws"):
        log_constant(x, lambda x: np.where(x[:, 0] > 0.0, 0.0, -np.inf), rng)
    with pytest.raises(DensityError, match="nothing in common"):
        bridge(np.zeros(10), np.full(10, -np.inf))


# ---- draws against density -----------------------------------------------------------------------------------

NARROW = (np.array([-50.0, 50.0]), np.array([0.1, 3.0]), np.array([0.02, 0.98]))  # means, deviations, weights


def gaussian_pair(n, rng, *, is_squared=False):
    """Draws of a correlated normal law, or of that with its covariance squared; the log density of the first."""
    covariance = np.linalg.inv(np.array([[1.0, -0.5, 0.0], [-0.5, 2.0, -0.5], [0.0, -0.5, 1.0]]))
    drawn = covariance @ covariance if is_squared else covariance
    law = stats.multivariate_normal(np.zeros(3), covariance)
    return rng.multivariate_normal(np.zeros(3), drawn, size=n), law.logpdf


def narrow_mixture(n, rng):
    means, deviations, weights = NARROW
    k = rng.choice(2, size=n, p=weights)
    terms = lambda x: stats.norm.logpdf(x, means, deviations) + np.log(weights)  # noqa: E731
    return (means[k] + deviations[k] * rng.standard_normal(n))[:, None], lambda x: logsumexp(terms(x), axis=1)


@pytest.mark.statistical
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_draws_that_follow_another_law_are_found_whatever_the_constant(offset):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        draws, log_density = gaussian_pair(2000, rng, is_squared=True)
        assert log_constant(draws, lambda x: log_density(x) + offset, rng).p_value < 1e-6  # noqa: B023


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("make", [gaussian_pair, narrow_mixture])
def test_draws_of_the_density_are_not_accused(make):
    """300 runs: p < 0.05 in at most the 99.9% quantile of Binomial(300, 0.05), p < 0.001 in at most 4 (of 0.3)."""
    p_values = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        draws, log_density = make(1000, rng)
        p_values.append(log_constant(draws, lambda x: log_density(x) - 1.0, rng).p_value)  # noqa: B023
    assert np.sum(np.array(p_values) < 0.05) <= stats.binom.ppf(0.999, 300, 0.05)
    assert np.sum(np.array(p_values) < 0.001) <= 4
