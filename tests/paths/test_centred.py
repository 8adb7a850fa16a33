"""A Gaussian law in centred coordinates: density, gradient, draws and moments agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bread.paths.centred import MOMENT_DRAWS, CentredReference, Link
from bread.paths.normalised import SinhArcsinh

N_DRAWS = 200_000


def law() -> CentredReference:
    """Two scales; one effect of the first, one of both, one of the second; one coordinate that has none."""
    by = np.zeros((6, 6), dtype=np.bool_)
    by[2, 0] = by[3, 0] = by[3, 1] = by[4, 1] = True
    rng = np.random.default_rng(1)
    root = np.tril(rng.normal(0.0, 0.2, (6, 6)), -1) + np.diag([0.3, 0.2, 0.6, 0.8, 0.5, 1.0])
    return CentredReference(by, np.array([-0.5, 0.3, 1.0, -0.4, 0.0, 2.0]), root)


def linked() -> CentredReference:
    """Three scales, each of two effects; a factor off whose diagonal the first act on the others, the second too."""
    by = np.zeros((12, 12), dtype=np.bool_)
    by[[3, 4], 0] = by[[5, 6], 1] = by[[7, 8], 2] = True
    a, b, c = np.array([3, 4]), np.array([5, 6]), np.array([7, 8])
    rng = np.random.default_rng(6)
    root = np.tril(rng.normal(0.0, 0.1, (12, 12)), -1) + np.diag(rng.uniform(0.2, 0.8, 12))
    return CentredReference(by, rng.normal(size=12), root, (Link(9, a, b), Link(10, a, c), Link(11, b, c)))


def changed() -> CentredReference:
    """`linked`, with a scale and the coordinate off the diagonal in coordinates of longer and of shorter tails."""
    normal = SinhArcsinh(
        np.array([1, 9]), np.array([0.3, -0.2]), np.array([0.5, 0.8]), np.array([-0.4, 0.2]), np.array([0.7, 1.2])
    )
    return replace(linked(), normal=normal)


EACH = pytest.mark.parametrize("one", [law(), linked(), changed()], ids=["scales", "factor", "normal"])


def test_links_add_products_of_effects():
    one = linked()
    states = one.sample(20, np.random.default_rng(2))
    rates, u = np.exp(states[:, :3]), states.copy()
    u[:, 3:5] *= rates[:, [0]]
    u[:, 5:7] = rates[:, [1]] * states[:, 5:7] + states[:, [9]] * states[:, 3:5]
    u[:, 7:9] = rates[:, [2]] * states[:, 7:9] + states[:, [10]] * states[:, 3:5] + states[:, [11]] * states[:, 5:7]
    np.testing.assert_allclose(one.centred(states), u)
    np.testing.assert_allclose(one.uncentred(u), states)
    expected = multivariate_normal(one.mean, one.root @ one.root.T).logpdf(u) + 2 * states[:, :3].sum(axis=1)
    np.testing.assert_allclose(one.log_density(states), expected)


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


@EACH
def test_gradients_are_those_of_the_density(one):
    states = one.sample(5, np.random.default_rng(3))
    step = 1e-6 * np.eye(one.dim)
    by_differences = (one.log_density(states[:, None] + step) - one.log_density(states[:, None] - step)) / 2e-6
    np.testing.assert_allclose(one.gradient(states), by_differences, atol=1e-6)
    for state, row in zip(states, one.gradient(states), strict=True):
        value, gradient = one.value_and_gradient(state)
        np.testing.assert_allclose(gradient, row)
        assert value == pytest.approx(float(one.log_density(state)))
        assert one.log_density(states[:1])[0] == one.log_density(states)[0]


@EACH
def test_gradients_by_centred_coordinates(one):
    u = one.mean + np.random.default_rng(4).normal(size=(4, one.dim)) @ one.root.T
    states = one.uncentred(u)
    got = one.density_of_centred(states, one.gradient(states))
    expected = -(u - one.mean) @ np.linalg.inv(one.root @ one.root.T)
    np.testing.assert_allclose(got, expected, atol=1e-9)


@EACH
def test_moments_are_those_of_draws(one):
    """Within 5 standard errors; a mean without the covariance of effect and scale is not.

    Of what links add to the moments are by draws too, and have errors of their own.
    """
    draws = one.sample(N_DRAWS, np.random.default_rng(5))
    mean, sd = one.moments()
    own = np.zeros(one.dim)
    own[[target for link in one.links for target in link.targets]] = 1.0 / MOMENT_DRAWS
    own[one.normal.places] = own[one.by[:, one.normal.places].any(axis=1)] = 1.0 / MOMENT_DRAWS
    per_draw = np.sqrt(1.0 / N_DRAWS + own)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * per_draw * draws.std(axis=0)).all()
    squares = (draws - draws.mean(axis=0)) ** 2
    assert (np.abs(squares.mean(axis=0) - sd**2) < 5 * per_draw * squares.std(axis=0)).all()
    plain = one.uncentred(one.mean)
    assert (np.abs(draws.mean(axis=0) - plain) > 20 * draws.std(axis=0) / np.sqrt(N_DRAWS)).any()


def test_far_states_are_no_draws_and_raise_nothing():
    far = np.array([800.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    value, _ = law().value_and_gradient(far)
    assert not np.isfinite(value)
