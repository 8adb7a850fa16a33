"""Where reverse chains begin: states of a chain at beta = 1 that begins at the exact draw.

Its transitions leave the posterior invariant. Those of the annealing kernel take several gradients each, those that
propose a draw from a near reference one evaluation, and they forget more: where the reference of a data set is near,
most are of this kind.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Kernel, Model, Posterior
from bread.backends.support.base_draws import draw_many
from bread.backends.support.independence import Proposals, draw_proposals
from bread.paths.kinds import Path
from bread.seeds import Purpose, chain_seeds, seed_sequence
from bread.statistics.evidence.evidence import n_effective

LOOKED_AT = 32  # draws from a reference, used for nothing else, that show whether it is near
NEAR = 0.3  # share of them that are effective, by their weights, from which on it is
ROUND, OWN = 20, 4  # transitions of a round, and how many of them, its last, are the kernel's


@dataclass(frozen=True)
class ReverseInitial:
    """Initial states of the reverse chains of one simulation, and what they cost."""

    states: FloatArray  # (chain, dim)
    n_gradients: int
    n_evaluations: int
    seconds: float


@dataclass(frozen=True)
class ReverseInitialTask:
    """Run a chain at beta = 1 from the exact draw; reverse chains begin at its states after ``keep`` transitions."""

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    root: int
    kernel: Kernel
    exact: FloatArray
    keep: tuple[int, ...]
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> ReverseInitial:
        """Return the states, shape (len(keep), dim)."""
        began = time.perf_counter()
        posterior = model.condition(self.data)
        n_evaluations = 0
        if self.path.reference is not None and max(self.keep, default=0):
            n_evaluations = LOOKED_AT
            if self._is_near(posterior):
                return _mostly_redrawn(self, posterior, began)
        seed = seed_sequence(self.root, Purpose.EVOLVE, self.simulation)
        evolution = posterior.evolve(self.path, self.kernel, 1.0, self.exact, self.keep, seed)
        return ReverseInitial(
            evolution.states,
            evolution.n_gradients,
            evolution.n_evaluations + n_evaluations,
            time.perf_counter() - began,
        )

    def _is_near(self, posterior: Posterior) -> bool:
        """Return whether draws from the reference show it to be near; they are not among those that are proposed."""
        seeds = chain_seeds(self.root, Purpose.START_LOOK, self.simulation, 0, range(LOOKED_AT))
        return effective_share(posterior.log_ratio(self.path, draw_many(posterior, self.path, seeds))) >= NEAR


class _Chain:
    """A chain that begins at the exact draw, mostly of proposals."""

    def __init__(self, posterior: Posterior, task: ReverseInitialTask, proposals: Proposals) -> None:
        self.n_gradients = self.n_evaluations = 0
        self._posterior, self._task, self._proposals = posterior, task, proposals
        self._state, self._n_done = np.array(task.exact, dtype=np.float64), 0
        self._log_ratio = self._evaluated()

    def after(self, n_steps: int) -> FloatArray:
        """Return the state after so many transitions, in all."""
        while self._n_done < n_steps:
            if self._n_done % ROUND < ROUND - OWN:
                if self._proposals.accepts(self._n_done, 1.0, self._log_ratio):
                    self._state = self._proposals.states[self._n_done]
                    self._log_ratio = float(self._proposals.log_ratio[self._n_done])
                self._n_done += 1
            else:
                self._move(min(n_steps, self._n_done - self._n_done % ROUND + ROUND) - self._n_done)
        return self._state

    def _move(self, n_steps: int) -> None:
        """Move by the kernel."""
        task = self._task
        seed = seed_sequence(task.root, Purpose.EVOLVE, task.simulation, 0, self._n_done)
        moved = self._posterior.evolve(task.path, task.kernel, 1.0, self._state, (n_steps,), seed)
        self.n_gradients += moved.n_gradients
        self.n_evaluations += moved.n_evaluations
        self._state, self._n_done = moved.states[0], self._n_done + n_steps
        self._log_ratio = self._evaluated()

    def _evaluated(self) -> float:
        self.n_evaluations += 1
        return float(self._posterior.log_ratio(self._task.path, self._state[None])[0])


def _mostly_redrawn(task: ReverseInitialTask, posterior: Posterior, began: float) -> ReverseInitial:
    n_steps = max(task.keep)
    proposals = draw_proposals(
        lambda seeds: draw_many(posterior, task.path, seeds),
        lambda states: posterior.log_ratio(task.path, states),
        n_steps,
        seed_sequence(task.root, Purpose.START_DRAWS, task.simulation),
    )
    chain = _Chain(posterior, task, proposals)
    states = np.stack([chain.after(step) for step in task.keep])
    n_evaluations = LOOKED_AT + n_steps + chain.n_evaluations
    return ReverseInitial(states, chain.n_gradients, n_evaluations, time.perf_counter() - began)


def effective_share(log_weights: FloatArray) -> float:
    """Return the effective sample size of draws by their weights, as a share of them; 0 where no weight is finite.

    Parameters
    ----------
    log_weights : ndarray, shape (n,)
        In nats; those that are NaN have no weight.
    """
    return n_effective(np.where(np.isnan(log_weights), -np.inf, log_weights)) / len(log_weights)
