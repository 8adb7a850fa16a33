"""Limits of the log evidence from forward weights alone: exact below, and above only where they can be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from bread.errors import InvalidArgumentError
from bread.statistics.evidence.evidence_interval import weight_interval, weight_lower_limit

RUNS = 200
MOST = 0.05 + 4 * np.sqrt(0.05 * 0.95 / RUNS)  # misses of a 95 % interval, 4 standard errors


def log_weights(law: str, size: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Log weights whose mean weight is exactly 1."""
    if law == "lognormal":
        return size * rng.standard_normal(n) - size**2 / 2
    if law == "pareto":  # weights with a tail of this index
        return np.log((rng.pareto(size, n) + 1) * (size - 1) / size)
    if law == "gamma":  # log weights skewed to the right; weights with a tail of index 1 / size
        return size * rng.gamma(4.0, size=n) + 4 * np.log1p(-size)
    if law == "exponential":  # log weights skewed to the left
        return -size * rng.exponential(size=n) + np.log1p(size)
    if law == "zero":  # a share of the chains meets a ratio of zero
        return np.where(rng.random(n) < size, -np.inf, -np.log1p(-size))
    raise KeyError(law)


LAWS = [
    ("lognormal", 0.1), ("lognormal", 1.0), ("lognormal", 3.0), ("pareto", 1.2), ("gamma", 0.4), ("exponential", 3.0),
    ("zero", 0.6),
]  # fmt: skip


def lower_misses(limit, law, size, n):
    rng = np.random.default_rng(11)
    return np.mean([limit(log_weights(law, size, n, rng)) > 1e-9 for _ in range(RUNS)])


@pytest.mark.parametrize("n", [1, 4, 60])
@pytest.mark.parametrize(("law", "size"), LAWS)
def test_the_lower_limit_holds_whatever_the_law(law, size, n):
    assert lower_misses(lambda values: weight_lower_limit(values, 0.95), law, size, n) <= MOST


def test_the_check_of_the_lower_limit_rejects_others():
    """Negative controls: the estimate itself, and chains run in reverse."""
    assert lower_misses(lambda values: np.log(np.mean(np.exp(values))), "lognormal", 1.0, 60) > MOST
    assert lower_misses(lambda values: weight_lower_limit(-values, 0.95), "lognormal", 1.0, 60) > MOST


def test_the_lower_limit_is_near_where_weights_are_equal_and_many():
    assert weight_lower_limit(np.full(1000, -7.0), 0.975) == pytest.approx(-7.0, abs=0.01)
    assert weight_lower_limit(np.array([-7.0]), 0.975) == pytest.approx(-7.0 + np.log(0.025), abs=1.5)
    assert weight_lower_limit(np.array([-np.inf, -np.inf]), 0.975) == -np.inf


TRUSTED = [("lognormal", 0.1), ("lognormal", 0.5), ("lognormal", 1.0), ("gamma", 0.1), ("exponential", 1.0)]


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize(("law", "size"), TRUSTED)
def test_intervals_cover_and_are_given(law, size, n):
    rng = np.random.default_rng(12)
    found = [weight_interval(log_weights(law, size, n, rng)) for _ in range(RUNS)]
    misses = np.mean([not one.lower <= 0.0 <= one.upper for one in found])
    assert misses <= MOST
    if n == 400:
        assert np.mean([one.upper < np.inf for one in found]) > 0.8


UNTRUSTED = [("lognormal", 3.0), ("pareto", 1.2), ("lognormal", 6.0)]


@pytest.mark.parametrize(("law", "size"), UNTRUSTED)
def test_heavy_tails_have_no_upper_limit(law, size):
    """The flag is what saves the interval: Student's limits, given always, miss in more than 15 % of runs."""
    rng = np.random.default_rng(13)
    found, student_misses = [], []
    for _ in range(RUNS):
        values = log_weights(law, size, 400, rng)
        found.append(weight_interval(values))
        weights = np.exp(values)
        reach = student.ppf(0.975, 399) * weights.std(ddof=1) / 20
        student_misses.append(abs(weights.mean() - 1.0) > reach)
    assert np.mean(student_misses) > 0.15
    assert np.mean([one.upper < np.inf for one in found]) < 0.1
    assert np.mean([not one.lower <= 0.0 <= one.upper for one in found]) <= MOST
    assert all(one.doubts for one in found if one.upper == np.inf)


@pytest.mark.parametrize("n", [1, 4, 20, 49])
def test_few_chains_have_a_lower_limit_alone(n):
    one = weight_interval(np.random.default_rng(14).normal(size=n) * 0.01)
    assert one.upper == np.inf and "equal ones" in one.doubts[0]
    assert one.lower < one.value


def test_a_constant_moves_the_interval_by_itself():
    values = np.random.default_rng(15).normal(size=300) * 0.3
    here, there = weight_interval(values), weight_interval(values - 5000.0)
    assert [there.value, there.lower, there.upper] == pytest.approx([x - 5000.0 for x in here[:3]], abs=1e-8)


def test_zero_weights_alone_say_nothing():
    one = weight_interval(np.full(100, -np.inf))
    assert (one.lower, one.upper) == (-np.inf, np.inf) and "zero" in one.doubts[0]


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_levels(level):
    with pytest.raises(InvalidArgumentError, match="level"):
        weight_interval(np.zeros(100), level)
