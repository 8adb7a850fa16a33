"""Columns of a node and its replicates, and p-values in two stages: valid at every level."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.statistics.real_data import replication
from bread.statistics.real_data.replication import EXTREME, RANK, TOTAL


def two_stages(rng, n):
    """Return p-values of n exact tests, 19 replicates first and then 199."""
    real = rng.exponential(size=n)
    first, second = ((1 + (rng.exponential(size=(m, n)) <= real).sum(axis=0)) / (m + 1) for m in (19, 199))
    return first, second


@pytest.mark.statistical
def test_two_stages_are_valid_at_every_level():
    first, second = two_stages(np.random.default_rng(1), 4000)
    staged = replication.staged(first, second, 0.1)
    for level in (0.005, 0.02, 0.05, 0.1, 0.11, 0.3, 0.7):
        assert (staged <= level).sum() <= binom.ppf(0.999, 4000, level)
    # Power: far below the smallest value of the first stage.
    assert staged.min() < 0.05 / 2
    # Negative control: the smaller of the two.
    assert (np.minimum(first, second) <= 0.1).sum() > binom.ppf(0.999, 4000, 0.1)


@pytest.mark.statistical
def test_three_stages_are_valid_at_every_level():
    rng = np.random.default_rng(2)
    real = rng.exponential(size=4000)
    stages = [(1 + (rng.exponential(size=(m, 4000)) <= real).sum(axis=0)) / (m + 1) for m in (19, 99, 499)]
    p_values = replication.staged(stages[0], stages[1], 0.2)
    p_values = replication.staged(p_values, stages[2], 0.02)
    for level in (0.004, 0.01, 0.02, 0.03, 0.1, 0.2, 0.5):
        assert (p_values <= level).sum() <= binom.ppf(0.999, 4000, level)
    assert p_values.min() <= 1 / 500


def test_the_smallest_p_value_of_a_stage_is_always_followed_by_the_next():
    for n, n_columns in ((100, 1), (100, 1000), (1000, 8)):
        assert replication.threshold(0.01, n, n_columns) >= 2 / (n + 1)
    assert replication.threshold(0.1, 100, 1) == 0.1


def test_columns_by_hand():
    values = np.array([[9.0, 1.0], [1.0, 2.0], [3.0, 0.0]])
    pointwise = -np.abs(values)
    spread = (np.array([2.0, 1.0]), np.array([1.0, 0.5]))
    data = replication.columns(values, pointwise.sum(axis=1), pointwise, spread, kind="data")
    np.testing.assert_array_equal(data.statistic, [TOTAL, EXTREME])
    np.testing.assert_array_equal(data.values, [[-10, -9], [-3, -2], [-3, -3]])
    without = replication.columns(values, None, None, spread, kind="data")
    np.testing.assert_array_equal(without.statistic, [EXTREME])
    np.testing.assert_array_equal(without.values[:, 0], [-7, -2, -2])
    ranks = replication.columns(values, None, None, spread, kind="parameter")
    np.testing.assert_array_equal(ranks.statistic, [RANK, RANK])
    scalar = replication.columns(values[:, :1], values[:, 0], None, spread, kind="parameter")
    np.testing.assert_array_equal(scalar.statistic, [RANK])  # its density says less
    alone = replication.columns(values[:, :1], None, None, (np.array([2.0]), np.array([1.0])), kind="predictive")
    np.testing.assert_array_equal(alone.statistic, [EXTREME])
    np.testing.assert_array_equal(alone.values[:, 0], [-7, -1, -1])
    assert [replication.n_statistics(kind, 3) for kind in ("data", "latent", "parameter", "predictive")] == [2, 2, 2, 1]


def test_tallies_are_sided_as_they_should_be():
    batch = replication.Columns(np.array([[0.0, 0.0, 3.0], [1, 1, 1], [2, 2, 2], [0, -1, 5]]), np.array([0, 1, 2]))
    tally = replication.Tally()
    tally.add(batch)
    np.testing.assert_allclose(tally.p_values(batch.statistic), [2 * 2 / 4, 2 / 4, 2 * 2 / 4])
    tally.add(batch)  # another batch of the same node
    assert tally.n == 6
    np.testing.assert_allclose(tally.p_values(batch.statistic), [2 * 3 / 7, 3 / 7, 2 * 3 / 7])
    np.testing.assert_allclose(
        replication.by_statistic(np.array([0.3, 0.2, 0.1]), np.array([0, 2, 2])), [0.3, np.nan, 0.2]
    )


def test_scale_of_a_count_that_is_nearly_always_zero():
    rows = np.zeros((200, 2))
    rows[:4, 0] = 1.0
    centre, scale = replication.centre_and_scale(rows)
    assert centre[0] == 0.0 and scale[0] == pytest.approx(rows[:, 0].std())
    far = replication.deviations(np.array([2.0, 1.0]), (centre, scale))
    assert far[0] > 10.0 and np.isinf(far[1])
    assert replication.deviations(np.array([0.0, 0.0]), (centre, scale)).tolist() == [0.0, 0.0]
