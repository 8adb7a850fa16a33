"""How many fresh simulations at one T are worth their price, before twice the temperatures are tried instead.

The unit is the annealing of one simulation at T. ``reference`` is what a fresh one costs before its chains run: what is
fitted to it, in this unit. Simulations of the search have theirs, and twice the T runs on them first.
"""

from __future__ import annotations

DEAR = 4.0  # price of a reference from which on the search must reach its goal before anything is confirmed
MOST_BATCHES = 5  # simulations at one T, over the number that was asked for


def few(n_search: int, n_confirm: int, reference: float) -> int:
    """Return up to how many fresh simulations at T are preferred to a search at twice the T; 0 where none are."""
    return 0 if reference > DEAR else n_search + n_confirm


def most(n_now: int, n_search: int, n_confirm: int, reference: float, *, is_last: bool) -> int:
    """Return how many simulations may confirm one T: more would cost more than twice the temperatures.

    At the last T nothing else can be done, up to `MOST_BATCHES` times the number that was asked for.
    """
    limit = MOST_BATCHES * n_confirm
    at_twice = int((2.0 * n_search + (2.0 + reference) * n_confirm) / (1.0 + reference))
    return limit if is_last else min(n_now + at_twice, limit)
