"""Laws of factor models, evaluated in C++ and in Python."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from bread.paths.factors import FactorReference
from bread.paths.kinds import ReferencePath
from tests.support.factor_laws import INDEFINITE, LAWS, indefinite_as
from tests.support.stan_normals import log_normals, normals

pytestmark = [pytest.mark.stan, pytest.mark.slow]


class Native(FactorReference):
    """One whose density and gradient Python cannot tell."""

    def log_density(self, states):
        raise AssertionError

    def value_and_gradient(self, state):
        raise AssertionError


def assert_near(found, wanted):
    """Within 1e-9 of the largest number."""
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("indefinite", INDEFINITE)
@pytest.mark.parametrize("name", list(LAWS))
def test_a_law_of_factors_is_evaluated_natively_and_as_in_python(name, indefinite):
    wanted = indefinite_as(LAWS[name], indefinite)
    path = ReferencePath(Native(wanted.couplings, wanted.marginal))
    instance, states = normals(wanted.dim), default_rng(4).standard_normal((6, wanted.dim))
    start, ratio, message = instance.terms(states, path)
    assert message == ""
    assert_near(start, wanted.log_density(states))
    assert_near(ratio, log_normals(states) - wanted.log_density(states))
    for state, own in zip(states, wanted.gradient(states), strict=True):
        density, _, gradient = instance.gradient(state, 0.4, path)
        assert_near(density, 0.6 * wanted.log_density(state) + 0.4 * log_normals(state))
        assert_near(gradient, 0.6 * own + 0.4 * (0.3 - state) / 1.7**2)
