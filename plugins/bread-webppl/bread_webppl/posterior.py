"""A WebPPL program with one data set: densities and chains, which Node.js computes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import (
    Adaptation,
    AnnealRun,
    Direction,
    Evolution,
    Failure,
    FloatArray,
    Kernel,
    Posterior,
    Settings,
)
from bread.backends.support.arguments import check_run
from bread.errors import DensityError, InvalidArgumentError
from bread.paths.kinds import Path, PriorPath
from bread_webppl.program import Chain, Program

NO_REFERENCE = "WebPPL's kernel moves single sites along the prior path. Use path='prior' (or leave path= out)."


@dataclass(frozen=True)
class WebPPLPosterior(Posterior):
    """Implements `bread.backends.base.Posterior`, on the prior path.

    Attributes
    ----------
    program : Program
    data : ndarray
        The observed variables, flat.
    """

    program: Program
    data: FloatArray

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, one state per seed."""
        _require_prior_path(path)
        return self.program.simulate(seeds, None)[0]

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return the log likelihood at each state."""
        _require_prior_path(path)
        return self.program.densities(self.data, states)[1]

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return the log prior at each state."""
        _require_prior_path(path)
        return self.program.densities(self.data, states)[0]

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log prior + log likelihood at each state."""
        _require_prior_path(path)
        prior, likelihood = self.program.densities(self.data, states)
        return prior + likelihood

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tempered log density and its gradient, by WebPPL's automatic differentiation."""
        return self.program.gradients(self.data, np.asarray(states, dtype=np.float64), beta)

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Run the kernel, which has no settings: it proposes from the prior, or from the drift kernels of the program.

        Raises
        ------
        DensityError
            The tempered density of ``state`` is zero or NaN.
        """
        _require_prior_path(path)
        chain = self._run(state, beta, n_steps, (), seed)
        kept = chain.log_likelihood[1 + n_steps // 2 :]
        return Adaptation({}, chain.end, kept, n_gradients=0, n_evaluations=chain.n_evaluations)

    def anneal(
        self,
        path: Path,
        betas: FloatArray,
        kernel: Kernel,
        *,
        direction: Direction,
        initial: FloatArray,
        seeds: Sequence[SeedSequence],
    ) -> AnnealRun:
        """Run one chain per row of ``initial``; see `bread.backends.base.Posterior.anneal`.

        A transition is a number of Metropolis-Hastings updates, each of a site chosen at random. Each is reversible and
        all are alike, so that the transition is its own reversal.

        Raises
        ------
        InvalidArgumentError
            ``betas`` does not increase from 0 to 1, ``direction`` is unknown, or the number of seeds is wrong.
        """
        began = time.perf_counter()
        _require_prior_path(path)
        betas, initial = np.asarray(betas, dtype=np.float64), np.asarray(initial, dtype=np.float64)
        check_run(betas, direction, initial, seeds)
        is_forward = direction == "forward"
        applied = betas[1:] if is_forward else betas[:0:-1]
        log_ratio, log_base = np.full((len(seeds), len(betas)), np.nan), np.full((len(seeds), 2), np.nan)
        ends = initial.copy()
        n_evaluations, failure = np.zeros((2, len(seeds)), dtype=np.int64)
        for row, seed in enumerate(seeds):
            chain = self.program.chain(self.data, initial[row], applied, (), seed)
            ratios = chain.log_likelihood
            whole = np.concatenate([ratios, np.full(len(betas) - len(ratios), np.nan)])
            log_ratio[row] = whole if is_forward else whole[::-1]
            log_base[row] = chain.log_prior if is_forward else chain.log_prior[::-1]
            ends[row], n_evaluations[row] = chain.end, chain.n_evaluations
            failure[row] = _failure(chain, direction)
        with np.errstate(invalid="ignore"):
            log_weight = np.asarray(path.log_weight(betas, log_ratio), dtype=np.float64).reshape(len(seeds))
        log_weight[failure == Failure.ZERO_RATIO] = -np.inf
        log_weight[failure > Failure.ZERO_RATIO] = np.nan
        zeros = np.zeros(len(seeds), dtype=np.int64)
        return AnnealRun(
            log_weight=log_weight,
            log_ratio=log_ratio,
            state_at_base=initial.copy() if is_forward else ends,
            state_at_end=ends if is_forward else initial.copy(),
            log_base_density=log_base,
            n_gradients=zeros,
            n_evaluations=n_evaluations,
            n_divergences=zeros.copy(),
            failure=failure,
            seconds=time.perf_counter() - began,
        )

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain at ``beta`` from ``state``; see `bread.backends.base.Posterior.evolve`.

        Raises
        ------
        DensityError
            The tempered density of ``state`` is zero or NaN.
        """
        _require_prior_path(path)
        return self.evolve_from(state, beta, keep, seed)

    def evolve_from(self, state: FloatArray, beta: float, keep: Sequence[int], seed: SeedSequence) -> Evolution:
        """Run one chain at ``beta``; states after ``keep`` transitions."""
        chain = self._run(state, beta, max(keep, default=0), keep, seed)
        places = np.searchsorted(sorted({int(one) for one in keep}), list(keep))
        states = chain.states[places].reshape(len(keep), self.program.dim)
        states[np.array(list(keep)) == 0] = state  # not there and back
        return Evolution(states, n_evaluations=chain.n_evaluations)

    def _run(self, state: FloatArray, beta: float, n_steps: int, keep: Sequence[int], seed: SeedSequence) -> Chain:
        state = np.asarray(state, dtype=np.float64)
        chain = self.program.chain(self.data, state, np.full(max(n_steps, 1), float(beta)), keep, seed)
        if len(chain.log_likelihood) <= n_steps:
            value = chain.log_prior[0] + beta * chain.log_likelihood[0] if beta else chain.log_prior[0]
            raise DensityError(f"The log density at inverse temperature {beta} is {value} where a chain is to begin.")
        return chain


def _failure(chain: Chain, direction: Direction) -> Failure:
    """Say why a chain has no finite log weight; WebPPL's kernel leaves no state of positive density for another."""
    prior, ratio = chain.log_prior[0], chain.log_likelihood[0]
    if np.isfinite(prior) and np.isfinite(ratio):
        return Failure.NONE
    if prior == -np.inf:
        return Failure.ZERO_INITIAL
    if not np.isfinite(prior) or ratio != -np.inf:
        return Failure.NAN
    return Failure.ZERO_RATIO if direction == "forward" else Failure.ZERO_INITIAL


def _require_prior_path(path: Path) -> None:
    if not isinstance(path, PriorPath):
        raise InvalidArgumentError(f"{NO_REFERENCE} The path is {path!r}.")
