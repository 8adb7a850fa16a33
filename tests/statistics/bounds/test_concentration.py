"""Values that hold most of a sum, and what sets them apart."""

from math import comb

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.concentration import carriers, set_apart


@pytest.mark.parametrize(
    ("values", "positions", "share", "are_few"),
    [
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0], 1.0, True),
        ([0.1] * 17 + [15.0, 30.0, 20.0], [17, 18, 19], 65 / 66.7, True),
        ([1.0] * 10, list(range(8)), 0.8, False),  # equal values: nobody carries it
        ([4.0, 1.0], [0], 0.8, False),  # one of two is not few
        ([0.0, 0.0], [], 0.0, False),
        ([], [], 0.0, False),
        ([1.0, np.inf, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1], 1.0, True),
        ([1e308, 1e308, 0, 0, 0, 0, 0, 0], [0, 1], 1.0, True),  # whose sum overflows
    ],
)
def test_the_fewest_values_that_hold_most(values, positions, share, are_few):
    found = carriers(values)
    assert list(found.positions) == positions and found.share == pytest.approx(share)
    assert found.are_few is are_few and found.n_values == len(values)


def test_exponential_values_are_not_carried_by_few():
    # A quarter of them hold 0.25 (1 + log 4) = 0.60 of their mean: below 0.8 by more than 10 standard errors at 4000.
    values = np.random.default_rng(1).exponential(size=4000)
    assert not carriers(values).are_few
    assert carriers(values**6).are_few  # the control: a heavy tail


@pytest.mark.parametrize("values", [[1.0, -0.1], [np.nan, 1.0]])
def test_what_is_no_share_of_a_sum_is_refused(values):
    with pytest.raises(InvalidArgumentError, match="must not be negative or NaN"):
        carriers(values)


def test_a_column_sets_rows_apart_only_where_chance_would_not():
    table = np.random.default_rng(2).normal(size=(20, 5))
    chosen = [3, 7, 11]
    assert set_apart(table, chosen) is None
    table[chosen, 2] -= 20.0
    assert set_apart(table, chosen) == (2, False)
    assert set_apart(-table, chosen) == (2, True)
    assert set_apart(table, chosen, level=2 * 5 / comb(20, 3) - 1e-9) is None  # so likely by chance
    assert set_apart(table[:, [2]], [3]) is None  # one row of 20 is the smallest or largest once in 10
    assert set_apart(table, range(20)) is None and set_apart(table, []) is None


def test_rows_without_a_difference_are_rarely_set_apart():
    # Exact level at most 0.05; 400 tables: 0.05 + 4 standard errors is 0.094.
    rng = np.random.default_rng(3)
    found = [set_apart(rng.normal(size=(20, 20)), [0, 1, 2]) is not None for _ in range(400)]
    assert np.mean(found) < 0.094
