"""Unbiased path sampling on paths whose log ratio is known; what drops the correction of bias, or the law, fails."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.couplings.chains import run_pairs
from bread.couplings.geometric import held
from bread.couplings.random_walk import RandomWalk
from bread.couplings.temperatures import TemperatureLaw, law_from_spread, log_ratio_estimates
from bread.errors import InvalidArgumentError

LOG_RATIO = 0.5  # f = exp(-(x - 2 lambda)^2 / (2 v)) with log v = lambda^2: log Z is lambda^2 / 2, and its slope lambda
CENTRE = np.array([1.0, -0.5, 3.0])
K = 4.5  # standard errors


def log_density(states):
    x, share = states[:, 0], states[:, 1]
    return -0.5 * (x - 2.0 * share) ** 2 * np.exp(-(share**2))


def slope(states):
    x, share = states[:, :1], states[:, 1:]
    away = x - 2.0 * share
    return (2.0 * away + share * away**2) * np.exp(-(share**2))


class Glued(RandomWalk):
    """Broken: every pair counts as met at once, so that no correction is added."""

    def move_pairs(self, x, y, rngs):
        moved, other, is_one = super().move_pairs(x, y, rngs)
        return moved, other, np.ones_like(is_one)


def estimates(kernel_class=RandomWalk, law=None, centre=None, n=4000):
    """Return estimates of the log ratio by short chains from N(-1, 2^2), far from the path."""
    law = law_from_spread([0.0, 0.4, 1.0], [1.0, 3.0, 2.0]) if law is None else law
    rng = default_rng(5)
    where = law.draw(rng.random(n))
    kernel = kernel_class(log_density, np.array([1.5, 0.0]))
    start = tuple(held(-1.0 + 2.0 * rng.standard_normal((n, 1)), law.inverse_temperature(where)) for _ in range(2))
    found = run_pairs(
        kernel, start, SeedSequence(6).spawn(n), lag=1, horizon=2000, functions=slope, window=(1, 3)
    ).estimates[:, 0]
    return log_ratio_estimates(law, where, found, centre)


def score(values, exact):
    return abs(values.mean() - exact) / (values.std(ddof=1) / np.sqrt(len(values)))


@pytest.mark.statistical
@pytest.mark.parametrize("power", [1.0, 3.0])
@pytest.mark.parametrize("centre", [None, CENTRE])
def test_estimates_are_unbiased_whatever_law_and_centre(power, centre):
    law = law_from_spread([0.0, 0.4, 1.0], [1.0, 3.0, 2.0], power=power, even=0.1)
    assert score(estimates(law=law, centre=centre), LOG_RATIO) < K


@pytest.mark.statistical
def test_chains_without_the_correction_are_biased():
    """Negative control: the same chains, too short, without the correction."""
    assert score(estimates(Glued), LOG_RATIO) > 2 * K


@pytest.mark.statistical
@pytest.mark.parametrize("power", [1.0, 4.0])
def test_estimates_that_forget_their_law_are_biased(power):
    """Expectations lambda with noise; negative control: not divided by the density of where they are."""
    law = law_from_spread([0.0, 0.4, 1.0], [5.0, 0.1, 0.1], power=power, even=0.1)
    rng = default_rng(4)
    where = law.draw(rng.random(4000))
    found = law.inverse_temperature(where) + 0.3 * rng.standard_normal(4000)
    assert score(log_ratio_estimates(law, where, found), LOG_RATIO) < K
    assert score(log_ratio_estimates(law, where, found, CENTRE), LOG_RATIO) < K
    assert score(found, LOG_RATIO) > 2 * K


def test_the_line_through_the_means_takes_variance_out():
    law = law_from_spread([0.0, 0.5, 1.0], [1.0, 1.0, 1.0])
    at = np.array([0.0, 0.3, 1.0])
    exact = np.array([0.0, 0.5, 1.0])  # at the knots
    assert np.allclose(log_ratio_estimates(law, at, at, exact), 0.5)
    assert log_ratio_estimates(law, at, at).std() > 0.3


def test_the_law_draws_what_its_density_says():
    law = TemperatureLaw(np.array([0.0, 0.2, 1.0]), np.array([0.7, 0.3]), 2.0)
    uniforms = (np.arange(100_000) + 0.5) / 100_000
    places = law.draw(uniforms)
    assert np.mean(places < 0.2) == pytest.approx(0.7, abs=1e-4)
    assert np.mean(1.0 / law.density(places)) == pytest.approx(1.0, abs=1e-3)  # the length of [0, 1]
    assert law.inverse_temperature(np.array([0.5])) == 0.25 and law.slope(np.array([0.5])) == 1.0


def test_the_law_follows_the_spread():
    law = law_from_spread([0.0, 0.5, 1.0], [1.0, 1.0, 5.0])
    assert law.shares == pytest.approx([0.25, 0.75])  # means over the ends of each interval: 1 and 3
    assert law_from_spread([0.0, 0.5, 1.0], [0.0, 0.0, 0.0]).shares == pytest.approx([0.5, 0.5])
    with pytest.raises(InvalidArgumentError, match="got knots"):
        law_from_spread([0.0, 1.0], [1.0, np.nan])
    with pytest.raises(InvalidArgumentError, match="got knots"):
        law_from_spread([0.0, 0.9], [1.0, 1.0])
