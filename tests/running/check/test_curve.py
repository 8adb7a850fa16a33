"""Which other numbers of temperatures a check shows."""

import pytest

from bread.running.check.curve import SIMULATIONS, TEMPERATURES, curve_temperatures


@pytest.mark.parametrize(
    ("spent", "shown"),
    [(0.0, []), (8000.0 - 1.0, []), (8000.0, [2]), (32000.0, [2, 4]), (88000.0, [2, 4, 8]), (1e6, [2, 4, 8, 16])],
)
def test_as_many_as_a_tenth_of_the_cost_pays_for(spent, shown):
    """One transition, both directions of 4 chains, 10 data sets, 10 gradients each: 800, of which 1, 3, 7, 15 more."""
    assert SIMULATIONS == 10
    assert curve_temperatures(1, 64, 10.0, 8, spent) == shown


def test_what_was_confirmed_is_not_shown_twice_and_a_long_search_has_a_curve():
    assert curve_temperatures(4, 64, 1.0, 8, 1e9) == [2, 8, 16]
    assert curve_temperatures(16, 64, 1.0, 8, 1e9) == [2, 4, 8]
    assert curve_temperatures(2 * TEMPERATURES[-1], 64, 1.0, 8, 1e9) == []
    assert curve_temperatures(4, 8, 1.0, 8, 1e9) == [2, 8]
