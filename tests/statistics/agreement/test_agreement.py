"""Agreement of the user's autocorrelated draws with annealed ones: level, power, effective sample size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ks_2samp, norm

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.agreement import (
    agreement_test,
    distribution_size,
    effective_sample_size,
    holm_adjusted,
    quantile_effective_size,
)
from tests.support.user_draws import LAWS, autoregression, hopping


@pytest.mark.statistical
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.97])
def test_effective_sample_size_of_an_autoregression(correlation):
    draws = autoregression(np.random.default_rng(1), correlation, (4, 1000, 100))
    sizes = effective_sample_size(draws)
    exact = 4000 * (1 - correlation) / (1 + correlation)
    assert np.median(sizes) == pytest.approx(exact, rel=0.1)
    assert (sizes <= 4000).all()


@pytest.mark.statistical
def test_effective_sample_size_sees_what_one_chain_hides():
    rng = np.random.default_rng(2)
    apart = rng.normal(size=(4, 500, 1)) + np.array([0, 0, 5, 5])[:, None, None]
    drifting = rng.normal(size=(1, 1000, 1)) + np.linspace(0, 5, 1000)[None, :, None]
    scales = rng.normal(size=(4, 500, 1)) * np.array([1, 1, 20, 20])[:, None, None]
    for draws in (apart, drifting, scales):
        assert effective_sample_size(draws)[0] < 15
    antithetic = effective_sample_size(autoregression(rng, -0.5, (4, 1000, 1)))
    assert 1000 < antithetic[0] <= 4000


def one_p_value_per_component(draws, annealed):
    """Return unadjusted p-values by testing each component alone."""
    return np.array(
        [agreement_test({"x": draws[:, :, i]}, {"x": annealed[:, i]}).p_value[0] for i in range(draws.shape[2])]
    )


@pytest.mark.statistical
@pytest.mark.parametrize("correlation", [0.0, 0.9, 0.97])
def test_level_with_autocorrelated_draws(correlation):
    rng = np.random.default_rng(3)
    draws, annealed = autoregression(rng, correlation, (4, 500, 300)), rng.normal(size=(200, 300))
    count = (one_p_value_per_component(draws, annealed) <= 0.05).sum()
    assert count <= binom.ppf(0.99, 300, 0.05)  # 99 % quantile
    if correlation > 0.8:  # negative control: all draws, as if they were independent
        naive = [ks_2samp(draws[:, :, i].ravel(), annealed[:, i]).pvalue for i in range(300)]
        assert (np.array(naive) <= 0.05).sum() > binom.ppf(0.99, 300, 0.05)


@pytest.mark.statistical
def test_combined_level_over_many_components():
    rng = np.random.default_rng(4)
    count = 0
    for _ in range(100):
        draws = {"mu": autoregression(rng, 0.8, (4, 300, 1))[:, :, 0], "theta": autoregression(rng, 0.8, (4, 300, 8))}
        annealed = {"mu": rng.normal(size=100), "theta": rng.normal(size=(100, 8))}
        count += agreement_test(draws, annealed).p_value_combined <= 0.05
    assert count <= binom.ppf(0.99, 100, 0.05)


@pytest.mark.statistical
def test_draws_in_one_of_two_modes_disagree():
    rng = np.random.default_rng(5)
    stuck = {"x": 4 + autoregression(rng, 0.5, (4, 500, 1))[:, :, 0]}  # chains agree with each other
    annealed = {"x": rng.choice([-4.0, 4.0], size=40) + rng.normal(size=40)}
    result = agreement_test(stuck, annealed)
    assert result.n_effective[0] > 400
    assert result.p_value_combined < 0.01
    assert 0.7 < result.shift[0] < 1.4  # the annealed mean lies about one standard deviation lower
    both = {"x": rng.choice([-4.0, 4.0], size=(4, 500)) + rng.normal(size=(4, 500))}
    assert agreement_test(both, annealed).p_value_combined > 0.01


def test_names_and_common_variables():
    rng = np.random.default_rng(6)
    reference = {"mu": rng.normal(size=(2, 50)), "corr": rng.normal(size=(2, 50, 2, 2))}
    reference["not annealed"] = rng.normal(size=(2, 50))
    result = agreement_test(reference, {"corr": rng.normal(size=(30, 2, 2)), "mu": rng.normal(size=30)})
    assert result.names == ("mu", "corr[0,0]", "corr[0,1]", "corr[1,0]", "corr[1,1]")
    assert result.p_value.shape == result.shift.shape == result.n_effective.shape == (5,)
    assert result.p_value_combined == result.p_value.min()
    shifted = {"mu": reference["mu"], "corr": reference["corr"] + [[0, 0], [9, 0]]}
    worst = agreement_test(shifted, {"corr": rng.normal(size=(30, 2, 2)), "mu": rng.normal(size=30)})
    assert worst.names[int(worst.p_value.argmin())] == "corr[1,0]"
    assert worst.shift.argmax() == 3


def test_constant_and_discrete_components():
    rng = np.random.default_rng(7)
    rounding = 1e-16 * rng.normal(size=(2, 200))
    annealed = {"one": np.ones(50), "k": rng.poisson(2.0, size=50)}
    agreeing = agreement_test({"one": 1 + rounding, "k": rng.poisson(2.0, size=(2, 200))}, annealed)
    assert agreeing.p_value[0] == 1.0 and agreeing.shift[0] == 0.0
    assert agreeing.p_value_combined > 0.01
    differing = agreement_test({"one": 1 + rounding, "k": rng.poisson(6.0, size=(2, 200))}, annealed)
    assert differing.p_value_combined < 0.01
    assert np.isnan(agreement_test({"one": np.ones((2, 20))}, {"one": np.ones(5)}).p_value_combined)
    off = agreement_test({"one": np.full((2, 200), 2.0)}, {"one": np.ones(50)})
    assert off.p_value_combined < 0.01 and off.shift[0] == np.inf


def test_few_draws():
    rng = np.random.default_rng(8)
    short = agreement_test({"x": rng.normal(size=(2, 3))}, {"x": rng.normal(size=10)})
    assert short.n_effective[0] == 2 and 0 <= short.p_value_combined <= 1
    single = agreement_test({"x": rng.normal(size=(1, 100))}, {"x": rng.normal(size=1)})
    assert np.isnan(single.shift[0]) and single.p_value_combined > 0.001


@pytest.mark.parametrize(
    ("reference", "annealed", "message"),
    [
        ({"a": np.zeros((2, 5))}, {"b": np.zeros(5)}, r"share a name.*\['a'\] and \['b'\]"),
        ({"a": np.zeros((2, 5, 3))}, {"a": np.zeros((5, 2))}, r"'a' must have shape.*\(2, 5, 3\) and \(5, 2\)"),
        ({"a": np.zeros(5)}, {"a": np.zeros(5)}, "'a' must have shape"),
        ({"a": np.zeros((2, 0))}, {"a": np.zeros(5)}, "'a' must have draws"),
        ({"a": np.full((2, 5), np.nan)}, {"a": np.zeros(5)}, "draws of 'a' must be finite, but 10 reference"),
    ],
)
def test_errors(reference, annealed, message):
    with pytest.raises(InvalidArgumentError, match=message):
        agreement_test(reference, annealed)


def test_holm():
    np.testing.assert_allclose(holm_adjusted(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])
    np.testing.assert_allclose(holm_adjusted(np.array([0.9, 0.8])), [1.0, 1.0])


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10_000), st.floats(-100, 100), st.floats(0.1, 10))
def test_agreement_ignores_units(seed, shift, scale):
    rng = np.random.default_rng(seed)
    draws, annealed = autoregression(rng, 0.5, (2, 100, 2)), rng.normal(size=(30, 2))
    expected = agreement_test({"x": draws}, {"x": annealed})
    changed = agreement_test({"x": shift + scale * draws}, {"x": shift + scale * annealed})
    np.testing.assert_allclose(changed.p_value, expected.p_value, rtol=1e-9)
    np.testing.assert_allclose(changed.shift, expected.shift, atol=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95])
def test_effective_size_of_a_quantile_is_that_of_its_indicator(probability):
    draws = autoregression(np.random.default_rng(9), 0.8, (4, 1000, 400))
    share = (draws <= norm.ppf(probability)).mean(axis=(0, 1))  # truth: the variance of 400 shares, 7 % known
    exact = probability * (1 - probability) / share.var()
    assert np.median(quantile_effective_size(draws, probability)) == pytest.approx(exact, rel=0.2)
    assert np.median(effective_sample_size(draws)) < 0.8 * exact  # control: the size of the mean is another number


@pytest.mark.statistical
def test_a_rare_mode_that_is_seldom_visited_lowers_the_size():
    draws = hopping(np.random.default_rng(10), 0.05, 10, (4, 500, 100))
    assert np.median(distribution_size(draws)) < 250  # 2000 draws, mode weight known as from about 105
    assert np.median(effective_sample_size(draws)) > 350  # control: the mean's does not see it


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["cauchy", "poisson", "bernoulli", "zero-inflated"])
def test_level_with_tails_and_ties(law):
    rng = np.random.default_rng(11)
    draws, annealed = LAWS[law](autoregression(rng, 0.8, (4, 500, 200))), LAWS[law](rng.normal(size=(500, 200)))
    count = (one_p_value_per_component(draws, annealed) <= 0.05).sum()
    assert count <= binom.ppf(0.99, 200, 0.05)


def correlated(z, correlation):
    """Return two columns of normal draws with the correlation given to the second."""
    return np.stack([z[..., 0], correlation * z[..., 0] + np.sqrt(1 - correlation**2) * z[..., 1]], axis=-1)


@pytest.mark.statistical
def test_products_of_pairs_see_a_wrong_correlation():
    rng = np.random.default_rng(12)
    seen, seen_without, false = 0, 0, 0
    for _ in range(40):
        user, annealed = autoregression(rng, 0.5, (4, 500, 2)), rng.normal(size=(1000, 2))
        wrong = {"x": correlated(annealed, 0.6)}
        seen += agreement_test({"x": user}, wrong, most_pairs=1).p_value_combined <= 0.01
        seen_without += agreement_test({"x": user}, wrong).p_value_combined <= 0.01
        right = {"x": correlated(user, 0.6)}
        false += agreement_test(right, wrong, most_pairs=1).p_value_combined <= 0.01
    assert seen >= 38
    assert seen_without <= 3 and false <= 3  # 99.9 % quantile of 1 % of 40: 3. Control: margins agree


@pytest.mark.statistical
def test_log_density_sees_a_spread_that_is_a_little_wrong_everywhere():
    rng = np.random.default_rng(13)
    user, annealed = 0.93 * autoregression(rng, 0.3, (4, 500, 50)), rng.normal(size=(1000, 50))
    log_density = (-0.5 * (user**2).sum(axis=2), -0.5 * (annealed**2).sum(axis=1))
    result = agreement_test({"x": user}, {"x": annealed}, log_density=log_density)
    assert result.names[50] == "log density" and result.p_value[50] < 1e-6
    assert result.p_value[:50].min() > 0.01  # no parameter shows it


def test_quantities_are_in_order_and_named():
    rng = np.random.default_rng(14)
    draws = {"mu": rng.normal(size=(2, 50)), "one": np.ones((2, 50)), "tau": rng.normal(size=(2, 50))}
    annealed = {"mu": rng.normal(size=30), "one": np.ones(30), "tau": rng.normal(size=30)}
    log_density = (rng.normal(size=(2, 50)), rng.normal(size=30))
    result = agreement_test(draws, annealed, log_density=log_density, most_pairs=10)
    assert result.names == ("mu", "one", "tau", "log density", "mu * tau")
    expected = ks_2samp(draws["mu"].ravel(), annealed["mu"]).statistic
    assert result.difference[0] == pytest.approx(expected) and result.difference[1] == 0.0


def test_error_of_the_annealed_draws_is_allowed_for():
    rng = np.random.default_rng(15)
    user, annealed = rng.normal(size=(4, 500)), rng.normal(size=1000)
    annealed[:120] += 8  # the law of the annealed draws is 0.12 from the user's
    allowed = agreement_test({"x": user}, {"x": annealed}, error=0.12)
    assert allowed.p_value_combined < 1e-3 and allowed.p_value_beyond_error_combined > 0.05
    assert agreement_test({"x": user}, {"x": annealed}, error=0.01).p_value_beyond_error_combined < 1e-3
    assert agreement_test({"x": user}, {"x": annealed}).p_value_beyond_error[0] == allowed.p_value[0]


def test_errors_of_what_is_added():
    draws, annealed = {"x": np.zeros((2, 5))}, {"x": np.zeros(5)}
    with pytest.raises(InvalidArgumentError, match=r"'log density' has \(2, 4\).*where the first has \(2, 5\) and 5"):
        agreement_test(draws, annealed, log_density=(np.zeros((2, 4)), np.zeros(5)))
    with pytest.raises(InvalidArgumentError, match="error must lie between 0 and 1, but got 2"):
        agreement_test(draws, annealed, error=2.0)
