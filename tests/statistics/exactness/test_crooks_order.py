"""Order of forward and reverse log weights: exact, by all outcomes; power against wrong slopes; bad input."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.crooks_order import STATISTICS, crooks_order

SIZES = {
    "all alike": np.full(7, 0.8),
    "ties and one huge": np.array([0.1, 0.1, 0.1, 2.0, 2.0, 30.0, 0.5]),
    "spread": np.geomspace(0.01, 9.0, 7),
    "next to nothing": np.array([1e-12, 1e-9, 1e-3, 0.3]),
    "one": np.array([1.3]),
}


def pairs(size, sign):
    """Return forward and reverse log weights of these differences, on data sets of evidences that differ."""
    evidence = np.linspace(-50.0, 20.0, len(size))
    return evidence - 0.3 * sign * size, evidence + 0.7 * sign * size


def draw(rng, n, slope=1.0):
    """Return pairs whose differences have the order of ``slope``: 1 is Crooks'."""
    size = rng.gamma(1.5, 1.0, n)
    return pairs(size, np.where(rng.random(n) < expit(slope * size), 1.0, -1.0))


@pytest.mark.parametrize("name", SIZES)
def test_level_is_exact_for_every_size(name):
    """P(p <= a) <= a for every a, by all 2^n outcomes and their probabilities; one tail alone breaks it."""
    size = SIZES[name]
    signs = np.array(list(product((1.0, -1.0), repeat=len(size))))
    probability = np.where(signs > 0.0, expit(size), expit(-size)).prod(axis=1)
    assert abs(probability.sum() - 1.0) < 1e-12
    p_values = np.array([crooks_order(*pairs(size, sign)).p_values for sign in signs])
    for values in p_values.T:
        for level in np.unique(values):
            assert probability[values <= level * (1.0 + 1e-9)].sum() <= level * (1.0 + 1e-6)
    if name in ("all alike", "spread"):
        assert any(probability[values <= level].sum() > 0.3 * level for values in p_values.T for level in (0.05, 0.2))


@pytest.mark.statistical
def test_the_right_slope_is_rejected_no_more_often_than_the_level_says():
    rng = np.random.default_rng(2)
    right = np.array([crooks_order(*draw(rng, 300)).p_values for _ in range(200)])
    for level in (0.2, 0.05, 0.01):
        assert ((right <= level).sum(axis=0) <= binom.ppf(0.99, len(right), level)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("slope", [0.0, 0.5, 2.0])
def test_wrong_slopes_are_found(slope):
    """At 1500 pairs nearly always, with its sign."""
    rng = np.random.default_rng(1)
    wrong = [crooks_order(*draw(rng, 1500, slope)) for _ in range(20)]
    assert np.mean([one.p_values[1] < 1e-3 for one in wrong]) >= 0.9
    assert all((one.effect[1] > 0.0) == (slope > 1.0) for one in wrong)


def test_what_says_nothing():
    assert (crooks_order([], []).p_values == 1.0).all()
    assert (crooks_order([-np.inf] * 40, np.zeros(40)).p_values == 1.0).all()  # every forward weight is zero
    assert (crooks_order(np.arange(40.0), np.arange(40.0)).p_values == 1.0).all()  # no kernel, or no data
    assert (crooks_order(np.full(40, -1e6), np.full(40, 1e6)).p_values == 1.0).all()
    with_zeros = crooks_order([0.0, -np.inf, 1.0, 0.3], [1.0, 2.0, 0.5, 0.4])
    np.testing.assert_array_equal(with_zeros.p_values, crooks_order([0.0, 1.0, 0.3], [1.0, 0.5, 0.4]).p_values)
    assert len(with_zeros.p_values) == len(STATISTICS)


def test_one_impossible_order_is_enough():
    """A forward weight that is e^30 times the reverse one: probability e^-30, counted as no less than e^-4 by size."""
    found = crooks_order([30.0] * 3, [0.0] * 3)
    assert found.p_values[0] < 1e-30 and (found.effect < 0.0).all()


@pytest.mark.parametrize(
    ("forward", "reverse"),
    [([0.0], [0.0, 1.0]), ([np.nan], [0.0]), ([0.0], [-np.inf]), ([np.inf], [0.0]), ([[0.0]], [[0.0]])],
)
def test_errors(forward, reverse):
    with pytest.raises(InvalidArgumentError, match="log weight"):
        crooks_order(forward, reverse)
