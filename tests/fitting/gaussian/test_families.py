"""Fits of references to draws: families, their laws, and the pilots that choose among them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.base import Kernel
from bread.errors import DensityError
from bread.fitting.gaussian.families import (
    DEGREES,
    FAMILIES,
    INFLATION,
    LARGEST_FULL_DIM,
    fit_diagonal,
    fit_full,
    fit_heavy,
    fit_low_rank,
    fit_mixture,
    inflation,
    localisation,
    move_component,
)
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.paths.kinds import ReferencePath
from tests.models.reference import AbsoluteMean, HMCKernel, LinearRegression, UniformLocation

X = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])


def correlated_draws(n=4000, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    factor = np.array([[1.0, 0.0, 0.0], [1.5, 0.8, 0.0], [-0.4, 0.3, 2.0]])[:dim, :dim]
    return rng.standard_normal((n, dim)) @ factor.T + np.array([2.0, -1.0, 0.5])[:dim], factor @ factor.T


@pytest.mark.parametrize("fit", [fit_full, fit_low_rank, fit_heavy])
def test_a_fit_has_the_moments_of_the_draws(fit):
    draws, covariance = correlated_draws()
    fitted = fit(draws, np.array([True, False, False]))
    sample = fitted.sample(100_000, np.random.default_rng(1))
    # 4000 draws fix a mean to 0.05 sd (3 standard errors) and a variance to 7 %.
    np.testing.assert_allclose(sample.mean(axis=0), [2.0, -1.0, 0.5], atol=0.12)
    np.testing.assert_allclose(sample.var(axis=0), INFLATION * np.diag(covariance), rtol=0.1)


def test_full_and_heavy_keep_the_correlation_and_the_diagonal_does_not():
    draws, covariance = correlated_draws()
    deviation = np.sqrt(np.diag(covariance))
    truth = (covariance / np.outer(deviation, deviation))[0, 1]
    for fit, expected in ((fit_full, truth), (fit_heavy, truth), (fit_diagonal, 0.0)):
        sample = fit(draws, np.array([True, False, False])).sample(100_000, np.random.default_rng(2))
        assert abs(np.corrcoef(sample.T)[0, 1] - expected) < 0.03


def test_heavy_tails_spare_transformed_coordinates():
    draws, _ = correlated_draws()
    transformed = np.array([False, True, False])
    sample = fit_heavy(draws, transformed).sample(200_000, np.random.default_rng(3))
    centred = (sample - sample.mean(axis=0)) / sample.std(axis=0)
    kurtosis = (centred**4).mean(axis=0)
    assert abs(kurtosis[1] - 3.0) < 0.1, "the transformed coordinate is Gaussian"
    assert kurtosis[2] > 3.3, f"Student t of {DEGREES} degrees"
    assert kurtosis[0] > 3.06, "the transformed coordinate explains most of this one"
    assert fit_heavy(draws, np.ones(3, dtype=bool)) is None


def test_chains_that_never_moved_give_finite_fits():
    draws = np.tile([0.7, -1.2], (5, 1))
    for fit in FAMILIES.values():
        fitted = fit(draws, np.zeros(2, dtype=bool))
        assert fitted is None or np.isfinite(fitted.log_density(draws)).all()


@pytest.mark.parametrize("states", [1, 2, 3])
@pytest.mark.parametrize("fit", [fit_full, fit_heavy])
def test_chains_of_few_distinct_states_give_positive_definite_fits(fit, states):
    """Numbers that do not equal their own mean by rounding, and covariances of a rank below their dimension."""
    dim, rng = 10, np.random.default_rng(4)
    draws = np.tile(rng.normal(3.0, 1.5, size=(states, dim)), (50, 1))
    assert states > 1 or np.any(draws.std(axis=0) > 0)  # rounding alone
    reference = fit(draws, np.array([False] * 9 + [True]))
    assert np.isfinite(reference.log_density(draws)).all()
    assert np.isfinite(reference.sample(9, rng)).all()


def test_mixture_sees_two_modes_and_only_them():
    rng = np.random.default_rng(4)
    one = rng.standard_normal((600, 2))
    shift = np.array([5.0, 0.0])
    two = np.concatenate([one[:300] + shift, one[300:] - shift])
    assert fit_mixture(one, np.zeros(2, dtype=bool)) is None
    fitted = fit_mixture(two, np.zeros(2, dtype=bool))
    assert len(fitted.components) == 2
    np.testing.assert_allclose(np.sort([part.mean[0] for part in fitted.components]), [-5.0, 5.0], atol=0.3)


def test_low_rank_in_many_dimensions():
    rng = np.random.default_rng(5)
    direction = np.ones(80) / np.sqrt(80)
    draws = rng.standard_normal((500, 80)) + 6.0 * rng.standard_normal((500, 1)) * direction
    held_out = rng.standard_normal((500, 80)) + 6.0 * rng.standard_normal((500, 1)) * direction
    low_rank, diagonal = (fit(draws, np.zeros(80, dtype=bool)) for fit in (fit_low_rank, fit_diagonal))
    assert low_rank.log_density(held_out).mean() > diagonal.log_density(held_out).mean() + 1.0
    wide = np.zeros((4, LARGEST_FULL_DIM + 1))
    assert fit_full(wide, np.zeros(LARGEST_FULL_DIM + 1, dtype=bool)) is None


def test_a_full_fit_of_few_draws_is_as_wide_as_held_out_draws_ask():
    """100 coordinates, 400 draws: fresh draws are about twice as far out as the draws of the fit say."""
    rng = np.random.default_rng(6)
    factor = rng.normal(size=(100, 100)) / 10.0
    draws, fresh = rng.standard_normal((2, 400, 100)) @ factor.T
    none = np.zeros(100, dtype=bool)
    (component,) = fit_full(draws, none).components
    plain = replace(component, scale=draws.std(axis=0, ddof=1) * np.sqrt(INFLATION))
    diagonal, low_rank = fit_diagonal(draws, none), fit_low_rank(draws, none)
    nearness = [one.log_density(fresh).mean() for one in (component, plain, diagonal, low_rank)]
    assert nearness[0] > nearness[1] + 1.0 and nearness[0] > max(nearness[2:]) + 10.0
    clear = rng.standard_normal((1100, 100)) @ factor.T  # 11 draws a coordinate: the usual margin
    (component,) = fit_full(clear, none).components
    np.testing.assert_allclose(component.scale, clear.std(axis=0, ddof=1) * np.sqrt(INFLATION))


@pytest.mark.parametrize(("dim", "cost"), [(1, 0.0167), (8, 0.133), (100, 0.16), (200, 0.16)])
def test_the_margin_of_many_coordinates_costs_little(dim, cost):
    wide = inflation(dim)
    assert dim * 0.5 * (wide + 1.0 / wide - 2.0) == pytest.approx(cost, rel=0.1)  # Jeffreys, two Gaussians


def test_move_component():
    draws, _ = correlated_draws()
    component = fit_full(draws, np.zeros(3, dtype=bool)).components[0]
    moved = move_component(component, draws[:60] + 10.0)
    np.testing.assert_allclose(moved.mean, draws[:60].mean(axis=0) + 10.0)
    np.testing.assert_array_equal(moved.matrix, component.matrix)
    assert (np.abs(np.log(moved.scale / component.scale)) < 0.3).all()


def test_localisation_is_wider():
    draws, covariance = correlated_draws()
    law = localisation(draws, 1.5)
    np.testing.assert_allclose(law.components[0].variance, 2.25 * np.diag(covariance), rtol=0.1)


def conditioned(model, seed=1):
    simulations = model.simulate(2, fixed=None, seed=SeedSequence(seed))
    return [model.condition(simulations.data_of(index)) for index in (0, 1)], simulations


def test_fit_of_a_gaussian_posterior_is_near_it():
    model = LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), X, noise_sd=0.5, kernel=HMCKernel(5))
    posteriors, _ = conditioned(model)
    request = FitRequest(model.dim, np.zeros(model.dim, dtype=bool), 200)
    fit = fit_reference(posteriors[0], request, root=0, simulation=0)
    # Jeffreys divergence of N(0, 1) and N(0, 1.2), two coordinates, is 0.033; the fit to 800 draws adds about as much.
    assert fit.criterion[fit.family] < 0.3 and fit.n_gradients > 0
    again = fit_reference(posteriors[0], request, root=0, simulation=0)
    np.testing.assert_array_equal(again.reference.components[0].mean, fit.reference.components[0].mean)


def test_move_reference_follows_the_data():
    model = LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), X, noise_sd=0.5, kernel=HMCKernel(5))
    posteriors, simulations = conditioned(model)
    request = FitRequest(model.dim, np.zeros(model.dim, dtype=bool), 200)
    shared = fit_reference(posteriors[0], request, root=0, simulation=0)
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in shared.settings.items()})
    moved = move_reference(posteriors[1], shared, kernel, root=0, simulation=1)

    def divergence(reference):
        path = ReferencePath(reference)
        exact = model.draw_posterior(simulations.data_of(1), 2000, np.random.default_rng(6))
        drawn = reference.sample(2000, np.random.default_rng(7))
        return posteriors[1].log_ratio(path, exact).mean() - posteriors[1].log_ratio(path, drawn).mean()

    assert divergence(moved.reference) < 0.5 < 2.0 < divergence(shared.reference), "unmoved it lies elsewhere"


def test_two_modes_are_fitted():
    model = AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMCKernel(5))
    fit = fit_reference(
        model.condition(model.observed_data), FitRequest(1, np.zeros(1, dtype=bool), 200), root=3, simulation=0
    )
    assert fit.family in ("mixture", "modes") and set(fit.criterion) <= {*FAMILIES, "modes"}
    assert fit.criterion["mixture"] < 1.0 < fit.criterion["diagonal"] and fit.criterion["modes"] < 1.0


def test_fit_starts_where_the_density_is_finite():
    model = UniformLocation(np.array([0.0, 100.0]), kernel=HMCKernel(5))  # no location gives both
    with pytest.raises(DensityError, match="None of 800 states"):
        fit_reference(
            model.condition(model.observed_data), FitRequest(1, np.zeros(1, dtype=bool), 20), root=3, simulation=0
        )


@pytest.mark.parametrize(("place", "prior_sd"), [(40.0, 30.0), (0.5, 3e4)], ids=["rare", "only near 0"])
def test_fit_starts_where_hardly_a_prior_draw_has_a_density(place, prior_sd):
    """One draw in a hundred, and one in sixty thousand, of a likelihood that is zero elsewhere."""
    model = UniformLocation(place + np.array([-0.2, 0.2]), prior_sd=prior_sd, kernel=HMCKernel(5))
    request = FitRequest(1, np.zeros(1, dtype=bool), 50, family="diagonal")
    fit = fit_reference(model.condition(model.observed_data), request, root=3, simulation=0)
    assert (abs(fit.draws - place) < 0.8).all(), "the likelihood is zero farther away"
