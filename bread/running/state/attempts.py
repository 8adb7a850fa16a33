"""What was to be annealed both ways, in which order: so that neither success nor speed selects what is counted.

Bounds and tests take simulations in the order in which they were planned, up to the first that has not finished.
Those that happen to be finished when a check is interrupted are the fast ones, and fast data sets are often easy ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bread.backends.base import AnnealRun, Direction

RunKey = tuple[int, Direction, int]
Counts = Literal["first", "all", "none"]


@dataclass
class Attempts:
    """Pairs (simulation, T) in the order in which they were planned.

    Attributes
    ----------
    planned : list of (int, int)
        Along the present path.
    tested : list of (int, int)
        Those that count in tests of what is broken, over all attempts and paths. Where T is searched for, a simulation
        counts at the first T at which it was annealed: whether it runs at others depends on its own outcome. Where T
        was given it counts at each.
    forgotten : dict of (simulation, direction, T) to AnnealRun
        Runs along a path that was left, where tests need them.
    """

    planned: list[tuple[int, int]] = field(default_factory=list)
    tested: list[tuple[int, int]] = field(default_factory=list)
    forgotten: dict[RunKey, AnnealRun] = field(default_factory=dict)

    def plan(self, simulations: Sequence[int], n_temperatures: int, counts: Counts) -> None:
        """Note that these simulations are about to be annealed at this T, and whether that counts in tests."""
        seen = {simulation for simulation, _ in self.tested}
        for simulation in simulations:
            pair = (int(simulation), n_temperatures)
            if pair not in self.planned:
                self.planned.append(pair)
            is_new = pair not in self.tested if counts == "all" else counts == "first" and pair[0] not in seen
            if is_new:
                self.tested.append(pair)

    def leave_path(self, runs: Mapping[RunKey, AnnealRun]) -> None:
        """Keep what tests need of ``runs``, which are about to be forgotten."""
        self.forgotten |= {key: run for key, run in runs.items() if (key[0], key[2]) in self.tested}
        self.planned.clear()

    def finished(self, runs: Mapping[RunKey, AnnealRun], n_temperatures: int, simulations: Sequence[int]) -> list[int]:
        """Return those of ``simulations`` planned at this T, in order, up to the first that has not finished."""
        wanted = set(simulations)
        pairs = [pair for pair in self.planned if pair[1] == n_temperatures and pair[0] in wanted]
        return [simulation for simulation, _ in _prefix(pairs, runs)]

    def finished_tests(
        self, runs: Mapping[RunKey, AnnealRun]
    ) -> tuple[list[tuple[int, int]], list[AnnealRun], list[AnnealRun]]:
        """Return what counts in tests, up to the first that has not finished: pairs, forward and reverse runs."""
        everything = {**self.forgotten, **runs}
        pairs = _prefix(self.tested, everything)
        forward = [everything[simulation, "forward", number] for simulation, number in pairs]
        return pairs, forward, [everything[simulation, "reverse", number] for simulation, number in pairs]


def _prefix(pairs: Sequence[tuple[int, int]], runs: Mapping[RunKey, AnnealRun]) -> list[tuple[int, int]]:
    """Return the pairs before the first that has not finished both ways."""
    for place, (simulation, number) in enumerate(pairs):
        if (simulation, "forward", number) not in runs or (simulation, "reverse", number) not in runs:
            return list(pairs[:place])
    return list(pairs)
