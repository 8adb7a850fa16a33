"""Coordinates in which the prior is normal: found for laws that are not, left alone where they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bread.fitting.gaussian.normal_coordinates import normal_coordinates

N = 1000
LAWS = {
    "half-normal": lambda rng, n: np.log(np.abs(rng.normal(size=n))),
    "half-Cauchy": lambda rng, n: np.log(np.abs(rng.standard_cauchy(n))),
    "exponential": lambda rng, n: np.log(rng.exponential(size=n)),
    "Student t of 3": lambda rng, n: rng.standard_t(3, n),
    "gamma of shape 0.1": lambda rng, n: np.log(rng.gamma(0.1, size=n)),
}


@pytest.mark.parametrize("name", list(LAWS))
def test_other_draws_are_normal_there(name):
    """Skewness and kurtosis of other draws within 0.5, where before one of them is farther off (10^5 draws)."""
    rng = np.random.default_rng(1)
    found = normal_coordinates(LAWS[name](rng, N)[:, None])
    assert found is not None and list(found.places) == [0]
    draws = LAWS[name](rng, 100_000)[:, None]
    g = np.clip(found.forward(draws), -3.0, 3.0)  # of the far tails nothing is asked
    assert abs(g.mean()) < 0.15 and abs(g.std() - 1.0) < 0.1
    assert max(abs(stats.skew(g[:, 0])), abs(stats.kurtosis(g[:, 0]))) < 0.5
    assert max(abs(stats.skew(draws[:, 0])), abs(stats.kurtosis(draws[:, 0]))) > 0.8


@pytest.mark.parametrize("n", [400, N])
def test_normal_coordinates_stay_as_they_are(n):
    """Of 40 normal ones, as far and wide as may be, at most one is changed; a coordinate without a width never."""
    rng = np.random.default_rng(2)
    draws = rng.normal(rng.normal(0.0, 100.0, 41), np.exp(rng.normal(0.0, 5.0, 41)), (n, 41))
    draws[:, 40] = 3.0
    found = normal_coordinates(draws)
    assert found is not None
    assert len(found.places) <= 1 and 40 not in found.places


@pytest.mark.parametrize("seed", range(5))
def test_tails_that_stay_too_long_have_no_such_coordinates(seed):
    """Those of a Cauchy law are; so is a coordinate of which one draw in 200 is far out."""
    rng = np.random.default_rng(seed)
    cauchy, mixed = rng.standard_cauchy(N), np.where(rng.random(N) < 0.005, 40.0, 1.0) * rng.normal(size=N)
    for draws in (cauchy, mixed):
        assert normal_coordinates(np.stack([rng.normal(size=N), draws], axis=1)) is None
