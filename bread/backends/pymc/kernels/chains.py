"""One annealed chain: forward from the base of the path, or in reverse from a draw at its end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bread.backends.base import Direction, Failure, FloatArray
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.support.independence import Proposals, is_moved
from bread.paths.kinds import Path


class _ChainFailure(Exception):
    """A chain ends before its time; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.name)
        self.failure = failure


class Chain:
    """One annealed chain, with what `AnnealRun` records of it."""

    def __init__(
        self,
        engine: Engine,
        path: Path,
        betas: FloatArray,
        prepared: list[list[Any]],
        direction: Direction,
        initial: FloatArray,
        draw_proposals: Callable[[], Proposals | None] = lambda: None,
        every: int = 1,
    ) -> None:
        self.engine = engine
        self.path = path
        self.betas = betas
        self.prepared = prepared  # kernel settings at each of betas
        self.direction = direction
        self.draw_proposals = draw_proposals
        self.every = every  # temperatures at which the kernel itself moves, where draws are proposed
        self.proposals: Proposals | None = None  # before each transition forward, after it in reverse
        self.state_at_base = self.state_at_end = initial
        self.log_ratio = np.full(len(betas), np.nan)
        self.log_base_density = np.full(2, np.nan)
        self.log_weight = np.nan
        self.n_divergences = 0
        self.failure = Failure.NONE
        self.message = ""

    def run(self) -> None:
        """Run the chain to its end or its failure."""
        gradients, evaluations = self.engine.counts
        try:
            self.proposals = self.draw_proposals()
            if self.direction == "forward":
                self._run_forward(self.state_at_base)
            else:
                self._run_reverse(self.state_at_end)
            self.log_weight = float(self.path.log_weight(self.betas, self.log_ratio))
        except _ChainFailure as error:
            self.failure = error.failure
            self.log_weight = -np.inf if error.failure == Failure.ZERO_RATIO else np.nan
        except Exception as error:
            self.failure, self.log_weight = Failure.EXCEPTION, np.nan
            self.message = f"{type(error).__name__}: {error}"
        self.proposals = None  # as long as the chain, and of no more use
        self.n_gradients = self.engine.counts[0] - gradients
        self.n_evaluations = self.engine.counts[1] - evaluations

    def _run_forward(self, state: FloatArray) -> None:
        log_base, log_ratio = self.engine.terms(state)
        self.log_base_density[0] = log_base
        self._require_support(log_base)
        position = self.engine.position_of(state)
        self.log_ratio[0] = log_ratio
        try:
            for index in range(1, len(self.betas)):
                self._require_ratio(log_ratio, Failure.ZERO_RATIO)
                position, log_ratio = self._propose(index - 1, index, position, log_ratio)
                position, log_ratio = self._move(index, position, log_ratio)
                self.log_ratio[index] = log_ratio
        finally:
            self.state_at_end = self.engine.state_of(position)
            self.log_base_density[1] = self.engine.terms(self.state_at_end)[0]

    def _run_reverse(self, state: FloatArray) -> None:
        log_base, log_ratio = self.engine.terms(state)
        self.log_base_density[1] = log_base
        self._require_support(log_base)
        self._require_ratio(log_ratio, Failure.ZERO_INITIAL)
        position = self.engine.position_of(state)
        self.log_ratio[-1] = log_ratio
        try:
            for index in range(len(self.betas) - 1, 0, -1):
                position, log_ratio = self._move(index, position, log_ratio)
                position, log_ratio = self._propose(len(self.betas) - 1 - index, index, position, log_ratio)
                self.log_ratio[index - 1] = log_ratio
                self._require_ratio(log_ratio, Failure.NAN)  # a kernel above beta = 0 never ends at zero
        finally:
            self.state_at_base = self.engine.state_of(position)
            self.log_base_density[0] = self.engine.terms(self.state_at_base)[0]

    def _move(self, index: int, position: Any, log_ratio: float) -> tuple[Any, float]:
        if self.proposals is not None and not is_moved(index, len(self.betas) - 1, self.every):
            return position, log_ratio
        self.engine.set_kernel(self.betas[index], self.prepared[index], reverse=self.direction == "reverse")
        position, log_ratio, diverged = self.engine.move(position)
        self.n_divergences += diverged
        return position, log_ratio

    def _propose(self, step: int, index: int, position: Any, log_ratio: float) -> tuple[Any, float]:
        """Return where the chain is after the proposal of a step, at inverse temperature ``index``."""
        proposals = self.proposals
        if proposals is None or not proposals.accepts(step, float(self.betas[index]), log_ratio):
            return position, log_ratio
        return self.engine.position_of(proposals.states[step]), float(proposals.log_ratio[step])

    @staticmethod
    def _require_support(log_base: float) -> None:
        if log_base == -np.inf:
            raise _ChainFailure(Failure.ZERO_INITIAL)
        if not np.isfinite(log_base):
            raise _ChainFailure(Failure.NAN)

    @staticmethod
    def _require_ratio(log_ratio: float, if_zero: Failure) -> None:
        if log_ratio == -np.inf:
            raise _ChainFailure(if_zero)
        if not math.isfinite(log_ratio):
            raise _ChainFailure(Failure.NAN)
