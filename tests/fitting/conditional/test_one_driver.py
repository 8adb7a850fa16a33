"""Nested Laplace: fits against exact laws of a funnel, what drives it, where nothing is found, moves, a whole check.

Given its spread all laws of `Funnel` are normal, so that what `fit_nested` approximates is known: means, widths, the
marginal law of the log spread. Tolerances are standard errors of draws, or stated bounds on what interpolation adds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.errors import DensityError
from bread.fitting.conditional.one_driver import LARGEST_DIM, STEP, fit_nested, rank_drivers
from bread.fitting.gaussian.families import INFLATION
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import gaussian
from tests.support.conformance import check_end_gradient
from tests.support.funnel import FUNNEL
from tests.support.funnel_draws import N_DRAWS, OTHER, divergence, exact_draws

BOTH = pytest.mark.parametrize("data", [FUNNEL.observed_data, OTHER], ids=["real", "other"])


def fitted(data=FUNNEL.observed_data, *, start=None, factor=1.0):
    """The fit from an exact draw, or another state, with the usual step times a factor."""
    draws = exact_draws(data, 2000)
    step = factor * STEP * draws[:, 0].std()
    return fit_nested(FUNNEL.condition(data), 0, draws[7] if start is None else start, step)


def law_of_effects(reference, u):
    """Mean, (u, effect), and covariance, (u, effect, effect), of the effects given u under a reference."""
    (mean, log_scale), _ = reference.conditional(u)
    colour = np.linalg.inv(reference.matrix)
    return reference.centre + mean @ colour.T, np.einsum("ik,uk,jk->uij", colour, np.exp(2 * log_scale), colour)


# ---- the funnel itself ---------------------------------------------------------------------------------------


@BOTH
def test_the_funnels_exact_answers_agree(data):
    """Gradient by differences; the evidence by importance sampling from a wide reference, 4 standard errors."""
    posterior, reference = FUNNEL.condition(data), FUNNEL.references({"y": data["y"][None]}, 1.2)[0]
    path = ReferencePath(reference)
    for state in exact_draws(data)[:4]:
        check_end_gradient(posterior, path, state)
    weights = np.exp(posterior.log_ratio(path, reference.sample(N_DRAWS, default_rng(3))) - FUNNEL.log_evidence(data))
    assert weights.mean() == pytest.approx(1.0, abs=4.0 * weights.std() / np.sqrt(N_DRAWS))
    assert weights.std() < 1.0, "the weights have a variance"
    reverse = np.exp(FUNNEL.log_evidence(data) - posterior.log_ratio(path, exact_draws(data)))
    assert reverse.mean() == pytest.approx(1.0, abs=4.0 * reverse.std() / np.sqrt(N_DRAWS)), "exact draws"


# ---- fits ----------------------------------------------------------------------------------------------------


@BOTH
def test_laws_given_the_driver_are_exact_but_for_their_width(data):
    """At knots to 1e-3 (the optimiser's end), between them to 8 % of a standard deviation and of the width."""
    reference, n_gradients = fitted(data)
    assert reference.driver == 0 and 50 < n_gradients < 500
    between = np.interp(
        np.arange(0.0, len(reference.knots) - 1, 0.37), np.arange(len(reference.knots)), reference.knots
    )
    typical = np.quantile(exact_draws(data)[:, 0], [0.005, 0.995])
    between = between[(between > typical[0]) & (between < typical[1])]
    assert len(between) > 8
    for u, tolerance in ((reference.knots, 1e-3), (between, 0.08)):
        mean, covariance = law_of_effects(reference, u)
        exact_mean, exact_covariance = FUNNEL.given(u, data["y"])
        deviation = np.sqrt(np.einsum("uii->ui", exact_covariance))
        np.testing.assert_array_less(np.abs(mean - exact_mean) / deviation, tolerance)
        ratio = np.sqrt(np.einsum("uii->ui", covariance)) / deviation
        np.testing.assert_allclose(ratio, np.sqrt(INFLATION), rtol=tolerance)
        correlation, exact = (c / np.sqrt(np.einsum("uii,ujj->uij", c, c)) for c in (covariance, exact_covariance))
        np.testing.assert_allclose(correlation, exact, atol=tolerance)
    assert np.abs(exact[:, 0, 1:]).max() > 0.1, "the effects are correlated, so that the rotation shows"


@BOTH
def test_marginal_law_of_the_driver_is_that_of_quadrature(data):
    """Mean to 0.05 standard deviations; standard deviation, inflated, to 5 %; distribution function to 0.03."""
    reference, _ = fitted(data)
    mass = FUNNEL.marginal(data["y"][None])[0]
    mean = mass @ FUNNEL.grid
    deviation = np.sqrt(mass @ (FUNNEL.grid - mean) ** 2)
    components, weights = reference.marginal.components, reference.marginal.weights
    means, scales = (np.array([getattr(one, name)[0] for one in components]) for name in ("mean", "scale"))
    own_mean = weights @ means
    assert own_mean == pytest.approx(mean, abs=0.05 * deviation)
    within, across = weights @ scales**2, weights @ (means - own_mean) ** 2
    assert np.sqrt(within / INFLATION + across) == pytest.approx(deviation, rel=0.05)
    points = mean + deviation * np.linspace(-3.0, 3.0, 25)
    own = weights @ stats.norm.cdf((points - means[:, None]) / (scales / np.sqrt(INFLATION))[:, None])
    exact = np.interp(points, FUNNEL.grid, np.cumsum(mass))
    np.testing.assert_allclose(own, exact, atol=0.03)
    single = stats.norm.cdf(points, mean, deviation)
    assert data is OTHER or np.abs(single - exact).max() > 0.03, "one normal law is not enough"


@BOTH
@pytest.mark.statistical
def test_a_fit_is_near_the_posterior(data):
    """20,000 draws of both laws: below 0.2 nats, and not below 0, by 4 standard errors."""
    value, error = divergence(data, fitted(data)[0])
    assert 0.0 < value + 4.0 * error < 0.2


def test_no_gaussian_is_as_near():
    """Negative controls, above 2 nats by 4 standard errors: the exact moments; a width that ignores the spread."""
    draws = exact_draws(FUNNEL.observed_data)
    fit = fitted()[0]
    typical = np.interp(draws[:, 0].mean(), fit.knots, np.arange(len(fit.knots))).round().astype(int)
    values, slopes = fit.values.copy(), fit.slopes.copy()
    values[:, 1], slopes[:, 1] = values[typical, 1], 0.0
    for wrong in (gaussian(draws.mean(axis=0), np.cov(draws.T)), replace(fit, values=values, slopes=slopes)):
        value, error = divergence(FUNNEL.observed_data, wrong)
        assert value - 4.0 * error > 2.0


@pytest.mark.parametrize("start", [-9.0, -4.0, 0.0, 5.0])
@pytest.mark.parametrize("factor", [0.1, 0.3, 1.0, 3.0, 10.0])
def test_a_start_far_away_or_another_step_finds_the_same(start, factor):
    """Up to 7 standard deviations away, in the neck and in the mouth; a walk too fine or too coarse is repeated.

    With the finest step a walk from the mouth may not arrive. Then there is none, but never a law of a part.
    """
    reference, n_gradients = fitted(start=np.array([start, 3.0, -2.0, 1.0, 4.0]), factor=factor)
    if reference is None:
        assert factor == 0.1 and start == 5.0
        return
    value, error = divergence(FUNNEL.observed_data, reference)
    assert value + 4.0 * error < 0.3 and n_gradients < 1500


@pytest.mark.parametrize("start", [-9.0, -1.0, 5.0])
def test_a_walk_with_short_steps_is_not_taken_for_the_whole(start):
    """So short that no walk reaches the ends. A law between them is hundreds of nats off, which its own draws hide."""
    reference, n_gradients = fitted(start=np.array([start, 0.3, 0.0, 0.1, 0.1]), factor=0.005)
    assert reference is None and n_gradients > 300


def test_a_pilot_that_is_stuck_in_the_neck_finds_the_whole():
    """Its draws are 7 standard deviations away and a seventh as wide as they should be."""
    narrow = np.array([-7.0, 0.0, 0.0, 0.0, 0.0]) + 0.15 * default_rng(4).standard_normal((100, 5))
    reference, _ = fit_nested(FUNNEL.condition(OTHER), 0, narrow[0], STEP * narrow[:, 0].std())
    value, error = divergence(OTHER, reference)
    assert value + 4.0 * error < 0.3


class Stub:
    """A log density of three coordinates without a maximum of the last two."""

    def __init__(self, failure):
        self.failure, self.n = failure, 0

    def end_gradient(self, path, state):
        self.n += 1
        if self.failure == "raising":
            raise DensityError("no density")
        gradient = -state * np.array([1.0, 0.0, 0.0])
        others = {"flat": 0.0, "rising": state[1:].sum(), "saddle": state[1] * state[2], "nan": np.nan}[self.failure]
        if self.failure == "rising":
            gradient[1:] = 1.0
        if self.failure == "saddle":
            gradient[1:] = state[:0:-1]
        return -0.5 * state[0] ** 2 + others, gradient


@pytest.mark.parametrize("failure", ["flat", "rising", "saddle", "nan", "raising"])
def test_where_the_others_have_no_maximum_there_is_no_fit(failure):
    posterior = Stub(failure)
    reference, n_gradients = fit_nested(posterior, 0, np.array([0.3, 0.0, 0.0]), 0.5)
    assert reference is None and 0 < n_gradients == posterior.n < 1000


@pytest.mark.parametrize("dim", [1, LARGEST_DIM + 1])
def test_too_few_or_too_many_coordinates_cost_nothing(dim):
    assert fit_nested(None, 0, np.zeros(dim), 0.5) == (None, 0)
    assert rank_drivers(default_rng(1).normal(size=(50, dim)), np.ones(dim, dtype=bool)) == []


@pytest.mark.parametrize("edge", [1.0, 4.2])
def test_others_with_a_maximum_at_some_values_of_the_driver_alone(edge):
    """x | u has a law below the edge only: the walk stops there, and keeps what it has if that is nearly all."""

    class Posterior:
        def end_gradient(self, path, state):
            u, x = state
            if u >= edge:
                return 0.0, np.zeros(2)
            return -0.5 * u**2 - 0.5 * (x - u) ** 2, np.array([-u + x - u, u - x])

    reference, _ = fit_nested(Posterior(), 0, np.array([-0.2, 0.4]), 0.5)
    if edge == 1.0:
        assert reference is None
        return
    assert 3.0 < reference.knots[-1] < edge and reference.knots[0] < -4.0


# ---- drivers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_driver_of_a_funnel_comes_first(place):
    """From exact draws, from the prior's and turned about; named as transformed or not."""
    order = np.insert(np.arange(1, 5), place, 0)
    turned = np.insert(np.linalg.qr(default_rng(8).normal(size=(4, 4)))[0], 0, 0.0, axis=0)
    turned = np.insert(turned, 0, np.eye(5)[0], axis=1)
    for draws in (exact_draws(FUNNEL.observed_data, 400), FUNNEL.draw_prior(400, default_rng(6))):
        for one in (draws, draws @ turned.T):
            assert rank_drivers(one[:, order], np.zeros(5, dtype=bool)) == [place]
            assert rank_drivers(one[:, order], order == 0) == [place]


def test_every_transformed_coordinate_is_a_candidate():
    draws = np.column_stack([exact_draws(FUNNEL.observed_data, 400), default_rng(3).normal(size=(400, 2))])
    transformed = np.array([False, False, True, False, False, False, True])
    ranked = rank_drivers(draws, transformed)
    assert ranked[0] == 0 and set(ranked) == {0, 2, 6}
    assert rank_drivers(draws, np.ones(7, dtype=bool))[0] == 0 and len(rank_drivers(draws, np.ones(7, dtype=bool))) == 7


def test_a_gaussian_has_no_driver():
    covariance = 0.8 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    draws = default_rng(2).multivariate_normal(np.arange(5.0), covariance, 400)
    assert rank_drivers(draws, np.zeros(5, dtype=bool)) == []
    assert rank_drivers(draws, np.arange(5) == 3) == [3]
    draws[:, 1] = 2.0  # one that never moves
    assert rank_drivers(draws, np.arange(5) == 3) == [3]


# ---- pilots --------------------------------------------------------------------------------------------------


# ---- a whole check -------------------------------------------------------------------------------------------
