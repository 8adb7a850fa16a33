"""Units of work of the search for modes on the real data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Model
from bread.fitting.search.joint_density import joint_log_density
from bread.running.missed_modes.label_switching import Exchange, find_exchanges
from bread.running.missed_modes.optimise import Found, climb, draw_prior, proposal_at
from bread.running.state.results import OBSERVED
from bread.seeds import Purpose, chain_seeds
from bread.statistics.real_data.modes import Proposal, region_evidence

FIRST, ENOUGH_EFFECTIVE = 1000, 400.0  # draws of a proposal, of which so many effective ones are enough
LITTLE = 0.05  # of their weight
DRAWN, WEIGHED = 0, 1  # seeds of prior draws and of draws of proposals, in place of T


class Evaluated(NamedTuple):
    """States, shape (n, dim), with the joint log density (nats) at each."""

    states: FloatArray
    log_density: FloatArray


@dataclass(frozen=True)
class PriorDrawTask:
    """Draw from the prior, numbers ``first`` to ``last`` of its draws, and evaluate the joint density."""

    data: dict[str, NDArray[Any]]
    root: int
    first: int
    last: int
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Evaluated:
        """Return the draws."""
        seeds = chain_seeds(self.root, Purpose.MODES, OBSERVED, DRAWN, range(self.first, self.last))
        return Evaluated(*draw_prior(model.condition(self.data), seeds))


@dataclass(frozen=True)
class EvaluateTask:
    """Evaluate the joint density at given states; with ``seeks_exchanges`` also which labels may be exchanged."""

    data: dict[str, NDArray[Any]]
    states: FloatArray
    seeks_exchanges: bool = False
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> tuple[FloatArray, tuple[Exchange, ...]]:
        """Return the log density (nats), shape (n,), and the exchanges."""
        posterior = model.condition(self.data)
        values = joint_log_density(posterior, self.states)
        if not self.seeks_exchanges:
            return values, ()
        return values, find_exchanges(
            model, self.states[np.isfinite(values)], lambda states: joint_log_density(posterior, states)
        )


@dataclass(frozen=True)
class ClimbTask:
    """Optimise from one state."""

    data: dict[str, NDArray[Any]]
    start: FloatArray
    most_steps: int
    scale: FloatArray
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Found:
        """Return where the log density is largest."""
        return climb(model.condition(self.data), self.start, self.most_steps, self.scale)


@dataclass(frozen=True)
class ProposalTask:
    """Find the shape of a mode."""

    data: dict[str, NDArray[Any]]
    state: FloatArray
    scale: FloatArray
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> tuple[Proposal | None, int]:
        """Return the proposal, and how many gradients it took."""
        return proposal_at(model.condition(self.data), self.state, self.scale)


@dataclass(frozen=True)
class WeighTask:
    """Draw from a proposal and evaluate the joint density there, and at some more states.

    With ``may_stop`` the first `FIRST` draws are all where they have `ENOUGH_EFFECTIVE` effective ones, and little of
    their weight where the density exceeds that at all other states, as the peak of a narrow mode would have.
    """

    data: dict[str, NDArray[Any]]
    proposal: Proposal
    n: int
    seed: SeedSequence
    more: FloatArray
    may_stop: bool = False
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> tuple[Evaluated, FloatArray]:
        """Return the draws, and the log density (nats) at the other states."""
        states, posterior = self.proposal.sample(self.n, np.random.default_rng(self.seed)), model.condition(self.data)
        n_first = FIRST if self.may_stop else self.n
        values = joint_log_density(posterior, np.concatenate([self.more, states[:n_first]]))
        there, values = values[: len(self.more)], values[len(self.more) :]
        if n_first < self.n and not self._is_enough(states[:n_first], values, max(there, default=np.inf)):
            values = np.concatenate([values, joint_log_density(posterior, states[n_first:])])
        return Evaluated(states[: len(values)], values), there

    def _is_enough(self, states: FloatArray, values: FloatArray, level: float) -> bool:
        whole, peak = (region_evidence(self.proposal, states, values, above) for above in (-np.inf, level))
        return whole.n_effective >= ENOUGH_EFFECTIVE and peak.value < whole.value + np.log(LITTLE)
