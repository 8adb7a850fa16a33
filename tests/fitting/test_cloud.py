"""Where a cloud of values of the scales goes: the top of their marginal density, from afar and a narrow guess."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from bread.fitting.cloud import Search
from bread.fitting.laplace import Laplace
from bread.fitting.modes import CountedDensity
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
