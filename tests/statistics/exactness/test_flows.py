"""Flows of outcomes: mean zero where the likelihood fits, bounded outcomes too, and not where its spread is wrong."""

import numpy as np
import pytest
from scipy import stats

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.flows import STEP, Line, conditional_mean_test, flow_of, line_of

pytestmark = pytest.mark.statistical


def slopes(outcomes, log_density, context=None):
    """The values whose mean is tested, as a check computes them: (n, field)."""
    line = line_of(outcomes)
    coordinates = line.to_line(outcomes)
    flow = flow_of(coordinates, context)
    columns = []
    for k in range(3):
        sides = []
        for sign in (1.0, -1.0):
            y, log_jacobian = line.from_line(coordinates + sign * STEP * flow.field[..., k])
            sides.append(log_density(y) + log_jacobian)
        columns.append((sides[0] - sides[1]) / (2 * STEP) + flow.divergence[:, k])
    return np.column_stack(columns)


LAWS = {
    "gamma": (lambda rng, theta: rng.gamma(2.0, theta), lambda theta, s: stats.gamma(2.0, scale=s * theta)),
    "exponential": (lambda rng, theta: rng.exponential(theta), lambda theta, s: stats.expon(scale=s * theta)),
    "beta": (lambda rng, theta: rng.beta(2.0, 1.0 + theta), lambda theta, s: stats.beta(2.0 * s, 1.0 + theta)),
    "normal": (lambda rng, theta: rng.normal(1.0, theta), lambda theta, s: stats.norm(1.0, s * theta)),
    "skewed": (
        lambda rng, theta: theta * rng.gumbel(size=theta.shape),
        lambda theta, s: stats.gumbel_r(0.0, s * theta),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_mean_is_zero_where_the_density_fits_and_not_where_its_spread_is_wrong(name):
    draw, law = LAWS[name]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        theta = np.exp(0.3 * rng.standard_normal((800, 1))) * np.ones((1, 4))
        outcomes = draw(rng, theta)
        sound = slopes(outcomes, lambda y, theta=theta: law(theta, 1.0).logpdf(y).sum(axis=1))
        wrong = slopes(outcomes, lambda y, theta=theta: law(theta, 1.5).logpdf(y).sum(axis=1))
        assert np.nanmin(conditional_mean_test(sound, theta[:, :1]).p_values) > 1e-4
        assert np.nanmin(conditional_mean_test(wrong, theta[:, :1]).p_values) < 1e-5


@pytest.mark.parametrize("name", ["none", "log", "logit"])
def test_maps_to_the_line_have_their_jacobian(name):
    y = np.array([[0.2], [0.7]])
    line = Line(name)
    x = line.to_line(y)
    back, log_jacobian = line.from_line(x)
    np.testing.assert_allclose(back, y, rtol=1e-12)
    step = 1e-6
    numeric = (line.from_line(x + step)[0] - line.from_line(x - step)[0]) / (2 * step)
    np.testing.assert_allclose(np.exp(log_jacobian), numeric[:, 0], rtol=1e-6)


def test_a_constant_outcome_does_not_move():
    flow = flow_of(np.ones((400, 2)))
    assert not flow.field.any() and not flow.divergence.any()


def test_bad_shapes_are_refused():
    with pytest.raises(InvalidArgumentError, match="n >= 200"):
        conditional_mean_test(np.zeros((100, 1)), np.zeros((100, 1)))


def located(seed, spread=1.0, n=500):
    """Outcomes about a mean that strays three times as far as they do, skewed, and the law that they should have."""
    rng = np.random.default_rng(seed)
    theta = 3.0 * rng.standard_normal((n, 1))
    noise = np.stack([rng.gumbel(size=n), rng.normal(size=n), rng.gumbel(size=n), rng.normal(size=n)], axis=1)
    outcomes = theta * np.array([1.0, 1.0, -1.0, 0.5]) + spread * noise

    def log_density(y):
        own = y - theta * np.array([1.0, 1.0, -1.0, 0.5])
        laws = stats.gumbel_r, stats.norm, stats.gumbel_r, stats.norm
        return sum(law.logpdf(own[:, j]) for j, law in enumerate(laws))

    return outcomes, log_density, theta


def test_the_mean_is_zero_where_centres_are_predicted():
    """200 sound runs at the level 0.01: at most 6 alarms: the 99% quantile of Binomial(200, 0.01)."""
    alarms = 0
    for seed in range(200):
        outcomes, log_density, theta = located(seed)
        found = conditional_mean_test(slopes(outcomes, log_density, theta), theta).p_values
        alarms += np.nanmin(found) * np.isfinite(found).sum() < 0.01
    assert alarms <= 6


def test_a_spread_that_theta_drowns_is_found_by_predicted_centres():
    """Outcomes 1.3 times too wide: found with each seed about predictions, with few about marginal centres."""
    plain, predicted = [], []
    for seed in range(20):
        outcomes, log_density, theta = located(seed, spread=1.3)
        for found, context in ((plain, None), (predicted, theta)):
            found.append(np.nanmin(conditional_mean_test(slopes(outcomes, log_density, context), theta).p_values))
    assert max(predicted) < 1e-3
    assert np.median(plain) > 1e-3


def test_outcomes_that_depend_on_each_other_are_found_and_a_density_that_says_so_is_not_accused():
    """Equal correlations of 0.2 that the density leaves out, and the density that has them."""
    covariance = 0.8 * np.eye(4) + 0.2
    for seed in range(10):
        rng = np.random.default_rng(seed)
        theta = 2.0 * rng.standard_normal((1000, 1))
        outcomes = theta + rng.multivariate_normal(np.zeros(4), covariance, 1000)

        def alone(y, theta=theta):
            return stats.norm.logpdf(y - theta).sum(axis=1)

        def together(y, theta=theta):
            return stats.multivariate_normal(np.zeros(4), covariance).logpdf(y - theta)

        wrong = conditional_mean_test(slopes(outcomes, alone, theta), theta).p_values
        assert np.nanargmin(np.nanmin(wrong, axis=1)) == 2 and np.nanmin(wrong) < 1e-4
        assert np.nanmin(conditional_mean_test(slopes(outcomes, together, theta), theta).p_values) > 1e-4


def test_a_single_outcome_has_no_others():
    flow = flow_of(np.random.default_rng(0).normal(size=(400, 1)))
    assert not flow.field[..., 2].any() and not flow.divergence[:, 2].any()


def test_predictions_are_used_where_they_help_and_come_from_the_first_quarter():
    outcomes, _, theta = located(1)
    outcomes = np.column_stack([outcomes, np.random.default_rng(5).normal(size=len(outcomes))])
    flow = flow_of(outcomes, theta)
    assert (flow.scale[:4] < 1.8).all() and flow.scale[4] > 0.6
    assert np.ptp(flow.centre[:, 4]) == 0.0 and (np.ptp(flow.centre[:, :4], axis=0) > 1.0).all()
    changed = outcomes.copy()
    changed[len(outcomes) // 4 :] += 100.0
    assert np.array_equal(flow_of(changed, theta).centre, flow.centre)


def test_a_constant_context_and_a_wide_one_predict_nothing():
    outcomes, _, _ = located(2)
    for context in (np.ones((500, 2)), np.zeros((500, 0)), np.random.default_rng(3).normal(size=(500, 300))):
        assert (np.ptp(flow_of(outcomes, context).centre, axis=0) == 0.0).all()


def test_thousands_of_parameters_cost_no_cube_of_their_number():
    """The centre is the same with columns that are constant beside one that predicts, whatever their number."""
    outcomes, _, theta = located(4)
    few = flow_of(outcomes, np.column_stack([theta, np.ones((500, 3))]))
    many = flow_of(outcomes, np.column_stack([theta, np.ones((500, 4000))]))
    np.testing.assert_allclose(many.centre, few.centre, rtol=1e-9, atol=1e-9)
    assert (np.ptp(many.centre, axis=0) > 1.0).all()
