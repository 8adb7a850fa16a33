"""The density of scales with the others integrated out: exact, interpolated where it is a sum, else the model's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from bread.fitting.exact_given_scales.collapsed import Collapsed, additive
from bread.fitting.exact_given_scales.reference import find_structure
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.work import FitWork
from tests.support.two_scales import OTHER, TWO_SCALES

NO_EXPONENTS = np.zeros((1, 2))
DRAWS = default_rng(1).normal(size=(400, 2)) * (1.5, 0.7)


@pytest.mark.parametrize("data", [TWO_SCALES.observed_data, OTHER], ids=["real", "other"])
def test_differences_are_those_of_the_marginal_density(data):
    """Of two scales given the data, in closed form; interpolated to a fiftieth of a nat, with no density spent."""
    work = FitWork(TWO_SCALES.condition(data), TWO_SCALES.transformed, 3, 0)
    draws = many_prior_draws(work)
    structure = find_structure(work, draws)
    u = default_rng(2).uniform(-2.0, 2.0, (30, 2))
    log_density = TWO_SCALES.given(u, data["y"])[2] - 0.5 * ((u / TWO_SCALES.prior_sd) ** 2).sum(axis=1)
    exact, near = Collapsed(work, structure), Collapsed(work, structure, draws[:, :2])
    assert near.is_interpolated and not exact.is_interpolated
    before = work.n_evaluations
    found = near.joint(u)
    assert work.n_evaluations == before
    np.testing.assert_allclose(np.diff(exact.joint(u)), np.diff(log_density), atol=1e-6)
    np.testing.assert_allclose(np.diff(found), np.diff(log_density), atol=0.02)


def test_no_law_is_no_density():
    work = FitWork(TWO_SCALES.condition(OTHER), TWO_SCALES.transformed, 3, 0)
    structure = find_structure(work, many_prior_draws(work))
    values = Collapsed(work, structure).joint(np.array([[0.0, 0.0], [np.nan, 0.0]]))
    assert np.isfinite(values[0]) and values[1] == -np.inf


def steep(u):
    return -800.0 * np.exp(-2.0 * u[:, 0]) - np.log1p(np.exp(2.0 * u[:, 1])) + 3.0 * u[:, 0]


def test_what_is_steep_needs_its_exponential():
    """Off by less than 0.02 nats where values reach -80,000; with a spline alone it is found out."""
    wide = DRAWS * 1.4
    total = additive(steep, wide, np.array([[-2.0, 0.0], [0.0, -1.0]]))
    fresh = default_rng(4).normal(size=(300, 2)) * (1.5, 0.7)
    np.testing.assert_allclose(total(fresh), steep(fresh), atol=0.02, rtol=1e-6)
    assert additive(steep, wide, NO_EXPONENTS) is None, "control"


@pytest.mark.parametrize(
    "function",
    [
        lambda u: u[:, 0] * u[:, 1],
        lambda u: steep(u) + 0.2 * np.sin(u[:, 0] + u[:, 1]),
        lambda u: np.where(u[:, 0] > 1.0, np.nan, u[:, 1]),
        lambda u: np.where(u[:, 1] < -1.0, -np.inf, 0.0),
    ],
    ids=["product", "a little of both", "not a number", "zero"],
)
def test_what_is_no_sum_is_left(function):
    assert additive(function, DRAWS, np.array([[-2.0, 0.0]])) is None


def test_far_out_the_function_itself_is_asked():
    asked = []

    def function(u):
        asked.append(len(u))
        return (u**3).sum(axis=1)

    total = additive(function, DRAWS, NO_EXPONENTS)
    asked.clear()
    far = np.array([[0.3, 0.2], [50.0, 0.0], [0.0, -40.0]])
    np.testing.assert_allclose(total(far), function(far), atol=0.02)
    assert asked == [2, 3]


def test_a_coordinate_that_stays_gives_no_range():
    assert additive(lambda u: u.sum(axis=1), np.column_stack([DRAWS[:, 0], np.ones(400)]), NO_EXPONENTS) is None
