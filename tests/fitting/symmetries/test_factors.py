"""Factor models: which densities are ones, and how near a law of one side given the other comes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from bread.backends.base import Posterior
from bread.fitting.search.work import FitWork, plain
from bread.fitting.symmetries.couplings import find_couplings
from bread.fitting.symmetries.factors import fit_factors
from bread.fitting.symmetries.find_rotations import rotatable
from bread.fitting.symmetries.gauge_modes import gaussian_in_gauge
from bread.fitting.symmetries.integrated import integrated_work
from bread.paths.kinds import ReferencePath
from bread.seeds import Purpose, seed_sequence
from tests.support.factor_model import factor_model


class Bent(Posterior):
    """A posterior less a function of its state that rotations leave alone."""

    def __init__(self, posterior, places, bend):
        self._posterior, self._places, self._bend = posterior, places, bend

    def draw_base(self, path, seeds):
        return self._posterior.draw_base(path, seeds)

    def log_ratio(self, path, states):
        return self._posterior.log_ratio(path, states) - [self._bend(state[self._places])[0] for state in states]

    def end_gradient(self, path, state):
        value, gradient = self._posterior.end_gradient(path, state)
        bend, by_columns = self._bend(state[self._places])
        gradient = gradient.copy()
        gradient[self._places] -= by_columns
        return value - bend, gradient


def quartic(w):
    """All columns have a fourth power: none is Gaussian given the others."""
    size = (w**2).sum(axis=0)
    return 0.01 * (size**2).sum(), 0.04 * size * w


def triangle(w):
    """Three columns of which each meets both others: there are no two sides."""
    products = np.array([w[:, i] @ w[:, j] for i, j in ((0, 1), (1, 2), (0, 2))])
    gradient = np.zeros_like(w)
    for product, (i, j) in zip(products, ((0, 1), (1, 2), (0, 2)), strict=True):
        gradient[:, i] += 0.1 * product * w[:, j]
        gradient[:, j] += 0.1 * product * w[:, i]
    return 0.05 * (products**2).sum(), gradient


def model_work(scale_sd=None, index=0, **sizes):
    """A factor model, a fit to one data set, and its exact draw."""
    model = factor_model(scale_sd=scale_sd, **({"n": 12, "d": 8, "k": 2} | sizes))
    simulations = model.simulate(index + 1, fixed=None, seed=seed_sequence(6, Purpose.SIMULATE))
    work = FitWork(model.condition(simulations.data_of(index)), model.info.layout.may_be_scale, 3, index)
    return work, rotatable(model.info.layout)[0], simulations.states[index]


def draws_near(work, state, seed):
    """States that differ in their scales, as the end of a chain may."""
    draws = np.repeat(state[None], 20, axis=0)
    draws[:, work.transformed] += 0.1 * default_rng(seed).standard_normal((20, int(work.transformed.sum())))
    return draws


@pytest.mark.parametrize(("sizes", "expected"), [({"n": 12, "d": 8}, 0.0), ({"n": 7, "d": 11}, 1.0)])
def test_the_prior_width_of_the_outer_factors_is_found(sizes, expected):
    """The smaller side: v, of width 1, or u, of width exp(s)."""
    work, places, state = model_work(0.5, **sizes)
    found = find_couplings(work, places, state)
    np.testing.assert_allclose(found.outer_units, [expected])


@pytest.mark.parametrize("scale_sd", [None, 0.5])
def test_both_sides_are_found_and_what_is_left_is_the_density_with_one_integrated_out(scale_sd):
    """By the law of u given the rest, exact: joint density less its own does not depend on u."""
    work, places, state = model_work(scale_sd)
    found = find_couplings(work, places, state)
    assert found is not None
    assert found.inner.shape == (2, 12) and found.outer.shape == (2, 8)
    integrated = integrated_work(work, found)
    law = fit_factors(work, places, state[None])
    states = np.repeat(state[None], 5, axis=0)
    states[:, found.inner] += default_rng(1).standard_normal((5, *found.inner.shape))
    ratio = work.log_ratio(law, states)
    np.testing.assert_allclose(ratio, ratio[0], atol=1e-7)
    w = found.in_units(state[found.drivers])
    marginal = integrated.log_ratio(law.marginal, w[None])[0]
    assert ratio[0] == pytest.approx(marginal, abs=1e-7)


def test_the_integrated_density_has_its_gradient():
    work, places, state = model_work(0.5)
    found = find_couplings(work, places, state)
    posterior, path = integrated_work(work, found).posterior, ReferencePath(plain(len(found.drivers)))
    w, rng = found.in_units(state[found.drivers]), default_rng(2)
    values, gradients = posterior.end_gradients(path, np.array([w, w + 0.1]))
    for at, value, gradient in zip((w, w + 0.1), values, gradients, strict=True):
        direction = rng.standard_normal(len(w))
        ahead, behind = (posterior.end_gradient(path, at + sign * 1e-6 * direction)[0] for sign in (1.0, -1.0))
        assert gradient @ direction == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)
        assert value == pytest.approx((posterior.log_ratio(path, at[None]) + path.reference.log_density(at[None]))[0])


@pytest.mark.parametrize("bend", [quartic, triangle])
def test_a_density_that_is_no_factor_model_is_not_taken_for_one(bend):
    work, places, state = model_work()
    assert find_couplings(work, places, state) is not None
    bent = FitWork(Bent(work.posterior, places, bend), work.transformed, 3, 0)
    assert find_couplings(bent, places, state) is None


def test_on_other_data_only_the_linear_part_is_looked_for():
    work, places, state = model_work()
    first = find_couplings(work, places, state)
    other, _, its_state = model_work(index=1)
    anew, like = find_couplings(other, first.places, its_state), find_couplings(other, first.places, its_state, first)
    assert like is not None
    np.testing.assert_array_equal(like.curvature.values, first.curvature.values)
    np.testing.assert_allclose(like.slopes.values, anew.slopes.values, atol=1e-9)
    assert not np.allclose(like.slopes.values, first.slopes.values)


@pytest.mark.parametrize("scale_sd", [None, 0.5])
def test_it_is_nearer_than_a_gaussian_of_all_at_the_mode(scale_sd):
    """Jeffreys divergence by exact draws of 10 data sets: by more than 3 standard errors of the difference."""
    gains = []
    for index in range(10):
        work, places, state = model_work(scale_sd, index, n=20, d=10)
        draws = draws_near(work, state, index)

        def off(reference, work=work, state=state, index=index):
            drawn = reference.sample(100, default_rng(index))
            return work.log_ratio(reference, state[None])[0] - work.log_ratio(reference, drawn).mean()

        gains.append(off(gaussian_in_gauge(work, places, draws)) - off(fit_factors(work, places, draws)))
    assert np.mean(gains) > 3.0 * np.std(gains, ddof=1) / np.sqrt(len(gains))


@pytest.mark.parametrize("scale_sd", [None, 0.5])
def test_a_law_that_is_moved_to_where_the_mass_is_is_nearer_than_the_one_at_the_mode(scale_sd):
    """By draws of the laws themselves, weighted, on 6 data sets: by more than 3 standard errors of the difference."""
    gains = []
    for index in range(6):
        work, places, state = model_work(scale_sd, index, n=20, d=10)
        draws = draws_near(work, state, index)
        found = find_couplings(work, places, state)
        inner = integrated_work(work, found)
        at_mode = gaussian_in_gauge(inner, found.outer_in_drivers, found.in_units(draws[:, found.drivers]))
        gains.append(inner.own_divergence(at_mode, 1) - work.own_divergence(fit_factors(work, places, draws), 1))
    assert np.mean(gains) > 3.0 * np.std(gains, ddof=1) / np.sqrt(len(gains))
