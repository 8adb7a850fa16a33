"""The score test: level on clean models, asymmetric and heavy-tailed ones among them, and power for planted defects."""

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.score import (
    likelihood_score_test,
    outcome_coordinates,
    outcome_score_test,
    prior_score_test,
)
from tests.support.score_models import (
    CLEAN,
    cauchy,
    correlations,
    funnel,
    hierarchy,
    known_scale,
    many,
    rare_events,
    skewed,
)

N_DRAWS = 1000


def all_tests(draws):
    """Return the p-values of the three tests; those without anything to test are left out."""
    tests = [prior_score_test(draws.theta, draws.prior), likelihood_score_test(draws.theta, draws.likelihood)]
    if draws.outcomes.shape[1]:
        tests.append(outcome_score_test(draws.outcomes, draws.by_outcomes, draws.theta))
    return np.array([test.p_value for test in tests if not np.isnan(test.p_value)])


def check_level(simulate, n_runs):
    rng = np.random.default_rng(1)
    p = np.array([all_tests(simulate(rng, N_DRAWS)) for _ in range(n_runs)])
    for level in (0.05, 0.01, 0.001):
        assert ((p <= level).sum(axis=0) <= binom.ppf(0.99, n_runs, level)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("name", CLEAN)
def test_clean_models_pass(name):
    check_level(CLEAN[name], 10)


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", CLEAN)
def test_level_over_400_runs(name):
    check_level(CLEAN[name], 400)


@pytest.mark.statistical
def test_level_check_rejects_plain_t_tests_without_a_window():
    rng = np.random.default_rng(1)
    p = [ttest_1samp(rare_events(rng, N_DRAWS).prior[:, 1], 0.0).pvalue for _ in range(100)]
    assert (np.array(p) <= 0.001).sum() > binom.ppf(0.99, 100, 0.001)


# name: (draws with a planted defect, which of prior, likelihood, outcomes must see it)
DEFECTS = {
    "sd where a variance is meant, prior": (lambda rng: hierarchy(rng, N_DRAWS, prior_power=0.5), 0),
    "sd where a variance is meant, likelihood": (lambda rng: hierarchy(rng, N_DRAWS, noise_power=0.5), 1),
    "sd where a variance is meant, known scale": (lambda rng: known_scale(rng, N_DRAWS, noise_power=0.5), 2),
    "prior centred ten deviations away": (lambda rng: known_scale(rng, N_DRAWS, prior_shift=20.0), 0),
    "prior centred half a deviation away": (lambda rng: known_scale(rng, N_DRAWS, prior_shift=1.0), 0),
    "ten times the rate": (lambda rng: rare_events(rng, N_DRAWS, 10.0), 1),
    "rate of a gamma law": (lambda rng: skewed(rng, N_DRAWS, 1.5), 1),
    "rate of a gamma law, by outcomes": (lambda rng: skewed(rng, N_DRAWS, 1.5), 2),
    "sd where a variance is meant, funnel": (lambda rng: funnel(rng, N_DRAWS, power=0.5), 0),
    "Cauchy outcomes with twice the scale": (lambda rng: cauchy(rng, N_DRAWS, 2.0), 2),
    "correlations drawn from the wrong beta law": (lambda rng: correlations(rng, N_DRAWS, -1.0), 0),
    "spread 10% too large in sixty coordinates": (lambda rng: many(rng, N_DRAWS, spread=1.1), 0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", DEFECTS)
def test_planted_defects_are_found(name):
    simulate, where = DEFECTS[name]
    for seed in range(4):
        assert all_tests(simulate(np.random.default_rng(seed)))[where] < 1e-4


@pytest.mark.statistical
def test_a_defect_is_seen_where_it_is_and_nowhere_else():
    prior, likelihood, outcomes = all_tests(hierarchy(np.random.default_rng(2), N_DRAWS, prior_power=0.5))
    assert prior < 1e-15 and likelihood > 0.01 and outcomes > 0.01
    # A constant scale leaves the mean score by the parameters zero: only the outcomes can tell.
    prior, likelihood, outcomes = all_tests(known_scale(np.random.default_rng(2), N_DRAWS, noise_power=0.5))
    assert prior > 0.01 and likelihood > 0.01 and outcomes < 1e-12


@pytest.mark.statistical
def test_the_three_identities_are_not_interchangeable():
    draws = known_scale(np.random.default_rng(3), N_DRAWS)
    assert prior_score_test(draws.theta, draws.likelihood).p_value < 1e-4  # a divergence too many
    assert likelihood_score_test(draws.theta, draws.prior).p_value < 1e-10  # a divergence too few
    assert likelihood_score_test(draws.outcomes, draws.by_outcomes).p_value < 1e-10


@pytest.mark.statistical
def test_the_worst_function_is_named():
    draws = known_scale(np.random.default_rng(4), N_DRAWS, prior_shift=2.0)
    result = prior_score_test(draws.theta, draws.prior)
    assert result.functions == ("1", "tanh(own)") and result.worst[1:] == (0, "1")
    assert result.effect[0, 0] > 0.2
    wrong = many(np.random.default_rng(4), N_DRAWS, dim=6)
    wrong.prior[:, 3] *= 1.6
    result = prior_score_test(wrong.theta, wrong.prior, groups=[0, 0, 1, 1, 1, 1])
    assert result.worst[:2] == ("coordinate", 3)
    assert result.pooled_p_values.shape == (2, 2) and result.others.shape == (6, 5)
    assert {tuple(sorted([i, *row])) for i, row in enumerate(result.others)} == {(0, 1, 2, 3, 4, 5)}


@pytest.mark.statistical
def test_gradients_that_are_not_finite_are_counted():
    draws = known_scale(np.random.default_rng(5), N_DRAWS)
    gradient = draws.by_outcomes.copy()
    gradient[-1, 2] = np.nan
    draws.outcomes[-1, 2] = 0.0  # within the window
    gradient[np.argmax(draws.outcomes[:, 3]), 3] = np.inf
    result = outcome_score_test(draws.outcomes, gradient, draws.theta)
    np.testing.assert_array_equal(result.n_not_finite, [0, 0, 1, 1, 0])
    assert np.isnan(result.p_values[2]).all() and not np.isnan(result.p_values[0]).any()
    far = draws.theta.copy()
    far[-1] = 1e6  # outside of the window f is zero, whatever the gradient
    gradient = draws.prior.copy()
    gradient[-1] = -np.inf
    result = prior_score_test(far, gradient)
    assert result.n_not_finite[0] == 1 and not np.isnan(result.p_values).any() and result.p_value > 0.01


def test_discrete_coordinates_are_not_tested():
    draws = many(np.random.default_rng(6), N_DRAWS, dim=3)
    draws.prior[:, 1] = np.nan
    result = prior_score_test(draws.theta, draws.prior, is_continuous=[True, False, True])
    assert np.isnan(result.p_values[1]).all() and result.n_not_finite[1] == 0
    assert not np.isnan(result.p_values[[0, 2]]).any()
    nothing = prior_score_test(draws.theta, draws.prior, is_continuous=[False] * 3)
    assert np.isnan(nothing.p_value) and nothing.worst is None
    empty = prior_score_test(np.zeros((300, 0)), np.zeros((300, 0)))
    assert np.isnan(empty.p_value) and empty.p_values.shape == (0, 2)


@pytest.mark.statistical
def test_bounded_outcomes_need_their_map():
    rng = np.random.default_rng(7)
    rate = rng.gamma(4.0, size=(N_DRAWS, 1))
    y = rng.exponential(size=(N_DRAWS, 3)) / rate
    gradient = np.tile(-rate, (1, 3))
    assert outcome_score_test(y, gradient, np.log(rate)).p_value < 1e-6  # the density is not zero at the bound
    assert outcome_score_test(*outcome_coordinates(y, gradient, 0.0, np.inf), np.log(rate)).p_value > 0.01
    assert outcome_score_test(*outcome_coordinates(-y, -gradient, -np.inf, 0.0), np.log(rate)).p_value > 0.01
    shares = 2.0 + 3.0 * rng.beta(0.5, 1.0, size=(N_DRAWS, 3))
    gradient = -0.5 / (shares - 2.0)
    mapped = outcome_coordinates(shares, gradient, [2.0] * 3, 5.0)
    np.testing.assert_allclose(mapped[0], np.log((shares - 2.0) / (5.0 - shares)))
    assert outcome_score_test(*mapped, np.zeros((N_DRAWS, 0))).p_value > 0.01
    unbounded = outcome_coordinates(y, gradient, -np.inf, np.inf)
    np.testing.assert_array_equal(unbounded[0], y)


def test_units_do_not_matter():
    draws = hierarchy(np.random.default_rng(8), N_DRAWS)
    factor, shift = np.array([1e-3, 2.0, 1.0, 1e3, 5.0, 1.0, 1.0]), 7.0
    expected = prior_score_test(draws.theta, draws.prior)
    result = prior_score_test(draws.theta * factor + shift, draws.prior / factor)
    np.testing.assert_allclose(result.p_values, expected.p_values, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "s", "options", "message"),
    [
        (np.zeros((50, 1)), np.zeros((50, 1)), {}, "200 draws"),
        (np.zeros((300, 2)), np.zeros((300, 1)), {}, r"\(300, 2\) and \(300, 1\)"),
        (np.zeros((300, 2)), np.zeros((300, 2)), {"groups": [0]}, "groups"),
        (np.zeros((300, 2)), np.zeros((300, 2)), {"is_continuous": [True]}, "is_continuous"),
    ],
)
def test_errors(x, s, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        prior_score_test(x, s, **options)
    with pytest.raises(InvalidArgumentError, match="context"):
        outcome_score_test(np.zeros((300, 1)), np.zeros((300, 1)), np.zeros((3, 1)))
