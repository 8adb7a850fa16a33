"""Random numbers of generated quantities: a generator for each row, from that row's seed alone.

Rows are exact draws of the hierarchical program: mu from normal(0.3, 1), and theta from normal(mu, 0.7).
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from tests.support.stan_conjugate import conjugate

pytestmark = pytest.mark.stan

N = 20_000
K = 4.0  # standard errors: 1 of 16,000 right correlations is farther off


def drawn(seeds):
    """Return standard normal numbers (row, 4) that a generator of one row after the other gave."""
    found = conjugate("hierarchical").draws.simulator.draw(seeds).parameters
    mu, theta = found["mu"], found["theta"]
    return np.column_stack([mu - 0.3, (theta - mu[:, None]) / 0.7])


def correlations(values):
    """Return correlations of squares and of values, between columns, and between a row and the one after it."""
    n, k = values.shape
    whole = np.column_stack([values, values**2])
    pairs = np.column_stack([whole[:-1], whole[1:]])
    return np.corrcoef(pairs.T)[np.triu_indices(4 * k, 1)], n - 1


def test_rows_are_normal_and_independent_of_each_other():
    values = drawn(SeedSequence(8).spawn(N))
    for column in values.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    found, n = correlations(values)
    assert np.abs(found).max() < K / np.sqrt(n)


def test_rows_that_share_a_seed_are_seen_to():
    """Negative control."""
    seeds = SeedSequence(8).spawn(N // 2)
    found, n = correlations(drawn([seed for seed in seeds for _ in range(2)]))
    assert np.abs(found).max() > 10 * K / np.sqrt(n)


def test_a_row_depends_on_its_own_seed_alone():
    seeds = SeedSequence(3).spawn(50)
    values = drawn(seeds)
    assert np.array_equal(drawn(seeds[::-1])[::-1], values)
    assert np.array_equal(drawn(seeds[20:21])[0], values[20])
    assert len(np.unique(values)) == values.size
