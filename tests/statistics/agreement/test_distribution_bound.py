"""The bound on the user's distribution functions holds for every x, and each of its three terms is needed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ks_2samp, norm

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.distribution_bound import cdf_differences, distribution_bound


def largest_error(draws):
    """Return the largest |F_user(x) - norm.cdf(x)| over all x, on both sides of every step."""
    ordered = np.sort(draws)
    exact = norm.cdf(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return max(np.abs(steps[1:] - exact).max(), np.abs(steps[:-1] - exact).max())


@pytest.mark.statistical
def test_bound_holds_and_every_term_is_needed():
    # 0.1 of the annealed law's mass, the posterior's top, lies at the bottom, and the user's draws lie further down:
    # the user's distribution function is above the annealed one, that above the posterior's, and errors add up.
    rng = np.random.default_rng(1)
    n_runs, error, alpha = 400, 0.1, 0.1
    violated = without_sampling = without_error = without_difference = 0
    for _ in range(n_runs):
        annealed = np.where(rng.random(200) < error, -5.0, norm.ppf(0.9 * rng.random(200)))
        user = rng.normal(size=200) - 0.8
        bound = distribution_bound(user[:, None], annealed[:, None], error=error, alpha=alpha)
        truth, limit = largest_error(user), bound.error_limit[0]
        violated += truth > limit
        without_sampling += truth > limit - bound.sampling_error
        without_error += truth > limit - error
        without_difference += truth > limit - bound.cdf_difference[0]
    assert violated <= binom.ppf(0.99, n_runs, alpha)
    assert without_sampling > binom.ppf(0.9999, n_runs, alpha)  # controls: one term left out
    assert without_error > binom.ppf(0.9999, n_runs, alpha)
    assert without_difference > binom.ppf(0.9999, n_runs, alpha)


@pytest.mark.statistical
def test_sampling_error_is_simultaneous():
    # Of the annealed draws alone: d = 20 distribution functions of 100 draws, all within the band in 80 % of runs.
    rng = np.random.default_rng(2)
    d, n, n_runs = 20, 100, 400
    band = distribution_bound(np.zeros((5, d)), rng.normal(size=(n, d)), error=0.0, alpha=0.2).sampling_error
    alone = distribution_bound(np.zeros((5, 1)), rng.normal(size=(n, 1)), error=0.0, alpha=0.2).sampling_error
    outside, outside_alone = 0, 0
    for _ in range(n_runs):
        largest = max(largest_error(rng.normal(size=n)) for _ in range(d))
        outside += largest > band
        outside_alone += largest > alone
    assert outside <= binom.ppf(0.99, n_runs, 0.2)
    assert outside_alone > 0.8 * n_runs  # control: without the correction for d


def test_size_for_good_draws():
    rng = np.random.default_rng(3)
    bound = distribution_bound(rng.normal(size=(4, 100, 10)), rng.normal(size=(1000, 10)), error=0.0, alpha=0.05)
    assert bound.sampling_error == pytest.approx(np.sqrt(np.log(400) / 2000))
    assert 0.08 < bound.error_limit.mean() < 0.13


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_difference_is_that_of_kolmogorov_and_smirnov(first, second):
    a, b = np.array(first, dtype=float)[:, None], np.array(second, dtype=float)[:, None]
    exact = max(abs((a <= x).mean() - (b <= x).mean()) for x in range(7))
    assert cdf_differences(a, b)[0] == pytest.approx(exact)
    assert exact == pytest.approx(ks_2samp(a[:, 0], b[:, 0], method="exact").statistic)


def test_constant_columns_and_the_largest_value():
    rounding = 1 + 1e-16 * np.random.default_rng(4).normal(size=(100, 1))
    assert distribution_bound(rounding, np.ones((50, 1)), error=0.1).cdf_difference[0] == 0.0
    assert distribution_bound(rounding + 1, np.ones((50, 1)), error=0.1).error_limit[0] == 1.0


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"error": -0.1}, "error must lie between 0 and 1, but got -0.1"),
        ({"error": 0.1, "alpha": 0.0}, "alpha must lie strictly between 0 and 1, but got 0"),
    ],
)
def test_errors(keywords, message):
    with pytest.raises(InvalidArgumentError, match=message):
        distribution_bound(np.zeros((5, 1)), np.zeros((5, 1)), **keywords)
