"""Laplace's method with coordinates held: one step of Newton's where the others are normal, a search where not."""

from __future__ import annotations

import numpy as np
import pytest

from bread.fitting.gaussian.laplace import Laplace
from bread.fitting.gaussian.modes import CountedDensity
from tests.support.two_scales import OTHER, TWO_SCALES, exact_draws

DRAWS = exact_draws(OTHER)
POSTERIOR = TWO_SCALES.condition(OTHER)


def started(held):
    target = CountedDensity(POSTERIOR, TWO_SCALES.dim)
    return Laplace(target, held, TWO_SCALES.dim), target


@pytest.mark.parametrize("row", [0, 7])
def test_given_the_scales_one_step_finds_the_exact_law(row):
    """Of 10 effects; a difference of gradients is good to 5 digits."""
    u = DRAWS[row, :2]
    laplace, target = started([0, 1])
    found = laplace.at(u, DRAWS[row + 1, 2:])
    mean, covariance, log_evidence = TWO_SCALES.given(u[None, :], np.asarray(OTHER["y"]))
    np.testing.assert_allclose(found.mode, mean[0], atol=1e-5)
    np.testing.assert_allclose(np.linalg.inv(found.precision), covariance[0], atol=1e-5)
    assert target.n_gradients == 10 + 2, "ten differences from here, and at the maximum"
    again = laplace.at(u + 0.5, found.mode)
    at_again = TWO_SCALES.given(u[None, :] + 0.5, np.asarray(OTHER["y"]))[2]
    prior = (-0.5 * np.array([u + 0.5, u]) ** 2 / TWO_SCALES.prior_sd**2).sum(axis=1)
    expected = float(at_again[0] - log_evidence[0] + prior[0] - prior[1])
    assert again.log_marginal - found.log_marginal == pytest.approx(expected, abs=1e-4)


def test_where_the_others_are_not_normal_the_maximum_is_searched(monkeypatch):
    """A scale is one of the others: the gradient at what is found is zero, and at the end of one step it is not."""
    held, u = [1, 2], DRAWS[0, [1, 2]]
    others = np.delete(np.arange(TWO_SCALES.dim), held)

    def steepest(mode):
        state = np.empty(TWO_SCALES.dim)
        state[held], state[others] = u, mode
        return float(np.abs(CountedDensity(POSTERIOR, TWO_SCALES.dim)(state)[1][others]).max())

    laplace, target = started(held)
    found = laplace.at(u, DRAWS[5, others])
    assert steepest(found.mode) < 1e-2
    state = np.empty(TWO_SCALES.dim)
    state[held], state[others] = u, found.mode
    np.testing.assert_allclose(found.precision, target.precision(state)[np.ix_(others, others)], rtol=1e-2, atol=1e-2)
    monkeypatch.setattr("bread.fitting.gaussian.laplace.NORMAL", np.inf)
    assert steepest(started(held)[0].at(u, DRAWS[5, others]).mode) > 0.1, "control"


class Rounded:
    """Three normal coordinates, whose gradient has seven digits."""

    def end_gradient(self, path, state):
        x = state[1:] - 1.0
        pull = -np.array([1.0, 10.0, 100.0]) * x
        return 0.5 * float(pull @ x), np.concatenate([[0.0], pull.astype(np.float32).astype(float)])


def test_rounding_of_a_difference_ends_no_search(monkeypatch):
    """From 50 standard deviations off: what differences round away is left after one step of Newton's, not after two.

    Control: with one step alone an optimiser searches, for more gradients.
    """

    def found_from_afar():
        target = CountedDensity(Rounded(), 4)
        found = Laplace(target, [0], 4).at(np.zeros(1), np.array([6.0, -4.0, 6.0]))
        return found, target.n_gradients

    found, n_gradients = found_from_afar()
    np.testing.assert_allclose(found.mode, 1.0, atol=1e-4)
    np.testing.assert_allclose(found.precision, np.diag([1.0, 10.0, 100.0]), rtol=0.02, atol=0.02)
    assert n_gradients <= 3 + 1 + 3
    monkeypatch.setattr("bread.fitting.gaussian.laplace.NEWTON_STEPS", 1)
    assert found_from_afar()[1] > 3 + 1 + 3


class NormalBelowZero:
    """Given u <= 0 three other coordinates are normal; given u > 0 they are not."""

    def end_gradient(self, path, state):
        u, x = state[0], state[1:] - 1.0
        power = 2.0 if u <= 0.0 else 4.0
        value = -0.5 * (np.abs(x) ** power).sum() - 0.5 * (x**2).sum()
        return value, np.concatenate([[0.0], -0.5 * power * np.abs(x) ** (power - 1.0) * np.sign(x) - x])


def test_where_newton_fails_at_one_value_it_is_tried_at_others():
    """Four gradients where they are normal: here, along all three at once, along other signs, and at the maximum."""
    target = CountedDensity(NormalBelowZero(), 4)
    laplace = Laplace(target, [0], 4)
    far = np.array([3.0, -2.0, 5.0])
    assert laplace.at(np.array([1.0]), far) is not None
    before = target.n_gradients
    found = laplace.at(np.array([-1.0]), far)
    assert target.n_gradients - before == 4
    np.testing.assert_allclose(found.mode, 1.0, atol=1e-6)
