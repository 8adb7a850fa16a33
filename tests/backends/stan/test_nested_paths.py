"""A law of one coordinate, and of the others given it, evaluated in C++ and in Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.backends.stan.native.path_arguments import Law
from bread.errors import InvalidArgumentError
from bread.paths.kinds import ReferencePath
from bread.paths.nested import NestedReference
from tests.support.stan_engine_programs import EXAMPLE, NUTS
from tests.support.stan_normals import log_normals, normals
from tests.support.stan_references import FULL, NESTED, conditional, nested

pytestmark = pytest.mark.stan


# The exact posterior has mean (2.1, 1.8) and standard deviations (0.63, 0.25); references differ from it on purpose.


class Native(NestedReference):
    """One whose density and gradient Python cannot tell."""

    def log_density(self, states: np.ndarray) -> np.ndarray:
        raise AssertionError

    def gradient(self, states: np.ndarray) -> np.ndarray:
        raise AssertionError


def states_of(reference: NestedReference) -> np.ndarray:
    """Draws whose drivers are below the knots, on each, between all, and above."""
    knots = reference.knots
    drivers = np.concatenate([[-4.3, -1.9], knots, (knots[1:] + 2 * knots[:-1]) / 3, [2.0, 5.1]])
    states = reference.sample(len(drivers), default_rng(31))
    states[:, reference.driver] = drivers
    return states


def assert_near(found: Any, wanted: Any) -> None:
    """Within 1e-10 of the largest number."""
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "driver"), [(2, 0), (5, 0), (5, 2), (5, 4), (41, 17)])
def test_a_nested_reference_is_evaluated_natively_and_as_in_python(dim: int, driver: int) -> None:
    instance, wanted = normals(dim), nested(NestedReference, dim, driver)
    path, states = ReferencePath(nested(Native, dim, driver)), states_of(wanted)
    start, ratio, message = instance.terms(states, path)
    assert message == ""
    assert_near(start, wanted.log_density(states))
    assert_near(ratio, log_normals(states) - wanted.log_density(states))
    for state, own in zip(states, wanted.gradient(states), strict=True):
        for beta in (0.0, 0.4):
            density, _, gradient = instance.gradient(state, beta, path)
            assert_near(density, (1 - beta) * wanted.log_density(state) + beta * log_normals(state))
            assert_near(gradient, (1 - beta) * own + beta * (0.3 - state) / 1.7**2)


@pytest.mark.slow
def test_a_conditional_reference_is_evaluated_through_python() -> None:
    wanted = conditional(12)
    path, states = ReferencePath(wanted), wanted.sample(8, default_rng(33))
    instance = normals(12)
    start, ratio, message = instance.terms(states, path)
    assert message == ""
    assert_near(start, wanted.log_density(states))
    assert_near(ratio, log_normals(states) - wanted.log_density(states))
    for state, own in zip(states, wanted.gradient(states), strict=True):
        density, _, gradient = instance.gradient(state, 0.4, path)
        assert_near(density, 0.6 * wanted.log_density(state) + 0.4 * log_normals(state))
        assert_near(gradient, 0.6 * own + 0.4 * (0.3 - state) / 1.7**2)


@pytest.mark.slow
def test_a_nested_law_of_some_coordinates_with_jacobians() -> None:
    """Coordinates in another order; those of a lower bound and of two bounds have the slopes 1 and 1 - 2 sigmoid."""
    wanted, positions = nested(NestedReference, 4, 1), np.array([5, 0, 3, 2])
    instance = normals(6, Law(positions, nested(Native, 4, 1), np.array([0, 1, 2, 0])))
    states = default_rng(32).normal(0.0, 1.5, (10, 6))
    states[:, positions] = states_of(wanted)[:10]
    logistic = stats.logistic.logpdf(states[:, 3])
    start = log_normals(states) + wanted.log_density(states[:, positions]) - states[:, 0] - logistic
    assert_near(instance.terms(states)[0], start)
    for state, value in zip(states, start, strict=True):
        exact = (0.3 - state) / 1.7**2
        exact[positions] += wanted.gradient(state[positions])
        exact[0] -= 1.0
        exact[3] += np.tanh(0.5 * state[3])
        density, _, gradient = instance.gradient(state, 0.5)
        assert_near(density, value)
        assert_near(gradient, exact)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"matrix": np.eye(3)}, r"matrix of a nested reference of 2 .* \(1, 1\); received \(3, 3\)"),
        ({"values": np.zeros((3, 1))}, r"values of a nested reference of 2 .* \(3, 2, 1\); received \(3, 1\)"),
        ({"slopes": np.zeros((2, 2, 1))}, r"slopes of a nested reference of 2 .* \(3, 2, 1\); received \(2, 2, 1\)"),
        ({"knots": np.zeros((3, 1))}, r"knots of a nested reference of 2 .* \(3,\); received \(3, 1\)"),
        ({"centre": np.zeros((1, 1))}, r"centre of a nested reference of 2 .* \(1,\); received \(1, 1\)"),
        ({"centre": np.zeros(2)}, r"density of 3 coordinates; here it must be one of 2"),
        ({"driver": 2}, "a driver from 0 to 1,.*; received the driver 2, 1 coordinates and 3 knots"),
        ({"driver": -1}, "received the driver -1, 1 coordinates and 3 knots"),
        ({"marginal": FULL}, "a marginal of 1 coordinate .* received the driver 1, 2 coordinates"),
        ({"knots": np.zeros(1)}, "at least 2 knots; .* and 1 knots"),
    ],
)
def test_nested_references_that_do_not_fit_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        EXAMPLE.posterior(NUTS).instance.terms(np.zeros((1, 2)), ReferencePath(replace(NESTED, **changes)))
