"""Interval contents: limits that hold together, levels with autocorrelated and tied draws, sample size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, binomtest, norm

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.content import QUANTILES, clopper_pearson, draws_needed, interval_contents
from bread.statistics.agreement.content_counts import content_p_values, discounted
from tests.support.comparing import sizes_of
from tests.support.user_draws import LAWS, autoregression


def test_shares_of_a_known_case():
    user = np.arange(1.0, 101.0).reshape(4, 25, 1)  # quantiles 5, 50, 95
    annealed = np.concatenate([np.full(100, 2.5), np.full(600, 60.5), np.full(300, 99.5)])[:, None]
    result = interval_contents(user, annealed, [100.0], error=0.0)
    np.testing.assert_array_equal(result.quantile, [[5, 50, 95]])
    np.testing.assert_allclose(result.content, [[0.1, 0.1, 0.7]])
    limits = binomtest(100, 1000).proportion_ci(1 - 0.05 / 3)
    np.testing.assert_allclose([result.lower[0, 0], result.upper[0, 0]], [limits.low, limits.high])
    interval = binomtest(600, 1000).proportion_ci(1 - 0.05 / 3)
    assert result.interval[0] == pytest.approx(0.6)
    np.testing.assert_allclose([result.interval_lower[0], result.interval_upper[0]], [interval.low, interval.high])


@pytest.mark.statistical
def test_limits_hold_together():
    # Truth: norm.cdf of the user's quantiles, which are given. Wrong draws have limits that hold as well.
    rng = np.random.default_rng(1)
    covered, covered_alone, n_runs, d = 0, 0, 400, 5
    for _ in range(n_runs):
        user = 0.8 * rng.normal(size=(4, 100, d)) + 0.3
        annealed = rng.normal(size=(300, d))
        result = interval_contents(user, annealed, np.full(d, 400.0), error=0.0)
        truth = norm.cdf(result.quantile)
        covered += ((result.lower <= truth) & (truth <= result.upper)).all()
        lower, upper = clopper_pearson(300 * result.content, 300, 0.05)  # control: not corrected for 15
        covered_alone += ((lower <= truth) & (truth <= upper)).all()
    assert covered >= binom.ppf(0.01, n_runs, 0.95)
    assert covered_alone < binom.ppf(0.01, n_runs, 0.75)


def alarms(law, correlation, rng, n_columns, n_effective=None):
    """Return the smallest p-value, corrected, of comparisons of one quantity each."""
    user = LAWS[law](autoregression(rng, correlation, (4, 500, n_columns)))
    annealed = LAWS[law](rng.normal(size=(1000, n_columns)))
    sizes = sizes_of(user) if n_effective is None else np.full((n_columns, 3), n_effective)
    return np.array(
        [
            interval_contents(user[..., [i]], annealed[:, [i]], sizes[[i]], error=0.0).p_value.min()
            for i in range(n_columns)
        ]
    )


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_level_with_autocorrelation_tails_and_ties(law):
    rng = np.random.default_rng(2)
    assert (alarms(law, 0.8, rng, 200) <= 0.05).sum() <= binom.ppf(0.99, 200, 0.05)
    if law == "normal":  # control: as if 2000 draws worth about 220 were independent
        assert (alarms(law, 0.8, rng, 100, 2000.0) <= 0.05).sum() > binom.ppf(0.9999, 100, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["poisson", "bernoulli", "zero-inflated"])
def test_ties_are_divided_as_the_users_are(law):
    rng = np.random.default_rng(3)
    user, annealed = LAWS[law](rng.normal(size=(4, 2500, 1))), LAWS[law](rng.normal(size=(20_000, 1)))
    result = interval_contents(user, annealed, [10_000.0], error=0.0)
    # 4 standard errors of both shares: user's 10 000 and annealed 20 000 draws.
    nominal = np.array(QUANTILES)
    errors = 4 * np.sqrt(nominal * (1 - nominal) * (1 / 10_000 + 1 / 20_000))
    assert (np.abs(result.content[0] - nominal) < errors).all()
    at_most = (annealed <= result.quantile).sum(axis=0)  # control: ties all counted as below
    naive = content_p_values(at_most, 20_000, 10_000.0, nominal, error=0.0)
    assert naive.min() < 1e-12


@pytest.mark.statistical
def test_a_wrong_spread_shows_in_the_interval():
    rng = np.random.default_rng(8)
    seen, seen_in_shares, n_runs = 0, 0, 50
    for _ in range(n_runs):
        user, annealed = np.sqrt(0.5) * rng.normal(size=(1, 400, 1)), rng.normal(size=(1000, 1))
        result = interval_contents(user, annealed, [400.0], error=0.04)
        seen += result.p_value_beyond_error[0, 3] <= 0.01
        seen_in_shares += result.p_value_beyond_error[0, :3].min() <= 0.01
    assert seen >= 0.9 * n_runs
    assert seen_in_shares < 0.5 * n_runs  # control: each end alone is within the error


def test_a_different_discrete_law_is_seen():
    rng = np.random.default_rng(4)
    user, annealed = rng.random((4, 500, 1)) < 0.45, rng.random((1000, 1)) < 0.25
    assert interval_contents(user, annealed, [2000.0], error=0.0).p_value.min() < 1e-6


@pytest.mark.statistical
def test_error_of_the_annealed_draws_is_allowed_for():
    rng = np.random.default_rng(5)
    n_runs, beyond, equal = 400, 0, 0
    for _ in range(n_runs):
        user, annealed = rng.normal(size=(1, 400, 1)), rng.normal(size=(1000, 1))
        annealed[rng.random((1000, 1)) < 0.08] = 9.0  # 0.08 of their law is nowhere near the posterior
        result = interval_contents(user, annealed, [400.0], error=0.08)
        beyond += result.p_value_beyond_error.min() <= 0.05
        equal += result.p_value.min() <= 0.05
    assert beyond <= binom.ppf(0.99, n_runs, 0.05)
    assert equal > 0.5 * n_runs  # control: without the allowance


def test_p_values_are_those_of_the_beta_binomial():
    size = float(discounted(300.0))
    for nominal, counts in ((0.05, [30, 50, 90]), (0.5, [430, 500, 590]), (0.95, [900, 951, 985])):
        law = betabinom(1000, size * nominal, size * (1 - nominal))
        exact = [min(1.0, 2 * min(law.sf(k - 1), law.cdf(k))) for k in counts]
        np.testing.assert_allclose(content_p_values(counts, 1000, 300.0, nominal, error=0.0), exact, rtol=1e-6)


@pytest.mark.statistical
@pytest.mark.study
def test_tails_of_p_values_where_the_effective_size_is_an_estimate():
    # 4000 comparisons at the level of one of 30: without the discount the estimate's own error shows.
    rng = np.random.default_rng(6)
    user, annealed = autoregression(rng, 0.8, (4, 500, 4000)), rng.normal(size=(1000, 4000))
    sizes, nominal = sizes_of(user), np.array(QUANTILES)
    quantile = np.quantile(user, QUANTILES, axis=(0, 1), method="inverted_cdf")
    counts = (annealed < quantile[:, None]).sum(axis=1).T
    p_values = content_p_values(counts, 1000, sizes, nominal, error=0.0)
    for level in (0.01, 0.001):
        assert ((p_values <= level).sum(axis=0) <= binom.ppf(0.999, 4000, level)).all()


def test_constant_and_nearly_constant_columns_are_left_out():
    rng = np.random.default_rng(7)
    both = np.stack([1 + 1e-16 * rng.normal(size=(2, 200)), rng.normal(size=(2, 200))], axis=2)
    annealed = np.stack([np.ones(100), rng.normal(size=100)], axis=1)
    result = interval_contents(both, annealed, [400.0, 400.0], error=0.0)
    assert np.isnan(result.content[0]).all() and np.isnan(result.p_value[0]).all() and np.isnan(result.interval[0])
    alone = interval_contents(both[..., 1:], annealed[:, 1:], [400.0], error=0.0)
    np.testing.assert_array_equal(result.lower[1], alone.lower[0])  # the constant is not counted
    off = interval_contents(np.full((2, 200, 1), 2.0), np.ones((100, 1)), [400.0], error=0.0)
    assert (off.content[0] == 1.0).all() and off.p_value.min() < 1e-6


def test_draws_needed():
    needed = [draws_needed(d) for d in (1, 10, 100)]
    assert needed == sorted(needed) and 900 < needed[1] < 1100
    for d, n in zip((1, 10, 100), needed, strict=True):
        count = np.ceil(np.array([0.05, 0.5]) * n)
        lower, upper = clopper_pearson(count, n, 0.05 / (3 * d))
        width = np.maximum(upper - count / n, count / n - lower)
        assert width[0] < 0.0255 and width[1] < 0.0505 and max(width[0] / 0.025, width[1] / 0.05) > 0.97


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10), st.floats(-5, 5))
def test_contents_ignore_units(seed, scale, shift):
    rng = np.random.default_rng(seed)
    user, annealed = rng.normal(size=(2, 101, 2)), rng.normal(size=(50, 2))
    expected = interval_contents(user, annealed, [150.0, 150.0], error=0.02)
    changed = interval_contents(shift + scale * user, shift + scale * annealed, [150.0, 150.0], error=0.02)
    np.testing.assert_allclose(changed.content, expected.content)
    np.testing.assert_allclose(changed.p_value, expected.p_value)
    assert (expected.p_value_beyond_error >= expected.p_value).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 5, 3)), np.zeros((5, 2)), [9.0]), r"equal d, but got \(2, 5, 3\) and \(5, 2\)"),
        ((np.zeros(5), np.zeros((5, 2)), [9.0]), "user must have shape"),
        ((np.zeros((0, 2)), np.zeros((5, 2)), [9.0]), "must hold draws"),
        ((np.full((5, 1), np.nan), np.zeros((5, 1)), [9.0]), "user must be finite, but 5 of 5"),
        ((np.zeros((5, 1)), np.full((5, 1), np.inf), [9.0]), "annealed must be finite"),
        ((np.zeros((5, 1)), np.zeros((5, 1)), [0.0]), "n_effective must be positive"),
        ((np.zeros((5, 1)), np.zeros((5, 1)), [9.0, 9.0]), r"shape \(1,\) or \(1, 3\), but got shape \(2,\)"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        interval_contents(*arguments, error=0.0)


def test_errors_of_numbers():
    draws = np.zeros((5, 1))
    with pytest.raises(InvalidArgumentError, match="error must be at least 0 and below 1, but got 1.5"):
        interval_contents(draws, draws, [5.0], error=1.5)
    with pytest.raises(InvalidArgumentError, match="level must lie strictly between 0 and 1, but got 1"):
        interval_contents(draws, draws, [5.0], error=0.0, level=1.0)
    with pytest.raises(InvalidArgumentError, match="n_quantities must be 1 or more, but got 0"):
        draws_needed(0)
