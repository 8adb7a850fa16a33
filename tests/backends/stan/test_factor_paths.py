"""Laws of factor models, evaluated in C++ and in Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng

from bread.paths.factors import FactorReference
from bread.paths.kinds import ReferencePath
from tests.support.factor_laws import reference
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


def with_curvature(law, **numbers):
    couplings = law.couplings
    return replace(law, couplings=replace(couplings, curvature=replace(couplings.curvature, **numbers)))


def alike(law, n_classes):
    """The same law, in which only so many factors have a precision matrix of their own."""
    own, curvature = law.couplings.own, law.couplings.curvature
    which = np.arange(own.values.shape[1]) % n_classes
    law = with_curvature(law, values=curvature.values[:, which])
    return replace(law, couplings=replace(law.couplings, own=replace(own, values=own.values[:, which])))


def of_two_powers(law):
    """The same with a curvature that is a sum of two exponentials of the rest."""
    curvature = law.couplings.curvature
    values = np.concatenate([curvature.values, 0.4 * curvature.values[:, ::-1] ** 2])
    return with_curvature(law, exponents=law.couplings.slopes.exponents, values=values)


SHAPES = [(1, 2, 1, 1), (2, 4, 3, 2), (5, 9, 6, 3), (3, 2, 2, 0)]
LAWS = {
    **{f"{shape}": reference(*shape) for shape in SHAPES},
    "all alike": alike(reference(5, 9, 6, 3), 1),
    "two kinds": alike(reference(5, 9, 6, 3), 2),
    "two powers": of_two_powers(reference(3, 5, 4, 2)),
    "two powers, all alike": alike(of_two_powers(reference(3, 5, 4, 2)), 1),
}


@pytest.mark.parametrize("indefinite", ["none", "all", "some"])
@pytest.mark.parametrize("name", list(LAWS))
def test_a_law_of_factors_is_evaluated_natively_and_as_in_python(name, indefinite):
    wanted = LAWS[name]
    if indefinite != "none":  # standard normal, where a matrix is not positive definite
        values = wanted.couplings.curvature.values
        is_changed = (indefinite == "all") | (np.arange(values.shape[1]) % 2 == 1)
        wanted = with_curvature(wanted, values=np.where(is_changed[:, None], -values, values))
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
