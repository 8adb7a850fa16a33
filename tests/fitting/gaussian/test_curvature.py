"""Hessians by differences along groups: right where zeros allow groups, made in full where a zero is none any more."""

from __future__ import annotations

import numpy as np
import pytest

from bread.fitting.gaussian.curvature import Curvature, from_groups, star_colours
from bread.fitting.gaussian.modes import CountedDensity

WALK = np.abs(np.subtract.outer(np.arange(60), np.arange(60))) < 2


def crossed():
    """Return which elements are used of a mean and two crossed effects of 10 and 8 groups."""
    used = np.eye(19, dtype=bool)
    used[0, :] = used[:, 0] = used[1:11, 11:] = used[11:, 1:11] = True
    return used


def symmetric(used, rng):
    """Return a positive definite matrix with these elements."""
    below = np.tril(np.where(used, rng.normal(size=used.shape), 0.0), -1)
    return below + below.T + np.diag(np.abs(below + below.T).sum(axis=1) + 1.0)


class Quadratic:
    """A log density ``-theta' H theta / 2``, last two coordinates coupled by ``bent``, but not at 0."""

    def __init__(self, hessian, bent=0.0):
        self.hessian, self.bent = hessian, bent

    def end_gradient(self, path, state):
        gradient = -self.hessian @ state
        gradient[-2] -= 2.0 * self.bent * state[-2] * state[-1] ** 2
        gradient[-1] -= 2.0 * self.bent * state[-2] ** 2 * state[-1]
        return 0.5 * float(state @ (-self.hessian @ state)) - self.bent * (state[-2] * state[-1]) ** 2, gradient


@pytest.mark.parametrize("seed", range(40))
def test_a_symmetric_matrix_is_read_from_its_products_with_groups(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    used = np.triu(rng.random((n, n)) < 0.3 * rng.random(), 1)
    used = used | used.T | np.eye(n, dtype=bool)
    colours = star_colours(used)
    assert colours is not None
    matrix = symmetric(used, rng)
    groups = np.eye(colours.max() + 1)[colours].T
    np.testing.assert_allclose(from_groups(groups @ matrix, colours, used), matrix, atol=1e-12)
    joined = np.argwhere(np.triu(used, 1))
    if len(joined):
        first, second = joined[seed % len(joined)]
        wrong = colours.copy()
        wrong[second] = wrong[first]
        groups = np.eye(wrong.max() + 1)[wrong].T
        assert not np.allclose(from_groups(groups @ matrix, wrong, used), matrix), "control: a pair in one group"


@pytest.mark.parametrize(("used", "n_groups"), [(WALK, 3), (crossed(), 10), (np.eye(20, dtype=bool), 1)])
def test_later_hessians_take_a_gradient_a_group(used, n_groups):
    """And one here, and one along all coordinates. The first takes one a coordinate. Differences have some 9 digits."""
    n = len(used)
    hessian = symmetric(used, np.random.default_rng(0))
    target = CountedDensity(Quadratic(hessian), n)
    curvature = Curvature(target, np.arange(n))
    for expected in (n + 1, n_groups + 2):
        before, state = target.n_gradients, np.random.default_rng(1).normal(size=n)
        precision, gradient = curvature.at(state)
        np.testing.assert_allclose(precision, hessian, atol=1e-7)
        np.testing.assert_allclose(gradient, hessian @ state)
        assert target.n_gradients - before == expected


def test_a_full_matrix_takes_a_gradient_a_coordinate():
    hessian = symmetric(np.ones((9, 9), dtype=bool), np.random.default_rng(0))
    target = CountedDensity(Quadratic(hessian), 9)
    curvature = Curvature(target, np.arange(9))
    for _ in range(2):
        before = target.n_gradients
        np.testing.assert_allclose(curvature.at(np.ones(9))[0], hessian, atol=1e-7)
        assert target.n_gradients - before == 10


def test_coordinates_that_are_held_stay():
    hessian = symmetric(WALK, np.random.default_rng(0))
    others = np.arange(2, 60)
    curvature = Curvature(CountedDensity(Quadratic(hessian), 60), others)
    for _ in range(2):
        precision, gradient = curvature.at(np.ones(60))
        np.testing.assert_allclose(precision, hessian[2:, 2:], atol=1e-7)
        np.testing.assert_allclose(gradient, hessian[2:].sum(axis=1))


def bent_at(state):
    """Return the Hessian at a state after one at 0, where two coordinates do not touch, and the true one."""
    hessian = symmetric(np.eye(12, dtype=bool), np.random.default_rng(0))
    target = CountedDensity(Quadratic(hessian, bent=1.0), 12)
    curvature = Curvature(target, np.arange(12))
    curvature.at(np.zeros(12))
    return curvature.at(state)[0], target.precision(state)


def test_an_element_that_was_zero_and_is_not_any_more_is_seen(monkeypatch):
    found, truth = bent_at(np.ones(12))
    np.testing.assert_allclose(found, truth, atol=1e-2)
    monkeypatch.setattr("bread.fitting.gaussian.curvature.PROBED", np.inf)
    found, truth = bent_at(np.ones(12))
    assert np.abs(found - truth).max() > 1.0, "control: nobody looked"
