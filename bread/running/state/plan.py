"""What a check runs, after defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bread.fitting.search.found_references import FitRequest
from bread.paths.kinds import PriorPath
from bread.paths.mixture import Reference
from bread.running.state.budget import Budget
from bread.statistics.bounds.goal import Goal

NO_PRIOR_PATH = (
    "simulate_from='posterior' anneals from a base that is fitted to the real data and the simulated ones together. "
    "Use path='reference'."
)
AUTO = "auto"  # the cheapest path, by pilots; the first protocol that the model allows
FIRST_TEMPERATURES = 4  # the smallest T of a search


def protocols(simulate_from: str, hyperparameters: Sequence[str] | None, path: str) -> tuple[str, ...]:
    """Return where data sets may come from, in the order in which that is tried; "auto", the last: from nowhere.

    At draws of the posterior nothing is held, and there is no path from the prior.
    """
    if simulate_from != AUTO:
        return (simulate_from,)
    is_open = hyperparameters is None and path != PriorPath.name
    return ("fitted", "posterior", "localised", AUTO) if is_open else ("fitted", "localised", AUTO)


@dataclass(frozen=True)
class PathRequest:
    """Which kind of path, before it is fitted to a data set.

    Attributes
    ----------
    kind : str
        One of `bread.paths.kinds.KINDS`, or "auto" in a plan.
    reference : Reference or None
        The user's own, which is then fitted to nothing.
    fit : FitRequest or None
        How a reference is fitted; None for the other kinds and for the user's own.
    """

    kind: str
    reference: Reference | None = None
    fit: FitRequest | None = None


@dataclass(frozen=True)
class Plan:
    """What to run, after defaults: see `bread.check` for the meaning of each field."""

    simulate_from: str
    hyperparameters: tuple[str, ...]
    init_steps: int
    simulations: int
    chains: int
    n_temperatures: tuple[int, ...] | None
    max_temperatures: int
    goal: Goal
    schedule: Any
    path: PathRequest
    tune: int
    tune_each: bool
    draws: int | None
    root: int
    budget: Budget | None = None

    @property
    def adds_data(self) -> bool:
        """Whether simulated data sets come on top of the real one, so that this one alone is another posterior."""
        return self.simulate_from == "posterior"

    @property
    def check_simulations(self) -> float:
        """About how many data sets search and confirmation anneal: what the predicted cost of a check counts."""
        return 1.5 * self.simulations

    @property
    def target(self) -> float:
        """Nats: the gap at which the goal is about reached, to predict what it costs."""
        return self.goal.gap(self.chains)

    @property
    def largest_temperatures(self) -> int:
        """The largest T that may run."""
        return self.max_temperatures if self.n_temperatures is None else self.n_temperatures[-1]

    @property
    def is_searching(self) -> bool:
        """Whether T is searched for, rather than given."""
        return self.n_temperatures is None

    @property
    def search_simulations(self) -> int:
        """Simulated data sets on which T is searched."""
        return max(5, self.simulations // 2)
