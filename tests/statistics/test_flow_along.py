"""Flows along one coordinate between exact draws and perturbed copies: bounds and jumps, right laws and wrong ones."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.statistics.exactness.exchange import flow_along


def exponential(x):
    return np.where(x >= 0.0, -x, -np.inf)


def stepped(x):
    return -0.5 * x**2 - np.log(5.0) * (x < 0.0)


def of_step(rng, n):
    x = np.abs(rng.normal(size=n))
    return np.where(rng.random(n) < 1.0 / 6.0, -x, x)


LAWS = {
    "a bound": (exponential, lambda rng, n: rng.exponential(size=n), lambda rng, n: rng.gamma(2.0, size=n)),
    "a step": (stepped, of_step, lambda rng, n: rng.normal(size=n)),
    "smooth": (lambda x: -0.5 * x**2, lambda rng, n: rng.normal(size=n), lambda rng, n: 2.0 * rng.normal(size=n)),
}


def smallest(log_density, draw, seed, n=1000):
    rng = np.random.default_rng(seed)
    return 2.0 * np.nanmin(flow_along(draw(rng, n), 0.0, 1.0, log_density, rng).p_values)


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_level_and_power(name):
    """400 right samples: no more below 0.01 than the 99.9% quantile; 20 wrong ones: all below 0.001."""
    log_density, right, wrong = LAWS[name]
    assert sum(smallest(log_density, right, seed) < 0.01 for seed in range(400)) <= binom.ppf(0.999, 400, 0.01)
    assert sum(smallest(log_density, wrong, seed) < 0.001 for seed in range(20)) >= 19
