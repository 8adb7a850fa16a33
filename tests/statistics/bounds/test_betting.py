"""The betting limit: its formula, its numbers, and its level at any number of values and any stopping time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.betting import betting_upper_limit

PROPERTY = settings(max_examples=50, deadline=None, derandomize=True, database=None)
UNIT = arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1))


def limit_on_a_grid(values, level=0.95):
    """The smallest mean on a fine grid at which the capital, value by value, is above 1 / (1 - level)."""
    for mean in np.linspace(0.0, 0.9999, 10_000):
        capital, total, squares = 1.0, 0.05, 0.01
        for t, x in enumerate(values, start=1):
            variance = squares / t  # of t - 1 values and the start
            stake = np.sqrt(2 * np.log(1 / (1 - level)) / (variance * t * np.log(1 + t)))
            capital *= 1 + min(stake, 0.97 / (1 - mean)) * (mean - x)
            total += x
            squares += (x - total / (t + 1)) ** 2
        if capital > 1 / (1 - level):
            return mean
    return 1.0


@pytest.mark.parametrize(("n", "limit"), [(20, 0.18), (40, 0.12), (100, 0.07)])
def test_limit_of_small_errors(n, limit):
    assert betting_upper_limit(np.full(n, 0.045)) == pytest.approx(limit, abs=0.005)


@pytest.mark.parametrize("n", [10, 20, 40, 100])
def test_values_of_zero_leave_about_three_over_n(n):
    # at cap c: n log(1 + c m / (1 - m)) = log 20
    exact = np.expm1(np.log(20) / n) / (0.97 + np.expm1(np.log(20) / n))
    assert betting_upper_limit(np.zeros(n)) == pytest.approx(exact, rel=1e-9)
    assert 0.85 * 3 / n < exact < 1.05 * 3 / n


@pytest.mark.parametrize("n", [1, 7, 25])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_limit_is_where_the_capital_crosses(n, level):
    values = np.random.default_rng(n).beta(0.6, 1.5, size=n)
    assert betting_upper_limit(values, level) == pytest.approx(limit_on_a_grid(values, level), abs=2e-4)


@PROPERTY
@given(UNIT)
def test_limit_properties(values):
    limit = betting_upper_limit(values)
    assert 0.0 < limit <= 1.0
    assert limit <= betting_upper_limit(values, 0.99) + 1e-9
    assert betting_upper_limit(np.append(values, 1.0)) >= limit - 1e-9  # one bad value never narrows it


def test_certain_failure():
    assert betting_upper_limit(np.ones(30)) == 1.0
    assert betting_upper_limit([0.0]) > 0.9  # one value says next to nothing


BERNOULLI = 0.1  # ten data sets in a hundred fail: the hardest population of mean 0.1


def misses_while_looking(limit, *, n_runs=1000, n=100, looks=(5, 10, 20, 40, 60, 80, 100)):
    """Fraction of runs in which the limit fell below the mean at any look."""
    values = (np.random.default_rng(11).random((n_runs, n)) < BERNOULLI).astype(float)
    return sum(any(limit(run[:look]) < BERNOULLI for look in looks) for run in values)


@pytest.mark.statistical
def test_limit_holds_at_any_stopping_time():
    """At most the 99% quantile of 1000 runs at 5%, looked at seven times each."""
    assert misses_while_looking(betting_upper_limit) <= binom.ppf(0.99, 1000, 0.05)


@pytest.mark.statistical
def test_a_gaussian_limit_does_not():
    """Negative control: a limit from mean and standard error at every look misses far more often."""

    def gaussian(values):
        return values.mean() + 1.645 * values.std(ddof=1) / np.sqrt(len(values))

    assert misses_while_looking(gaussian) > binom.ppf(0.99, 1000, 0.05)


@pytest.mark.statistical
def test_limit_without_the_worst_values_does_not():
    """Negative control: the same limit of values of which the worst tenth were dropped silently."""

    def trimmed(values):
        return betting_upper_limit(np.sort(values)[: max(1, int(0.9 * len(values)))])

    assert misses_while_looking(trimmed) > binom.ppf(0.99, 1000, 0.05)


@pytest.mark.parametrize(
    ("values", "level", "message"),
    [
        ([], 0.95, "at least one"),
        ([0.5, 1.5], 0.95, r"value 1 is 1\.5"),
        ([-0.1], 0.95, r"value 0 is -0\.1"),
        ([0.2, np.nan], 0.95, "value 1 is nan"),
        ([0.2], 1.0, r"level.*1\.0"),
        ([0.2], 0.0, r"level.*0\.0"),
    ],
)
def test_arguments_are_checked(values, level, message):
    with pytest.raises(InvalidArgumentError, match=message):
        betting_upper_limit(values, level)
