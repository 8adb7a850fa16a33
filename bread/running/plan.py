"""What a check runs, after defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bread.paths.mixture import Reference

FIRST_TEMPERATURES = 4  # the smallest T of a search


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
    target: float
    schedule: Any
    path: str
    reference: Reference | None
    tune: int
    tune_each: bool
    draws: int
    root: int

    @property
    def check_simulations(self) -> float:
        """About how many data sets search and confirmation anneal: what the predicted cost of a check counts."""
        return 1.5 * self.simulations

    @property
    def search_simulations(self) -> int:
        """Simulated data sets on which T is searched."""
        return max(5, self.simulations // 2)
