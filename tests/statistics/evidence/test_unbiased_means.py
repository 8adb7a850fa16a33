"""Means of unbiased estimates: intervals hold, and none is given where the variance may be infinite."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from bread.errors import InvalidArgumentError
from bread.statistics.evidence.unbiased_means import unbiased_mean

RUNS = 400


def runs(draw, n=300):
    rng = default_rng(3)
    return [unbiased_mean(draw(rng, n), 0.95) for _ in range(RUNS)]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda rng, n: rng.standard_normal(n), 0.0),
        (lambda rng, n: -rng.exponential(size=n), -1.0),
        (lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, 3.0) + rng.standard_normal(n), 1.5),
    ],
    ids=["normal", "skewed", "two sizes"],
)
def test_intervals_are_given_and_hold(draw, mean):
    """At most 1% are refused and at most 8% of 400 intervals miss: 5% and 2.75 standard errors."""
    found = runs(draw)
    given = [one for one in found if not one.doubts]
    assert len(given) >= 0.99 * RUNS
    assert np.mean([not one.lower <= mean <= one.upper for one in given]) < 0.08


@pytest.mark.statistical
def test_no_interval_is_given_where_the_variance_is_infinite():
    """Student's t with 1.3 degrees of freedom (index 0.77) on either side: nine in ten are refused at least."""
    for side in (1.0, -1.0):
        found = runs(lambda rng, n, side=side: side * np.abs(rng.standard_t(1.3, size=n)))
        refused = [one for one in found if one.doubts]
        assert len(refused) > 0.9 * RUNS
        assert all(np.isnan(one.standard_error) and one.lower == -np.inf and one.upper == np.inf for one in refused)


def test_one_estimate_that_carries_the_variance_is_named():
    found = unbiased_mean(np.append(default_rng(0).standard_normal(399), 60.0), 0.95)
    assert any("one of 400 estimates makes up" in doubt for doubt in found.doubts)


def test_an_unfinished_estimate_leaves_nothing():
    found = unbiased_mean(np.append(np.zeros(99), np.nan), 0.95)
    assert np.isnan(found.value) and found.upper == np.inf and "1 of 100" in found.doubts[0]


def test_few_estimates_are_refused():
    with pytest.raises(InvalidArgumentError, match="got 39"):
        unbiased_mean(np.zeros(39), 0.95)
