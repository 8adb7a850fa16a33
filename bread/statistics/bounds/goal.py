"""What a check is to reach, and the one rule that says which bound decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from bread.statistics.bounds.bounds import total_variation_from_jeffreys
from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation, error_interval
from bread.statistics.bounds.intervals import Interval, mean_interval

FloatArray = NDArray[np.float64]

MARGIN = 0.85  # V that a search aims at, over the V that its limit may have: what some twenty simulations leave
ROOM = 0.97  # the same for a limit that more simulations are to bring down


class Decision(NamedTuple):
    """The bound that decides, on some simulations.

    Attributes
    ----------
    name : {"V", "B"}
    values : ndarray, shape (simulation,)
        One value a simulation; their mean is the bound.
    interval : Interval
    limit : float
        What the upper end must not exceed, in the unit of the bound.
    level : float
        Two-sided level of the interval (each end is one-sided at (1 + level) / 2).
    """

    name: Literal["V", "B"]
    values: FloatArray
    interval: Interval
    limit: float
    level: float

    @property
    def is_reached(self) -> bool:
        """Whether the upper end is at most the limit; False without an interval."""
        return self.interval.upper <= self.limit


@dataclass(frozen=True)
class Goal:
    """What a check is to reach.

    Attributes
    ----------
    max_error : float
        Largest limit of V, the error of a probability, in (0, 1).
    target : float or None
        Largest upper end of B in nats, which then decides in place of V.
    """

    max_error: float = 0.1
    target: float | None = None

    def decide(self, forward: ArrayLike, reverse: ArrayLike, level: float, *, is_reliable: bool) -> Decision:
        """Return the bound that decides: V; or B, where a target in nats was given and B has a finite mean.

        Where B was asked for and has no finite mean, V decides: its limit is then the V of
        ``4 V artanh(V) = target``, the error of a probability that B = target would bound.

        Parameters
        ----------
        forward, reverse : array_like, shape (simulation, chain)
            Log weights in nats.
        level : float
            Two-sided confidence level of B's interval; V's limits are each one-sided at (1 + level) / 2.
        is_reliable : bool
            Whether B has a finite mean.
        """
        name, limit = self.decides(is_reliable)
        if name == "B":
            gaps = conditional_gaps(forward, reverse)
            return Decision(name, gaps, mean_interval(gaps, level), limit, level)
        errors = error_by_simulation(forward, reverse)
        return Decision(name, errors, error_interval(errors, one_sided(level)), limit, level)

    def decides(self, is_reliable: bool) -> tuple[Literal["V", "B"], float]:
        """Return which bound decides, and what its upper end must not exceed."""
        if self.target is None:
            return "V", self.max_error
        return ("B", self.target) if is_reliable else ("V", total_variation_from_jeffreys(self.target))

    def gap(self, n_chains: int) -> float:
        """Return the gap (nats) at which the goal is about reached, to predict what it costs."""
        return gap_of_error(MARGIN * self.max_error, n_chains) if self.target is None else self.target


def gap_of_error(error: float, n_chains: int) -> float:
    """Return the gap (nats) of Gaussian log weights whose V, with so many forward chains, is ``error``, in (0, 1).

    Of variance s^2 their gap is s^2, and V is ``2 Phi(s sqrt(1 + 1/K) / 2) - 1`` to first order, with K forward chains.
    """
    s = 2.0 * float(ndtri(0.5 + 0.5 * error)) / np.sqrt(1.0 + 1.0 / n_chains)
    return float(s**2)


def one_sided(level: float) -> float:
    """Return the level of one end of a two-sided interval."""
    return 0.5 + 0.5 * level


def simulations_needed(decision: Decision, level: float, most: int) -> int | None:
    """Return how many simulations would bring the upper end below the limit, if they go on as they have begun.

    Parameters
    ----------
    decision : Decision
        On the simulations so far.
    level : float
        Two-sided level of the next interval (each look spends a part of the error).
    most : int
        None is returned where more than this many would be needed.
    """
    n, (estimate, _, upper) = len(decision.values), decision.interval
    if n < 2 or not np.isfinite(upper) or estimate >= decision.limit * ROOM:
        return None
    half = one_sided(level)
    spread = (upper - estimate) / float(stdtrit(n - 1, one_sided(decision.level))) * np.sqrt(n)  # Hall's limit included
    for wanted in range(n + 1, most + 1):
        if estimate + spread * float(stdtrit(wanted - 1, half)) / np.sqrt(wanted) <= decision.limit * ROOM:
            return wanted
    return None
