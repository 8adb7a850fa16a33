"""Log ratios at both ends of a path, in numbers that tell whether B has a mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Model
from bread.backends.support.base_draws import draw_many
from bread.paths.kinds import Path
from bread.running.pilots.tuning import TAIL_DRAWS, Pilot
from bread.seeds import Purpose, chain_seeds
from bread.statistics.bounds.tails import centred_tail_index, is_base_in_doubt

MOST_TAIL_DRAWS = 32000  # of each pilot
TAIL_GROWTH = 4  # of the draws, while they leave it open whether their mean is finite
END_DRAWS = 400  # exact draws, each with its data set
END_BATCH = 50  # of them a task


@dataclass(frozen=True)
class BaseDrawsTask:
    """Draw from the base of a path, numbers ``first`` to ``last`` of its tail draws."""

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    root: int
    first: int
    last: int
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> FloatArray:
        """Return their log ratios."""
        posterior = model.condition(self.data)
        seeds = chain_seeds(self.root, Purpose.TAIL, self.simulation, 0, range(self.first, self.last))
        return posterior.log_ratio(self.path, draw_many(posterior, self.path, seeds))

    def in_batches(self) -> list[BaseDrawsTask]:
        """Return tasks of at most `TAIL_DRAWS` draws that make up this one, for as many workers as there are."""
        starts = range(self.first, self.last, TAIL_DRAWS)
        return [replace(self, first=first, last=min(first + TAIL_DRAWS, self.last)) for first in starts]


@dataclass(frozen=True)
class EndTask:
    """Evaluate log ratios at exact draws, each with the data set that came with it."""

    path: Path
    states: FloatArray
    data: tuple[dict[str, NDArray[Any]], ...]
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> FloatArray:
        """Return them, one a draw."""
        values = [
            model.condition(data).log_ratio(self.path, state[None])[0]
            for data, state in zip(self.data, self.states, strict=True)
        ]
        return np.array(values, dtype=np.float64)


def with_decided_tails(pilots: Sequence[Pilot], more: Callable[[int, int], Sequence[FloatArray]]) -> list[Pilot]:
    """Return pilots with more draws from the base, equally many each, where together they leave B's mean open.

    Parameters
    ----------
    pilots : sequence of Pilot
        Along one kind of path, one a data set.
    more : callable
        Given two numbers, returns the log ratios of the draws between them, one array a pilot.
    """
    pilots = list(pilots)
    while _in_doubt(pilots):
        n_now = len(pilots[0].base_log_ratio)
        added = more(n_now, min(TAIL_GROWTH * n_now, MOST_TAIL_DRAWS))
        pilots = [_with(pilot, values) for pilot, values in zip(pilots, added, strict=True)]
    return pilots


def _in_doubt(pilots: Sequence[Pilot]) -> bool:
    counts = {len(pilot.base_log_ratio) for pilot in pilots}
    if len(counts) != 1 or not TAIL_DRAWS <= counts.pop() < MOST_TAIL_DRAWS:
        return False
    return is_base_in_doubt(centred_tail_index([pilot.base_log_ratio for pilot in pilots]))


def _with(pilot: Pilot, values: FloatArray) -> Pilot:
    kernel = replace(pilot.kernel, n_evaluations=pilot.kernel.n_evaluations + len(values))
    return pilot._replace(kernel=kernel, base_log_ratio=np.concatenate([pilot.base_log_ratio, values]))
