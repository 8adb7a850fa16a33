"""Laws of scales and Gaussian laws given them: moments, and where no matrix has an inverse."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.errors import InvalidArgumentError
from bread.paths.precision import PrecisionReference
from bread.paths.product import ProductReference
from bread.paths.sums import LARGEST_EXPONENT, exponentials

ONE = ProductReference(np.zeros(1), np.eye(1), np.ones((1, 1)), np.zeros((1, 1)), np.full((1, 1), 0.5))


def two_given_one(off_diagonal):
    """Precision matrix [[1, a], [a, exp(u)]]: positive definite where exp(u) > a^2."""
    precision = exponentials(np.array([0, 2, 3]), np.array([1.0, off_diagonal, 1.0]), np.array([[0.0], [0.0], [1.0]]))
    linear = exponentials(np.array([1]), np.array([0.5]), np.array([[0.0]]))
    return PrecisionReference((1,), ONE, precision, linear, 2)


@pytest.mark.statistical
def test_moments_are_those_of_draws():
    """4 standard errors of 40,000 draws, and of the 2000 that moments are of."""
    reference = two_given_one(0.3)
    draws = reference.sample(40_000, default_rng(1))
    mean, deviation = reference.moments()
    np.testing.assert_array_less(np.abs(mean - draws.mean(axis=0)), 4.2 * draws.std(axis=0) / np.sqrt(2000))
    np.testing.assert_allclose(deviation, draws.std(axis=0), rtol=0.15)


@pytest.mark.statistical
def test_a_matrix_without_a_factor_leaves_a_normalised_law():
    """With a = 1 half of all u have none: the density still has the integral 1, by draws of itself and of a wide t."""
    reference = two_given_one(1.0)
    state = np.array([0.4, -0.7, 0.2])
    value, gradient = reference.value_and_gradient(state)
    alone = stats.norm.logpdf(state[0]) + stats.norm.logpdf(state[2], 0.5 * np.exp(0.7), np.exp(0.35))
    assert value == pytest.approx(stats.norm.logpdf(-0.7, 0.0, 0.5) + alone)
    step = 1e-6
    for index in range(3):
        shift = step * np.eye(3)[index]
        difference = (reference.log_density(state + shift) - reference.log_density(state - shift)) / (2.0 * step)
        assert gradient[index] == pytest.approx(float(difference), rel=1e-6, abs=1e-7)
    wide = stats.t(3.0, scale=3.0)
    draws = wide.rvs(size=(60_000, 3), random_state=default_rng(2))
    weights = np.exp(reference.log_density(draws) - wide.logpdf(draws).sum(axis=1))
    error = weights.std() / np.sqrt(len(weights))
    assert abs(weights.mean() - 1.0) < 4.0 * error < 0.2


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [-1.0, 0.0, 1e-200])
def test_a_coordinate_without_a_precision_is_standard_normal(wrong):
    """Density, gradient and draws say so; its mean is 0 whatever its linear coefficient. To 4 standard errors."""
    precision = exponentials(np.array([0, 3]), np.array([wrong, 1.0]), np.array([[0.0], [1.0]]))
    linear = exponentials(np.array([0, 1]), np.array([1e150, 0.5]), np.array([[1.0], [0.0]]))
    reference = PrecisionReference((1,), ONE, precision, linear, 2)
    value, gradient = reference.value_and_gradient(np.array([0.4, -0.7, 0.2]))
    other = stats.norm(0.5 * np.exp(0.7), np.exp(0.35))
    expected = stats.norm.logpdf(-0.7, 0.0, 0.5) + stats.norm.logpdf(0.4) + other.logpdf(0.2)
    assert value == pytest.approx(expected)
    assert gradient[0] == pytest.approx(-0.4)
    step = 1e-6 * np.eye(3)[1]
    ends = [float(reference.log_density(np.array([0.4, -0.7, 0.2]) + sign * step)) for sign in (1.0, -1.0)]
    assert gradient[1] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
    draws = reference.sample(10_000, default_rng(3))
    assert abs(draws[:, 0].mean()) < 0.04 and abs(draws[:, 0].std() - 1.0) < 0.03
    assert stats.kstest((draws[:, 2] - 0.5 * np.exp(-draws[:, 1])) * np.exp(draws[:, 1] / 2.0), "norm").pvalue > 1e-3


@pytest.mark.parametrize("u", [900.0, -900.0])
def test_far_out_nothing_is_infinite_or_missing_but_what_must_be(u):
    reference = two_given_one(0.3)
    value, gradient = reference.value_and_gradient(np.array([0.4, u, 0.2]))
    assert value < -1e5
    assert np.isfinite(gradient[[0, 2]]).all()
    values, slopes = reference.precision.functions.at_one(np.array([u]))
    assert np.isfinite(values).all() and not slopes.any()
    assert np.abs(np.log(values)).max() == pytest.approx(LARGEST_EXPONENT)


def test_independent_mixtures_are_zero_and_not_nan_far_away():
    assert ONE.log_density(np.array([[1e200], [0.0]]))[0] == -np.inf
    assert np.isfinite(ONE.log_density(np.array([[1e100], [0.0]]))).all()


def test_errors_of_independent_mixtures():
    with pytest.raises(InvalidArgumentError, match=r"sum 1, got array"):
        ProductReference(np.zeros(1), np.eye(1), np.array([[0.9]]), np.zeros((1, 1)), np.ones((1, 1)))
    with pytest.raises(InvalidArgumentError, match=r"above 0, got array"):
        ProductReference(np.zeros(1), np.eye(1), np.ones((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)))
