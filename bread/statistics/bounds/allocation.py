"""How many temperatures and simulations to pay for: where the limit of V falls fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bread.statistics.bounds.forecast import Forecast, Prediction

Cost = Callable[[int, int], float]


class Allocation(NamedTuple):
    """Temperatures and simulations of one confirmation.

    Attributes
    ----------
    n_temperatures, n_simulations : int
    cost : float
        In the unit of the budget.
    limit : Prediction
        Of V, at the level that the confirmation will have.
    """

    n_temperatures: int
    n_simulations: int
    cost: float
    limit: Prediction


def allocations(
    predicted: Forecast, cost: Cost, temperatures: Sequence[int], simulations: Sequence[int], level: float
) -> list[Allocation]:
    """Return every pair of T and number of simulations with its price and what it is predicted to show."""
    return [Allocation(t, n, cost(t, n), predicted.limit(t, n, level)) for t in temperatures for n in simulations]


def cheapest_to_reach(options: Sequence[Allocation], wanted: float) -> Allocation | None:
    """Return the cheapest that is likely to reach this limit, None where none is: the upper end is at most ``wanted``.

    Failing costs a confirmation and half of the error that is left, so an even chance is not enough.
    """
    likely = [option for option in options if option.limit.upper <= wanted]
    return min(likely, key=lambda option: option.cost, default=None)


def best(options: Sequence[Allocation], left: float, wanted: float) -> Allocation | None:
    """Return the cheapest that is likely to reach ``wanted``; else the lowest limit that can be paid for, if any can.

    Parameters
    ----------
    options : sequence of Allocation
    left : float
        What may be spent.
    wanted : float
        The limit of V at which a check stops.
    """
    paid = [option for option in options if option.cost <= left]
    reached = cheapest_to_reach(paid, wanted)
    return reached or min(paid, key=_order, default=None)


def _order(option: Allocation) -> tuple[float, float, float]:
    """Lower limits first; of those that are 1 all alike, that which might be lower."""
    return option.limit.estimate, option.limit.lower, option.cost
