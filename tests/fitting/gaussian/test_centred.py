"""Gaussian laws in centred coordinates: which effects have which scale, and the law of least KL(q || p)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from bread.errors import UnsupportedModelError
from bread.fitting.gaussian import centred
from bread.fitting.gaussian.centred import find_links, find_scales, fit_centred
from bread.fitting.search.work import FitWork, shown_divergence
from bread.paths.centred import CentredReference

DIM = 7  # two logarithms of scales; two effects of the first, one of both, one of the second; a mean
BY = np.zeros((DIM, DIM), dtype=np.bool_)
BY[[2, 3, 4], 0] = BY[[4, 5], 1] = True
TRANSFORMED = np.arange(DIM) < 2
RNG = np.random.default_rng(1)
ROOT = np.tril(RNG.normal(0.0, 0.1, (DIM, DIM)), -1) + np.diag([0.3, 0.2, 0.6, 0.8, 0.5, 1.0, 0.4])
LAW = CentredReference(BY, np.array([-0.5, 0.3, 1.0, -0.4, 0.2, 2.0, 3.0]), ROOT)


class Known:
    """A posterior that is a law, whose prior is standard normal; ``bent`` adds to what the likelihood knows."""

    def __init__(self, law, bent=0.0):
        self.law, self.bent = law, bent

    def end_gradients(self, path, states):
        return self.law.log_density(states), self.law.gradient(states)

    def density_gradient(self, beta, states):
        """Of a Poisson likelihood, whose linear predictor is the sum of effects and mean."""
        slopes = -states
        if beta:
            u = LAW.centred(states)
            factors = np.exp(np.where(BY[:, :2].T[:, None], states[:, :2].T[:, :, None], 0.0).sum(axis=0))
            by_sum = 0.3 * (2.0 - np.exp(0.3 * u[:, 2:].sum(axis=1) + self.bent * states[:, 2]))
            slopes[:, 2:] += by_sum[:, None] * factors[:, 2:]
            slopes[:, 0] += by_sum * u[:, 2:5].sum(axis=1)
            slopes[:, 1] += by_sum * u[:, 4:6].sum(axis=1)
            slopes[:, 2] += self.bent * by_sum / 0.3
        return np.zeros(len(states)), slopes

    def log_ratio(self, path, states):
        return self.law.log_density(states) - path.reference.log_density(states)


def work(posterior, transformed=TRANSFORMED):
    return FitWork(posterior, transformed, 1, 0)


def states(n=60):
    return np.random.default_rng(2).normal(size=(n, DIM))


def test_effects_and_their_scales_are_told_by_gradients():
    np.testing.assert_array_equal(find_scales(work(Known(LAW)), states()), BY)


def test_what_the_likelihood_knows_beside_the_product_is_no_effect_of_a_scale():
    """An effect that also acts without its scale: neither of its group is centred; the other scale's are."""
    expected = BY.copy()
    expected[:, 0] = False
    np.testing.assert_array_equal(find_scales(work(Known(LAW, bent=0.01)), states()), expected)


def test_no_scales_are_found_where_no_coordinate_may_be_one_or_states_are_few():
    assert find_scales(work(Known(LAW), np.zeros(DIM, dtype=np.bool_)), states()) is None
    assert find_scales(work(Known(LAW)), states(DIM)) is None


def test_a_density_without_a_prior_of_its_own_has_none():
    class Whole(Known):
        def density_gradient(self, beta, states):
            raise UnsupportedModelError("it has none")

    assert find_scales(work(Whole(LAW)), states()) is None


class Correlated:
    """A likelihood of two groups of three correlated effects: z times a Cholesky factor, and a mean."""

    scales, off_diagonal, mean, dim = np.array([0, 2, 5]), np.array([1, 3, 4]), 6, 13
    effects = np.arange(7, 13).reshape(3, 2)  # (effect, group)

    def __init__(self, square=0.0):
        self.square = square  # of an element off the diagonal, which then is none

    def density_gradient(self, beta, states):
        (a, b, c), slopes = states[:, self.effects].transpose(1, 0, 2), -states
        if not beta:
            return np.zeros(len(states)), slopes
        ba, ca, cb = (states[:, [one]] for one in self.off_diagonal)
        first, second, third = np.exp(states[:, self.scales]).T[:, :, None]
        pull = np.sin(states[:, [self.mean]] + first * a + [1.0, 1.4]), np.sin(second * b + ba * a + [2.0, 2.3])
        pull += (np.sin(third * c + ca * a + cb * b + self.square * ca**2 + [3.0, 3.2]),)
        slopes[:, self.mean] += pull[0].sum(axis=1)
        for one, slope in zip(
            self.scales, (pull[0] * first * a, pull[1] * second * b, pull[2] * third * c), strict=True
        ):
            slopes[:, one] += slope.sum(axis=1)
        by_ca = pull[2] * (a + 2.0 * self.square * ca)
        for one, slope in zip(self.off_diagonal, (pull[1] * a, by_ca, pull[2] * b), strict=True):
            slopes[:, one] += slope.sum(axis=1)
        slopes[:, self.effects[0]] += pull[0] * first + pull[1] * ba + pull[2] * ca
        slopes[:, self.effects[1]] += pull[1] * second + pull[2] * cb
        slopes[:, self.effects[2]] += pull[2] * third
        return np.zeros(len(states)), slopes


def test_elements_off_the_diagonal_of_a_factor_are_told_by_gradients():
    model = Correlated()
    at, draws = work(model, np.isin(np.arange(model.dim), model.scales)), np.random.default_rng(3).normal(size=(40, 13))
    by = find_scales(at, draws)
    np.testing.assert_array_equal(by[model.effects][:, :, model.scales], np.eye(3)[:, None].repeat(2, axis=1))
    first, second, third = model.effects.tolist()
    expected = {(1, *first, *second), (3, *first, *third), (4, *second, *third)}
    links = find_links(at, by, draws)
    assert {(link.by, *link.sources, *link.targets) for link in links} == expected
    assert [link.by for link in links].index(1) < [link.by for link in links].index(4)


def test_what_acts_beside_the_product_is_no_element_of_a_factor():
    model = Correlated(square=0.01)
    at, draws = work(model, np.isin(np.arange(model.dim), model.scales)), np.random.default_rng(3).normal(size=(40, 13))
    by = find_scales(at, draws)
    assert by is not None
    assert 3 not in [link.by for link in find_links(at, by, draws)]


def test_effects_without_a_factor_have_no_links():
    at = work(Known(LAW))
    assert find_links(at, BY, states()) == ()


@pytest.mark.parametrize("away", [0.0, 3.0])
def test_the_law_is_found_where_it_is_the_posterior(away):
    """From three standard deviations away and four times as wide, too; the law of the start is far."""
    spread = np.sqrt((ROOT**2).sum(axis=1)) * (4.0 if away else 1.0)
    start = LAW.mean + away * np.sqrt((ROOT**2).sum(axis=1))
    at = work(Known(LAW))
    found = fit_centred(at, replace(LAW, mean=start, root=np.diag(spread)), is_guess=True)
    assert found is not None and 0 < at.n_gradients < 600
    np.testing.assert_allclose(found.mean, LAW.mean, atol=0.2)  # a round ends `CLOSE` to where the average is largest
    assert divergence(found) < 0.1
    assert divergence(CentredReference(BY, start, np.diag(spread))) > 0.3


def shared_mean():
    """Return a law of 60 effects and their mean, and standard deviations of its centred coordinates.

    The widest direction has 30 times the variance that single coordinates show.
    """
    n = 62
    by = np.zeros((n, n), dtype=np.bool_)
    by[2:, 0] = True
    precision = np.diag(np.r_[10.0, 2.0, np.full(n - 2, 100.0)])
    precision[1, 1] += 60 * 98.0  # the data know each effect plus the mean
    precision[1, 2:] = precision[2:, 1] = 98.0
    covariance = np.linalg.inv(precision)
    law = CentredReference(by, np.full(n, 0.4), np.linalg.cholesky(covariance))
    return law, np.sqrt(np.diag(covariance)), work(Known(law), np.arange(n) < 1)


def test_a_mean_that_many_effects_share_is_as_wide_as_it_is():
    truth, spread, at = shared_mean()
    found = fit_centred(at, replace(truth, root=np.diag(spread)), is_guess=True)
    assert found is not None
    np.testing.assert_allclose((found.root**2).sum(axis=1), spread**2, rtol=0.05)
    assert divergence(found, truth) < 0.1


def test_the_law_of_other_data_is_a_start():
    truth, spread, at = shared_mean()
    like = replace(truth, mean=truth.mean + spread, root=1.2 * truth.root)
    assert divergence(like, truth) > 2.0
    found = fit_centred(at, like, is_guess=False)
    assert found is not None and divergence(found, truth) < 0.1


def test_the_curvature_is_averaged_where_that_at_the_mean_misleads(monkeypatch):
    """Products of coordinates, as of ability and discrimination: at the mean alone the law is 10 nats off, not 3."""

    class Products(Known):
        """A logistic likelihood of 6 items, 25 people: ``slope (ability - difficulty)``."""

        answers = np.random.default_rng(5).random((25, 6)) < 0.6

        def end_gradients(self, path, states):
            ability, logs, difficulty = np.split(states, [25, 31], axis=1)
            slope, away = np.exp(logs)[:, None], ability[:, :, None] - difficulty[:, None]
            value = np.where(self.answers, 0.0, -slope * away) - np.logaddexp(0.0, -slope * away)
            pull = self.answers - expit(slope * away)
            gradient = np.concatenate(
                [(pull * slope).sum(axis=2), (pull * slope * away).sum(axis=1), -(pull * slope).sum(axis=1)], axis=1
            )
            widths = np.r_[np.ones(25), np.full(6, 0.5), np.full(6, 1.5)]
            return value.sum(axis=(1, 2)) - 0.5 * ((states / widths) ** 2).sum(axis=1), gradient - states / widths**2

        def log_ratio(self, path, states):
            return self.end_gradients(path, states)[0] - path.reference.log_density(states)

    at = work(Products(None), np.zeros(37, dtype=bool))
    start = CentredReference(np.zeros((37, 37), dtype=bool), np.zeros(37), np.eye(37))
    found = fit_centred(at, start, is_guess=True)
    assert found is not None and at.own_divergence(found) < 3.0
    monkeypatch.setattr(centred, "FEW", 0)
    monkeypatch.setattr(centred, "NEAREST", np.inf)
    at_the_mean = fit_centred(at, start, is_guess=True)
    assert at_the_mean is not None and at.own_divergence(at_the_mean) > 10.0


def divergence(law, truth=LAW):
    draws = law.sample(2000, np.random.default_rng(3))
    return shown_divergence(truth.log_density(draws) - law.log_density(draws))


def test_a_density_that_is_nowhere_good_has_no_law():
    class Bad(Known):
        def end_gradients(self, path, states):
            return np.full(len(states), -np.inf), np.zeros(states.shape)

    assert fit_centred(work(Bad(LAW)), LAW, is_guess=False) is None
