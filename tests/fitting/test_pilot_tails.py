"""How many draws from the start of a path a pilot takes to tell whether their log ratio has a mean."""

import numpy as np
import pytest

from bread.backends.base import Kernel
from bread.paths.kinds import PriorPath
from bread.running.tuning import MOST_TAIL_DRAWS, TAIL_DRAWS, Pilot, with_decided_tail
from bread.statistics import tails

KERNEL = Kernel(betas=np.array([0.0, 1.0]), settings={}, log_ratio=(np.zeros(1), np.zeros(1)), source="")
LIGHT = tails.TailIndex(0.0, 0.25, 16)
N_RUNS = 60


class Start:
    """Log ratios of a known tail index, by inversion: the state is a uniform number."""

    def __init__(self, index):
        self.index = index

    def draw_start(self, path, seeds):
        return np.array([np.random.default_rng(seed).uniform(size=1) for seed in seeds])

    def log_ratio(self, path, states):
        return 1.0 - states[:, 0] ** -self.index  # a Pareto law of shape 1 / index


def decided(index, run):
    """Return the pilot after its first draws, and after as many as it asked for."""
    start = Start(index)
    first = start.log_ratio(None, np.random.default_rng(run).uniform(size=(TAIL_DRAWS, 1)))
    pilot = Pilot(KERNEL, PriorPath(), first, np.zeros(0))
    return pilot, with_decided_tail(pilot, start, run, 0)


def share_reliable(pilots):
    return np.mean(
        [tails.is_mean_reliable(tails.centred_tail_index([pilot.start_log_ratio]), LIGHT) for pilot in pilots]
    )


@pytest.mark.statistical
def test_more_draws_find_a_mean_that_exists_and_none_that_does_not():
    first, last = zip(*(decided(0.8, run) for run in range(N_RUNS)), strict=True)
    # 36 % and 94 % of 200 runs; 60 runs have standard errors of 6 % and 3 %
    assert share_reliable(first) < 0.36 + 4 * 0.062
    assert share_reliable(last) > 0.94 - 4 * 0.031
    heavy, still_heavy = zip(*(decided(1.2, run) for run in range(N_RUNS)), strict=True)
    assert share_reliable(heavy) < 0.06 and share_reliable(still_heavy) < 0.06


def test_draws_are_added_only_where_they_may_decide():
    for index in (0.1, 2.0):  # clearly finite, clearly infinite
        before, after = decided(index, 0)
        assert len(after.start_log_ratio) == len(before.start_log_ratio) == TAIL_DRAWS
    pilots = [decided(1.0, run)[1] for run in range(5)]
    assert max(len(pilot.start_log_ratio) for pilot in pilots) == MOST_TAIL_DRAWS
    for run, pilot in enumerate(pilots):
        first = decided(1.0, run)[0].start_log_ratio
        np.testing.assert_array_equal(pilot.start_log_ratio[:TAIL_DRAWS], first)
        assert pilot.kernel.n_evaluations == len(pilot.start_log_ratio) - TAIL_DRAWS


def test_an_outcome_of_zero_density_asks_for_no_more():
    pilot = Pilot(KERNEL, PriorPath(), np.array([0.0] * 99 + [-np.inf]), np.zeros(0))
    assert with_decided_tail(pilot, Start(1.0), 0, 0).start_log_ratio.size == 100
