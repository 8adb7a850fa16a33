"""Whether a law given some coordinates is near, from a few of their values: against models where that is known."""

from __future__ import annotations

import numpy as np
import pytest

from bread.fitting.conditional.probing import AT, is_hopeless
from bread.fitting.search.searches import conditional
from bread.fitting.search.work import FitWork
from tests.support.two_scales import TWO_SCALES, exact_draws

DATA = TWO_SCALES.observed_data
DRAWS = exact_draws(DATA)
BOTH, ONE = (0, 1), (0, 2)  # both spreads, given which all laws are normal; one of them, and an effect


def work():
    return FitWork(TWO_SCALES.condition(DATA), TWO_SCALES.transformed, 1, 0)


def hopeless(drivers, limit, one=None):
    one = one or work()
    return is_hopeless(one, drivers, DRAWS[5], DRAWS[:, list(drivers)], limit), one.n_gradients


@pytest.mark.parametrize("limit", [0.05, 1.0, 3.0])
def test_where_laws_given_the_drivers_are_normal_nothing_is_hopeless(limit):
    found, n_gradients = hopeless(BOTH, limit)
    assert not found
    assert n_gradients < 2 * TWO_SCALES.dim, "one value is enough"


def test_where_a_spread_is_left_out_it_is_hopeless_at_a_low_limit():
    """Given one spread the other makes a funnel; a limit of very many nats is no limit."""
    found, n_gradients = hopeless(ONE, 0.05)
    assert found
    assert n_gradients < len(AT) * (100 + 2 * TWO_SCALES.dim)
    assert not hopeless(ONE, 1e3)[0], "control"


def test_a_search_that_is_hopeless_costs_little_and_finds_nothing():
    """A third of what it costs where it is not; with the drivers that serve a law is found, as ever."""
    vain, found = work(), work()
    assert conditional(vain, list(ONE), DRAWS[5], DRAWS, limit=0.05) is None
    assert conditional(found, [0, 1, 2], DRAWS[5], DRAWS) is not None
    assert vain.n_gradients < found.n_gradients / 3


def test_it_is_the_same_every_time():
    assert hopeless(ONE, 0.05) == hopeless(ONE, 0.05)
    assert np.isfinite(hopeless(BOTH, 1.0)[1])
