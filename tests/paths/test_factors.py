"""A law of one side's factors given the other's: exact densities, gradients by differences, draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.paths.factors import Couplings, FactorReference
from tests.support.factor_laws import couplings, reference, with_outer_units

SHAPES = [(1, 2, 1, 1), (2, 4, 3, 2), (5, 9, 6, 3), (3, 2, 2, 0)]  # K, inner and outer columns, other coordinates


@pytest.mark.parametrize("units", ["of the inner factors", "their own"])
@pytest.mark.parametrize("shape", SHAPES)
def test_its_density_is_the_marginal_times_the_normal_law_of_each_factor(shape, units):
    law = reference(*shape) if units == "of the inner factors" else with_outer_units(reference(*shape))
    own = law.couplings
    for state in law.sample(5, default_rng(1)):
        w = state[own.drivers]
        v, rest = state[own.outer], state[own.rest]
        value = float(law.marginal.log_density(own.in_units(w)[None])[0]) + float(own.outer.size * (own.units @ rest))
        a, c, e = (part.at(part.factors(rest)) for part in (own.own, own.curvature, own.slopes))
        for i, u in enumerate(state[own.inner].T):
            covariance = np.linalg.inv(a[i] * np.eye(len(u)) + (c[i] * v) @ v.T)
            value += stats.multivariate_normal.logpdf(u, covariance @ (v @ e[i]), covariance)
        np.testing.assert_allclose(law.log_density(state), value, rtol=1e-9)


@pytest.mark.parametrize("units", ["of the inner factors", "their own"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_differences(shape, units):
    law = reference(*shape) if units == "of the inner factors" else with_outer_units(reference(*shape))
    for state in law.sample(3, default_rng(2)):
        value, gradient = law.value_and_gradient(state)
        assert value == pytest.approx(float(law.log_density(state)), rel=1e-12)
        steps = 1e-5 * np.eye(law.dim)
        differences = (law.log_density(state + steps) - law.log_density(state - steps)) / 2e-5
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


def test_draws_have_the_mean_and_covariance_of_the_law_they_are_drawn_from():
    """Within 5 standard errors of 40,000 draws; not those of a law whose slopes are a tenth larger."""
    law = reference(2, 3, 2, 1)
    draws = law.sample(40_000, default_rng(3))

    def standardised(one: FactorReference) -> np.ndarray:
        """Residuals of u given the drivers, times the Cholesky factors: standard normal if draws are of ``one``."""
        own, rows = one.couplings, []
        for state in draws:
            form = own.form(state[own.drivers])
            for u, matrix, linear in zip(state[own.inner].T, form.matrix.T, form.linear.T, strict=True):
                rows.append(np.linalg.cholesky(matrix).T @ (u - np.linalg.solve(matrix, linear)))
        return np.array(rows)

    def farthest(z: np.ndarray) -> float:
        """In standard errors, of means and of elements of the covariance."""
        products = np.cov(z.T) - np.eye(z.shape[1])
        return float(max(np.abs(z.mean(axis=0)).max(), np.abs(products).max() / np.sqrt(2.0)) * np.sqrt(len(z)))

    slopes = replace(law.couplings.slopes, values=1.1 * law.couplings.slopes.values)
    assert farthest(standardised(law)) < 5.0
    own, other = law.couplings, replace(law.couplings, slopes=slopes)
    residuals = [
        (state[own.inner].T - np.linalg.solve(form.matrix.T, form.linear.T[..., None])[..., 0]) * form.linear.T
        for state in draws[:4000]
        for form in [other.form(state[own.drivers])]
    ]
    along = np.array(residuals).sum(axis=(1, 2))
    assert abs(along.mean()) > 5.0 * along.std() / np.sqrt(len(along))


def test_in_units_of_the_inner_factors_a_common_scale_does_not_matter_to_them():
    own = couplings(2, 3, 2, 2)
    w = default_rng(4).standard_normal(len(own.drivers))
    other = w.copy()
    other[own.rest_in_drivers[0]] += 1.3
    rescaled = own.from_units(np.where(np.arange(len(w)) == own.rest_in_drivers[0], other, own.in_units(w)))
    one, two = own.form(w), own.form(rescaled)
    np.testing.assert_allclose(two.matrix / one.matrix, (two.matrix / one.matrix)[0, 0, 0], rtol=1e-12)
    np.testing.assert_allclose(own.from_units(own.in_units(w)), w, rtol=1e-13)


def test_in_units_of_their_own_a_scale_says_no_longer_how_wide_the_outer_factors_are():
    law = with_outer_units(reference(2, 3, 2, 2))
    own, w = law.couplings, default_rng(4).standard_normal(len(law.couplings.drivers))
    wide = w.copy()
    wide[own.rest_in_drivers] += [0.7, -1.1]
    wide[own.outer_in_drivers] *= np.exp(own.outer_units @ [0.7, -1.1])
    there, here = (own.in_units(one)[own.outer_in_drivers] for one in (wide, w))
    np.testing.assert_allclose(there, here, rtol=1e-12)


def test_where_a_matrix_is_not_positive_definite_the_law_is_still_normalised():
    law = reference(1, 2, 1, 1)
    own: Couplings = law.couplings
    indefinite = replace(law, couplings=replace(own, curvature=replace(own.curvature, values=-own.curvature.values)))
    state = law.sample(1, default_rng(5))[0]
    state[own.outer] = 30.0
    grid = np.linspace(-1.0, 1.0, 5)[:, None] * np.ones(law.dim) + state
    assert np.isfinite(indefinite.log_density(grid)).all()
    steps = 1e-5 * np.eye(law.dim)
    differences = (indefinite.log_density(state + steps) - indefinite.log_density(state - steps)) / 2e-5
    np.testing.assert_allclose(indefinite.value_and_gradient(state)[1], differences, rtol=1e-4, atol=1e-4)
