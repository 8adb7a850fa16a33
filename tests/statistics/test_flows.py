"""Flows of outcomes: mean zero where the likelihood fits, bounded outcomes too, and not where its spread is wrong."""

import numpy as np
import pytest
from scipy import stats

from bread.errors import InvalidArgumentError
from bread.statistics.flows import STEP, Line, conditional_mean_test, flow_of, line_of

pytestmark = pytest.mark.statistical


def slopes(outcomes, log_density):
    """The values whose mean is tested, as a check computes them: (n, field)."""
    line = line_of(outcomes)
    coordinates = line.to_line(outcomes)
    flow = flow_of(coordinates)
    columns = []
    for k in range(2):
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
