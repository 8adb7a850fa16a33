"""Where a cloud of values of the scales goes: the top of their marginal density, from afar and a narrow guess."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from bread.fitting.conditional.laplace_cloud import FIRST_STEP, Search
from bread.fitting.gaussian.laplace import Laplace
from bread.fitting.gaussian.modes import CountedDensity
from bread.fitting.search.searches import SHORTER_STEP
from tests.support.two_scales import OTHER, TWO_SCALES


def exact_marginal(data):
    """Top, mean and covariance of both log spreads, by quadrature."""
    grid = TWO_SCALES.grid
    level = TWO_SCALES.given(grid, np.asarray(data["y"]))[2] - 0.5 * (grid**2).sum(axis=1) / TWO_SCALES.prior_sd**2
    weights = np.exp(level - logsumexp(level))
    mean = weights @ grid
    return grid[np.argmax(level)], mean, (grid - mean).T * weights @ (grid - mean)


@pytest.mark.parametrize("data", [TWO_SCALES.observed_data, OTHER], ids=["real", "other"])
@pytest.mark.parametrize("away", [(0.0, 0.0), (-4.0, 0.5), (3.0, -4.0)])
def test_a_climb_ends_at_the_top(data, away):
    """To two steps of the grid (0.24), the width to a factor of 2; a guess a tenth as wide, up to 4 prior sd away."""
    posterior = TWO_SCALES.condition(data)
    top, _, covariance = exact_marginal(data)
    target = CountedDensity(posterior, TWO_SCALES.dim)
    search = Search(Laplace(target, [0, 1], TWO_SCALES.dim), top + np.array(away), np.zeros(10))
    found, width = search.climb(top + np.array(away), 0.01 * covariance)
    np.testing.assert_allclose(found, top, atol=0.25)
    ratio = np.sqrt(np.diag(width) / np.diag(covariance))
    assert ((ratio > 0.5) & (ratio < 2.0)).all()
    assert target.n_gradients < 1500


class FarTooLittleNoise:
    """Log noise s and a log scale t: residuals are a third smaller about t = 1, and t has a flat tail to both sides."""

    def end_gradient(self, path, state):
        s, t, x = state
        share = 1.0 - 0.3 / (1.0 + (t - 1.0) ** 2)
        squares = 50.0 * np.exp(-2.0 * s)
        by_t = 0.3 * 2.0 * (t - 1.0) / (1.0 + (t - 1.0) ** 2) ** 2
        gradient = [-50.0 + squares * share, -0.5 * squares * by_t, -x]
        return -50.0 * s - 0.5 * squares * share - 0.5 * x**2, np.array(gradient)


@pytest.mark.parametrize("first_step", [FIRST_STEP, SHORTER_STEP])
def test_a_climb_from_far_below_does_not_end_on_a_flat_tail(monkeypatch, first_step):
    """From a noise that is a tenth of the truth: the top is at t = 1, and most of the first slopes is of the noise."""

    def climbed():
        start = np.array([-2.1, -1.0])
        search = Search(Laplace(CountedDensity(FarTooLittleNoise(), 3), [0, 1], 3), start, np.zeros(1))
        return search.climb(start, np.diag([0.1, 0.34]) ** 2, first_step)[0]

    np.testing.assert_allclose(climbed(), [0.5 * np.log(0.7), 1.0], atol=0.1)
    monkeypatch.setattr("bread.fitting.conditional.laplace_cloud.MOST_APPROACHES", 0)
    assert abs(climbed()[1] - 1.0) > 3.0, "control: steps in proportion to all slopes"
