"""A Gaussian law in centred coordinates: density, gradient, draws and moments agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bread.paths.centred import CentredReference

N_DRAWS = 200_000


def law() -> CentredReference:
    """Two scales; one effect of the first, one of both, one of the second; one coordinate that has none."""
    by = np.zeros((6, 6), dtype=np.bool_)
    by[2, 0] = by[3, 0] = by[3, 1] = by[4, 1] = True
    rng = np.random.default_rng(1)
    root = np.tril(rng.normal(0.0, 0.2, (6, 6)), -1) + np.diag([0.3, 0.2, 0.6, 0.8, 0.5, 1.0])
    return CentredReference(by, np.array([-0.5, 0.3, 1.0, -0.4, 0.0, 2.0]), root)


def test_density_is_that_of_the_centred_coordinates_with_the_jacobian():
    one = law()
    states = one.sample(20, np.random.default_rng(2))
    u = states.copy()
    u[:, 2] *= np.exp(states[:, 0])
    u[:, 3] *= np.exp(states[:, 0] + states[:, 1])
    u[:, 4] *= np.exp(states[:, 1])
    np.testing.assert_allclose(one.centred(states), u)
    np.testing.assert_allclose(one.uncentred(u), states)
    expected = multivariate_normal(one.mean, one.root @ one.root.T).logpdf(u) + 2 * states[:, 0] + 2 * states[:, 1]
    np.testing.assert_allclose(one.log_density(states), expected)


def test_gradients_are_those_of_the_density():
    one = law()
    states = one.sample(5, np.random.default_rng(3))
    step = 1e-6 * np.eye(6)
    by_differences = (one.log_density(states[:, None] + step) - one.log_density(states[:, None] - step)) / 2e-6
    np.testing.assert_allclose(one.gradient(states), by_differences, atol=1e-6)
    for state, row in zip(states, one.gradient(states), strict=True):
        value, gradient = one.value_and_gradient(state)
        np.testing.assert_allclose(gradient, row)
        assert value == pytest.approx(float(one.log_density(state)))
        assert one.log_density(states[:1])[0] == one.log_density(states)[0]


def test_gradients_by_centred_coordinates():
    one = law()
    u = one.mean + np.random.default_rng(4).normal(size=(4, 6)) @ one.root.T
    states = one.uncentred(u)
    got = one.density_of_centred(states, one.gradient(states))
    expected = -(u - one.mean) @ np.linalg.inv(one.root @ one.root.T)
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_moments_are_those_of_draws():
    """Within 5 standard errors; a mean without the covariance of effect and scale is not."""
    one = law()
    draws = one.sample(N_DRAWS, np.random.default_rng(5))
    mean, sd = one.moments()
    error = draws.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all()
    centred = (draws - draws.mean(axis=0)) ** 2
    assert (np.abs(centred.mean(axis=0) - sd**2) < 5 * centred.std(axis=0) / np.sqrt(N_DRAWS)).all()
    plain = one.uncentred(one.mean)
    assert np.abs(draws.mean(axis=0) - plain)[2] > 20 * error[2]


def test_far_states_are_no_draws_and_raise_nothing():
    far = np.array([800.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    value, _ = law().value_and_gradient(far)
    assert not np.isfinite(value)
