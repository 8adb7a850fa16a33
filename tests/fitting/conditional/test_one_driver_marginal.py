"""Mixtures of normal laws like a known density: divergences by the trapezium rule on a fine grid, no random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bread.fitting.conditional.one_driver_marginal import A_LAW, SUITS, Laws, laws_like

AT = np.linspace(-15.0, 15.0, 1500)
MOST = 4

DENSITIES = {
    "normal": stats.norm(0.4, 0.3).logpdf,
    "narrow": stats.norm(3.0, 0.05).logpdf,
    "t": lambda u: stats.t(3.0).logpdf(u),
    "log gamma": lambda u: stats.loggamma(1.5).logpdf(u),
    "log half-Cauchy": lambda u: u - np.log1p(np.exp(2.0 * u)) - 3.0 * np.exp(-2.0 * u),
    "two": lambda u: np.logaddexp(stats.norm(-3.0, 0.5).logpdf(u), stats.norm(3.0, 1.0).logpdf(u) - 1.0),
    "one-sided": lambda u: np.where(u > 0.0, -10.0 * u**2, 2.0 * u),
}
EVERY = pytest.mark.parametrize("log_density", DENSITIES.values(), ids=DENSITIES)


def divergence(log_density, laws):
    """KL(density || laws), nats, on a grid finer than the fit's."""
    u = np.linspace(-15.0, 15.0, 40_001)
    logs = log_density(u)
    logs = logs - logs.max()
    mass = np.exp(logs) / np.exp(logs).sum()
    return float(mass @ (np.log(np.maximum(mass, 1e-300)) - np.log(u[1] - u[0]) - laws.log_density(u)))


def fitted(log_density, like=None, most=MOST):
    return laws_like(AT, log_density(AT) + 70.0, most, like)  # a constant does not count


@EVERY
def test_laws_are_near(log_density):
    """Within 0.01 nats, less than what one law more must save; a single law is not, where the density is not normal."""
    laws = fitted(log_density)
    assert laws.weights.sum() == pytest.approx(1.0) and (laws.scales > 0.0).all()
    assert divergence(log_density, laws) < A_LAW
    one = fitted(log_density, most=1)
    assert len(one.weights) == 1
    assert divergence(log_density, one) > A_LAW or len(laws.weights) == 1


@pytest.mark.parametrize("name", ["normal", "narrow"])
def test_a_normal_law_is_itself(name):
    laws, law = fitted(DENSITIES[name]), {"normal": (0.4, 0.3), "narrow": (3.0, 0.05)}[name]
    assert (len(laws.weights), laws.means[0], laws.scales[0]) == pytest.approx((1, *law), rel=1e-3)


def test_a_mixture_of_two_is_itself():
    laws = fitted(DENSITIES["two"])
    order = np.argsort(laws.means)
    share = 1.0 / (1.0 + np.exp(-1.0))
    np.testing.assert_allclose(laws.means[order], [-3.0, 3.0], atol=0.01)
    np.testing.assert_allclose(laws.scales[order], [0.5, 1.0], rtol=0.02)
    np.testing.assert_allclose(laws.weights[order], [share, 1.0 - share], rtol=0.02)


@EVERY
def test_laws_of_other_data_are_moved(log_density):
    """A density that is shifted, stretched and tilted a little keeps the number of laws, and has them as near."""
    first = fitted(log_density)

    def other(u):
        return log_density((u - 1.0) / 1.2) + 0.02 * u

    moved = fitted(other, first)
    assert divergence(other, moved) < SUITS
    assert len(first.weights) == 1 or len(moved.weights) == len(first.weights)


def test_laws_that_do_not_suit_are_left():
    """Two modes are found from the laws of a density with one, and one law from those of two modes."""
    two = fitted(DENSITIES["two"], fitted(DENSITIES["log gamma"]))
    assert divergence(DENSITIES["two"], two) < A_LAW
    assert len(fitted(DENSITIES["normal"], two).weights) == 1
    more = fitted(DENSITIES["one-sided"], two)
    assert len(more.weights) > len(two.weights) and divergence(DENSITIES["one-sided"], more) < A_LAW


def test_moved_laws_have_the_mean_and_the_deviation_asked_for():
    laws = Laws(np.array([0.3, 0.7]), np.array([-1.0, 2.0]), np.array([0.5, 1.5])).moved(4.0, 0.2)
    mean = laws.weights @ laws.means
    assert mean == pytest.approx(4.0)
    assert np.sqrt(laws.weights @ (laws.scales**2 + (laws.means - mean) ** 2)) == pytest.approx(0.2)


def test_a_density_narrower_than_the_grid_has_a_law():
    log_density = np.full(len(AT), -1e6)
    log_density[700] = 0.0
    laws = laws_like(AT, log_density, MOST)
    assert laws.means[0] == pytest.approx(AT[700]) and 0.0 < laws.scales[0] < 0.1
