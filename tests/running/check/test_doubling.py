"""How many fresh simulations are preferred to twice the temperatures, by what each costs."""

from __future__ import annotations

import pytest

from bread.running.check.doubling import DEAR, few, most

SEARCH, CONFIRM = 10, 20


def price_at_twice(reference: float) -> float:
    """Return what twice the T costs: chains of the search, then fresh simulations with all that is fitted to them."""
    return 2.0 * SEARCH + CONFIRM * (reference + 2.0)


@pytest.mark.parametrize("reference", [0.0, 0.7, 3.0, 40.0, 1e6])
def test_more_simulations_never_cost_more_than_twice_the_temperatures(reference: float) -> None:
    added = most(CONFIRM, SEARCH, CONFIRM, reference, is_last=False) - CONFIRM
    assert added * (1.0 + reference) <= price_at_twice(reference)
    assert (added + 1) * (1.0 + reference) > price_at_twice(reference)


def test_dear_references_leave_as_many_as_twice_the_temperatures_would_need() -> None:
    assert most(CONFIRM, SEARCH, CONFIRM, 1e6, is_last=False) == 2 * CONFIRM
    assert most(CONFIRM, SEARCH, CONFIRM, 0.0, is_last=False) == CONFIRM + 2 * (SEARCH + CONFIRM)


def test_at_the_last_temperatures_price_is_no_reason() -> None:
    assert most(CONFIRM, SEARCH, CONFIRM, 1e6, is_last=True) == 5 * CONFIRM
    assert most(90, SEARCH, CONFIRM, 0.0, is_last=False) == 5 * CONFIRM


def test_a_search_that_is_only_near_is_confirmed_where_references_are_cheap() -> None:
    assert few(SEARCH, CONFIRM, DEAR) == SEARCH + CONFIRM
    assert few(SEARCH, CONFIRM, DEAR * 1.01) == 0
