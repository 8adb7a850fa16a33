"""The contract's `Posterior` on a finite state space: chains drawn from the rows of transition matrices."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from bread.backends.base import (
    Adaptation,
    AnnealRun,
    Direction,
    Evolution,
    Failure,
    FloatArray,
    IntArray,
    Kernel,
    Posterior,
    Settings,
)
from bread.backends.support.arguments import check_run
from bread.errors import InvalidArgumentError
from bread.exact.chain import FiniteChain
from bread.paths.kinds import Path

NO_REFERENCE = "States are discrete, and a reference is a density. Use path='prior'."


class FinitePosterior(Posterior):
    """A finite model with its data; made by ``condition`` of the model.

    Parameters
    ----------
    chain : FiniteChain
        Log prior, log likelihood of every state, and kernels.
    """

    def __init__(self, chain: FiniteChain) -> None:
        self.chain = chain

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, one state per seed; shape (len(seeds), dim)."""
        _require_prior(path)
        prior = self.chain.laws([0.0])[0]
        uniforms = np.array([default_rng(seed).random() for seed in seeds])
        return self._states(draw(np.broadcast_to(prior, (len(seeds), len(prior))), uniforms))

    def draw_tempered(self, beta: float, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw exactly from the tempered law, one state per seed; shape (len(seeds), dim)."""
        law = self.chain.laws([beta])[0]
        uniforms = np.array([default_rng(seed).random() for seed in seeds])
        return self._states(draw(np.broadcast_to(law, (len(seeds), len(law))), uniforms))

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return the log likelihood at each of ``states``, shape (n,); -inf is legal, and holds off the grid."""
        _require_prior(path)
        return self._at(self.chain.log_ratio, states)

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log prior + log likelihood (nats), shape (n,); -inf off the grid."""
        _require_prior(path)
        return self._at(self.chain.log_base + self.chain.log_ratio, states)

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return the log prior (nats), shape (n,), also where the likelihood is zero; -inf off the grid."""
        _require_prior(path)
        return self._at(self.chain.log_base, states)

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Run the kernel, which has no settings."""
        visited = self._run(path, beta, self._indices(state[None]), n_steps, [seed])[:, 0]
        kept = self.chain.log_ratio[visited[1 + n_steps // 2 :]]
        return Adaptation({}, self._states(visited[-1:])[0], kept, n_gradients=0, n_evaluations=n_steps)

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
        """Run one chain per row of ``initial``, with the seed of the same place.

        Forward by the transition's matrices, in reverse by its reversals (Grosse, Ancha & Roy 2016, equations 5, 6).

        Raises
        ------
        InvalidArgumentError
            ``betas`` does not increase from 0 to 1, ``direction`` is unknown, the number of seeds is wrong, or the path
            is a reference's.
        """
        began = time.perf_counter()
        _require_prior(path)
        betas = np.asarray(betas, dtype=np.float64)
        check_run(betas, direction, initial, seeds)
        last, is_reverse = len(betas) - 1, direction == "reverse"
        states = np.empty((last + 1, len(seeds)), dtype=np.int64)
        states[0] = current = self._indices(initial)
        uniforms = _uniforms(seeds, last)
        applied = betas[:0:-1] if is_reverse else betas[1:]
        for step, matrix in enumerate(self.chain.matrices(applied, reverse=is_reverse)):
            states[step + 1] = current = draw(matrix[current], uniforms[step])
        states = states[::-1] if is_reverse else states
        log_ratio = np.ascontiguousarray(self.chain.log_ratio[states].T)
        zeros = np.zeros(len(seeds), dtype=np.int64)
        return AnnealRun(
            log_weight=path.log_weight(betas, log_ratio),
            log_ratio=log_ratio,
            state_at_base=self._states(states[0]),
            state_at_end=self._states(states[last]),
            log_base_density=np.ascontiguousarray(self.chain.log_base[states[[0, last]]].T),
            n_gradients=zeros,
            n_evaluations=zeros + last + 1,
            n_divergences=zeros,
            failure=_failures(log_ratio, is_reverse),
            seconds=time.perf_counter() - began,
        )

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain at ``beta`` from ``state``; return the states after ``keep`` steps."""
        n_steps = max(keep, default=0)
        visited = self._run(path, beta, self._indices(state[None]), n_steps, [seed])
        return Evolution(self._states(visited[list(keep), 0]), n_evaluations=n_steps)

    def _at(self, table: FloatArray, states: FloatArray) -> FloatArray:
        """Return a table's value at each state, -inf at those that are none."""
        top = np.array(self.chain.shape) - 1
        is_state = ((states >= 0) & (states <= top) & (states == np.floor(states))).all(axis=1)
        inside = np.where(is_state[:, None], states, 0.0)
        return np.where(is_state, table[self._indices(inside)], -np.inf)

    def _indices(self, states: FloatArray) -> IntArray:
        return as_indices(states, self.chain.shape)

    def _states(self, indices: IntArray) -> FloatArray:
        return as_states(indices, self.chain.shape)

    def _run(self, path: Path, beta: float, start: IntArray, n_steps: int, seeds: Sequence[SeedSequence]) -> IntArray:
        """Return the states of forward chains at one inverse temperature, shape (1 + n_steps, chain)."""
        _require_prior(path)
        visited = np.empty((n_steps + 1, len(start)), dtype=np.int64)
        visited[0] = start
        if n_steps:
            matrix = next(self.chain.matrices(np.array([float(beta)])))
            for step, uniforms in enumerate(_uniforms(seeds, n_steps)):
                visited[step + 1] = draw(matrix[visited[step]], uniforms)
        return visited


def draw(probabilities: NDArray[np.float64], uniforms: FloatArray) -> IntArray:
    """Draw an index from each row of ``probabilities``, shape (n, m), by a uniform number each; none of zero mass."""
    cumulative = probabilities.cumsum(axis=1)
    chosen = (uniforms[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
    return np.asarray(chosen, dtype=np.int64)


def as_indices(states: FloatArray, shape: tuple[int, ...]) -> IntArray:
    """Return states (n, dim), a place on each axis of a grid of this shape, as indices (n,)."""
    places = np.asarray(states).astype(np.int64)
    return np.asarray(np.ravel_multi_index(tuple(places.T), shape), dtype=np.int64)


def as_states(indices: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Return indices (n,) as states (n, dim)."""
    return np.stack(np.unravel_index(indices, shape), axis=1).astype(np.float64)


def _uniforms(seeds: Sequence[SeedSequence], n_steps: int) -> FloatArray:
    """Return the random numbers of each chain from its own generator, shape (n_steps, chain)."""
    return np.array([default_rng(seed).random(n_steps) for seed in seeds]).reshape(len(seeds), n_steps).T


def _failures(log_ratio: FloatArray, is_reverse: bool) -> IntArray:
    zero = log_ratio == -np.inf
    failure = np.full(len(log_ratio), int(Failure.NONE), dtype=np.int64)
    if is_reverse:
        failure[zero.any(axis=1)] = Failure.ZERO_INITIAL
    else:
        failure[zero[:, :-1].any(axis=1)] = Failure.ZERO_RATIO
    return failure


def _require_prior(path: Path) -> None:
    if path.reference is not None:
        raise InvalidArgumentError(f"{NO_REFERENCE} The path is {path!r}.")
