"""Limits of the bound of the total variation: they cover where tails are geometric, and refuse where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from bread.errors import InvalidArgumentError
from bread.statistics.compare.meetings import excess_counts, meeting_bound

N_RUNS = 150


def geometric_times(rng, n, lag, rate=0.1):
    return lag + rng.geometric(rate, n).astype(float)


def exact_mean(t, lag, rate=0.1, most=100_000):
    """Return E[ceil((tau - L - t) / L)_+] of geometric meeting times by a sum."""
    k = np.arange(1, most)
    return float(np.sum((1 - rate) ** (k - 1) * rate * np.maximum(np.ceil((k - t) / lag), 0)))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("lag", [5, 40])
def test_limits_cover_where_times_are_geometric(lag):
    """At most 5% below the truth, plus 4 standard errors of that share; few tails are called heavy."""
    rng, wanted = default_rng(8), (5, 20, 35)
    missed, missed_exact, heavy = np.zeros(3), np.zeros(3), 0
    for _ in range(N_RUNS):
        bound = meeting_bound(geometric_times(rng, 100, lag), lag, 2000)
        heavy += bound.is_heavy
        at = np.minimum(np.searchsorted(bound.iterations, wanted), len(bound.iterations) - 1)
        where = bound.iterations[at]
        missed += bound.limit[at] < [exact_mean(t, lag) for t in where]
        missed_exact += bound.limit_exact[at] < 0.9**where
    allowed = 0.05 + 4 * np.sqrt(0.05 * 0.95 / N_RUNS)
    assert (missed / N_RUNS <= allowed).all() and (missed_exact / N_RUNS <= allowed).all()
    assert heavy / N_RUNS <= 0.01 + 4 * np.sqrt(0.01 * 0.99 / N_RUNS)


@pytest.mark.slow
@pytest.mark.statistical
def test_means_without_a_limit_for_the_tail_do_not_cover():
    """Negative control: the mean and two standard errors alone are below the truth in far more than 5% of runs."""
    rng, t, lag = default_rng(9), 35, 5
    missed = 0
    for _ in range(N_RUNS):
        counts = excess_counts(geometric_times(rng, 100, lag), lag, np.array([t]))[:, 0]
        missed += counts.mean() + 1.645 * counts.std(ddof=1) / 10 < exact_mean(t, lag)
    assert missed / N_RUNS > 0.1


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["pareto", "second mode"])
def test_tails_that_carry_the_bound_get_no_limit(kind):
    """Times with an infinite mean, and times of which 2% are a hundred times the others."""
    rng, silent = default_rng(10), 0
    for _ in range(50):
        times = 20 + rng.geometric(0.2, 200).astype(float)
        if kind == "pareto":
            times = 20 + np.ceil(2 * rng.pareto(0.9, 200) + 1)
        else:
            times[:4] += 500 * rng.exponential(size=4)
        bound = meeting_bound(times, 20, int(times.max()) + 20)
        assert not bound.is_heavy or (np.isinf(bound.limit).all() and bound.first_below(0.5) is None)
        silent += not bound.is_heavy
    assert silent <= 5


def test_one_pair_that_never_met_makes_the_bound_unknown():
    times = np.full(500, 12.0)
    times[3] = np.inf
    bound = meeting_bound(times, 10, 1000)
    assert np.isinf(bound.bound).all() and np.isinf(bound.limit).all() and bound.first_below(0.9) is None
    assert bound.n_unmet == 1
    # what the next L iterations change is still known, and counts the pair
    assert bound.limit_exact[-1] == pytest.approx(0.00945, abs=2e-4)


def test_counts_by_hand():
    times = np.array([11.0, 14.0, 20.0, 31.0])
    assert (excess_counts(times, 10, np.array([0, 1, 4, 21]))
            == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [3, 2, 2, 0]]).all()  # fmt: skip


def test_limits_never_rise_and_lie_above_the_means():
    bound = meeting_bound(geometric_times(default_rng(1), 300, 7), 7, 3000)
    assert (np.diff(bound.limit) <= 0).all() and (np.diff(bound.bound) <= 0).all()
    assert (bound.limit > bound.bound).all() and bound.bound[-1] == 0 < bound.limit[-1]


@pytest.mark.parametrize(
    ("times", "lag", "horizon"),
    [([5.0] * 39, 1, 100), ([5.0] * 40, 5, 100), ([5.0] * 40, 3, 4), ([50.0] * 40, 1, 40), ([np.nan] * 40, 1, 40)],
)
def test_what_is_refused(times, lag, horizon):
    with pytest.raises(InvalidArgumentError):
        meeting_bound(times, lag, horizon)
