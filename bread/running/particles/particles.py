"""Sequential Monte Carlo over blocks of observations: evidence forward, and its reciprocal from an exact draw.

Target t is the posterior given blocks 1, ..., t, and target 0 the prior. The kernel of target t is the backend's own,
at inverse temperature 1 on those data: ``anneal`` with the schedule (0, 1) makes one move by it, or by its reversal.

Three estimators, each over independent runs of K particles (Grosse, Ghahramani & Adams 2015, sections 3.4 and 4.2):

- `forward` (Algorithm 2): the estimate of the evidence is unbiased, so that its log is a stochastic lower bound.
- `conditional`: the same filter, in which one particle follows a path that was built from an exact posterior draw by
  the reversals of the kernels. The law of such a filter is that of the free one reweighted by its estimate, so that the
  reciprocal of the estimate is unbiased for the reciprocal of the evidence: its log is a stochastic upper bound.
- `harmonic` (Algorithm 3): particles start at the exact draw, and observations are deleted block by block. Its
  reciprocal is unbiased too, with particles as one another's copies: every step is linear in their empirical law. It
  needs kernels that are invariant, reversed or not; `conditional` needs their reversals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence, default_rng
from scipy.special import logsumexp

from bread.backends.base import Direction, Failure, FloatArray, IntArray, Kernel, Posterior
from bread.paths.kinds import PriorPath
from bread.statistics.evidence.resampling import ancestors, ancestors_of_kept

_ONE_MOVE = np.array([0.0, 1.0])
_BASE, _RESAMPLE, _PATH, _MOVE = range(4)


@dataclass(frozen=True)
class Targets:
    """Targets 1, ..., n of one data set with the frozen kernel of each.

    Attributes
    ----------
    posteriors : sequence of Posterior
        Posterior t - 1 knows blocks 1, ..., t.
    kernels : sequence of Kernel
    """

    posteriors: Sequence[Posterior]
    kernels: Sequence[Kernel]


@dataclass(frozen=True)
class Filter:
    """How particles are run.

    Attributes
    ----------
    particles : int
    resampling : {"systematic", "multinomial"}
    resample_every : int
        Blocks between one resampling and the next: fixed, whatever the weights are.
    moves : int
        Moves by the kernel after each block.
    """

    particles: int
    resampling: str = "systematic"
    resample_every: int = 1
    moves: int = 1


@dataclass(frozen=True)
class Estimates:
    """Log evidence of each run, and what it cost.

    Attributes
    ----------
    log_evidence : ndarray, shape (run,)
        Nats; -inf where all particles of a forward run lost their weight, NaN where a density was NaN or raised.
    n_gradients, n_evaluations : ndarray of int, shape (run,)
    """

    log_evidence: FloatArray
    n_gradients: IntArray
    n_evaluations: IntArray


def forward(targets: Targets, how: Filter, seeds: Sequence[SeedSequence]) -> Estimates:
    """Run a filter for each seed: estimates whose mean is the evidence.

    Parameters
    ----------
    targets : Targets
    how : Filter
    seeds : sequence of SeedSequence
        One a run.

    Returns
    -------
    Estimates
        Log evidence of each run; the estimate is unbiased, so that logs lie below on average.
    """
    return _filter(_Cloud(targets, how, seeds), None)


def conditional(targets: Targets, how: Filter, exact: FloatArray, seeds: Sequence[SeedSequence]) -> Estimates:
    """Run a filter for each seed that keeps a path from an exact draw: reciprocals have the mean 1 / evidence.

    Parameters
    ----------
    targets : Targets
    how : Filter
    exact : ndarray, shape (dim,)
        A draw from the posterior given all blocks. Its runs are not independent of each other.
    seeds : sequence of SeedSequence
        One a run.

    Returns
    -------
    Estimates
        Log evidence of each run; logs lie above on average.
    """
    cloud = _Cloud(targets, how, seeds)
    path = [np.repeat(np.asarray(exact, dtype=np.float64)[None], len(seeds), axis=0)]
    for t in range(cloud.n_blocks, 0, -1):
        path.append(cloud.move(t, path[-1][:, None], "reverse", _PATH)[0][:, 0])
    return _filter(cloud, path[::-1])


def harmonic(targets: Targets, how: Filter, exact: FloatArray, seeds: Sequence[SeedSequence]) -> Estimates:
    """Delete blocks one by one from an exact draw (Algorithm 3): reciprocals have the mean 1 / evidence.

    Parameters
    ----------
    targets : Targets
    how : Filter
    exact : ndarray, shape (dim,)
        A draw from the posterior given all blocks, where all particles start.
    seeds : sequence of SeedSequence
        One a run.

    Returns
    -------
    Estimates
        Log evidence of each run; logs lie above on average.
    """
    cloud = _Cloud(targets, how, seeds)
    states = np.broadcast_to(exact, (cloud.n_runs, how.particles, len(exact))).astype(np.float64)
    log_reciprocal, weights = np.zeros(cloud.n_runs), np.zeros(states.shape[:2])
    for t in range(cloud.n_blocks, 0, -1):
        states, with_block = cloud.move(t, states, "reverse", _MOVE)
        without = cloud.log_likelihood(t - 1, states)
        log_reciprocal, weights = _add(log_reciprocal, weights, _difference(without, with_block))
        if t > 1 and (t - 1) % how.resample_every == 0:
            states, weights = cloud.resample(t, states, weights, log_reciprocal, keeps=False)
    return cloud.estimates(-log_reciprocal)


def _filter(cloud: _Cloud, path: Sequence[FloatArray] | None) -> Estimates:
    states = cloud.draw_base()
    log_likelihood = np.zeros(states.shape[:2])
    log_evidence, weights = np.zeros(cloud.n_runs), np.zeros(states.shape[:2])
    if path is not None:
        states[:, 0] = path[0]
    for t in range(1, cloud.n_blocks + 1):
        with_block = cloud.log_likelihood(t, states)
        log_evidence, weights = _add(log_evidence, weights, _difference(with_block, log_likelihood))
        if t == cloud.n_blocks:
            break  # a last move changes no weight
        if t % cloud.how.resample_every == 0:
            states, weights = cloud.resample(t, states, weights, log_evidence, keeps=path is not None)
        states, log_likelihood = cloud.move(t, states, "forward", _MOVE)
        if path is not None:
            states[:, 0] = path[t]
            log_likelihood[:, 0] = cloud.log_likelihood(t, states[:, :1])[:, 0]
    return cloud.estimates(log_evidence)


def _difference(after: FloatArray, before: FloatArray) -> FloatArray:
    """Return the change of the log likelihood, -inf where it was -inf already."""
    with np.errstate(invalid="ignore"):
        return np.where(before == -np.inf, -np.inf, after - before)


def _add(total: FloatArray, weights: FloatArray, increments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log estimate and the log weights (run, particle) after one block."""
    increments = np.where(weights == -np.inf, 0.0, increments)  # weight zero stays, whatever its state is worth
    increments = np.where(total[:, None] == -np.inf, 0.0, increments)
    added = weights + increments
    with np.errstate(invalid="ignore", divide="ignore"):
        change = logsumexp(added, axis=1) - logsumexp(weights, axis=1)
    is_over = total == -np.inf
    return np.where(is_over, total, total + change), np.where(is_over[:, None], 0.0, added)


class _Cloud:
    """The particles of all runs of one data set, moved together; each run has random numbers of its own."""

    def __init__(self, targets: Targets, how: Filter, seeds: Sequence[SeedSequence]) -> None:
        self.targets, self.how, self.seeds = targets, how, tuple(seeds)
        self.n_runs, self.n_blocks = len(self.seeds), len(targets.posteriors)
        self.n_gradients = np.zeros(self.n_runs, dtype=np.int64)
        self.n_evaluations = np.zeros(self.n_runs, dtype=np.int64)
        self.has_failed = np.zeros(self.n_runs, dtype=bool)

    def _seed(self, run: int, *key: int) -> SeedSequence:
        root = self.seeds[run]
        return SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)

    def _seeds(self, n: int, *key: int) -> list[SeedSequence]:
        return [self._seed(run, *key, particle) for run in range(self.n_runs) for particle in range(n)]

    def draw_base(self) -> FloatArray:
        """Draw from the prior, shape (run, particle, dim)."""
        n = self.how.particles
        drawn = self.targets.posteriors[0].draw_base(PriorPath(), self._seeds(n, _BASE))
        return np.array(drawn, dtype=np.float64).reshape(self.n_runs, n, -1)

    def log_likelihood(self, t: int, states: FloatArray) -> FloatArray:
        """Return the log likelihood of blocks 1, ..., t at states (run, particle, dim)."""
        if t == 0:
            return np.zeros(states.shape[:2])
        flat = states.reshape(-1, states.shape[-1])
        values = np.array(self.targets.posteriors[t - 1].log_ratio(PriorPath(), flat)).reshape(states.shape[:2])
        self.n_evaluations += states.shape[1]
        self.has_failed |= np.isnan(values).any(axis=1)
        return values

    def move(self, t: int, states: FloatArray, direction: Direction, stage: int) -> tuple[FloatArray, FloatArray]:
        """Move by the kernel of target t or its reversal; return states and their log likelihood of blocks to t."""
        n_runs, n, dim = states.shape
        posterior, kernel = self.targets.posteriors[t - 1], self.targets.kernels[t - 1]
        end = 1 if direction == "forward" else 0
        current = states.reshape(-1, dim)
        for i in range(self.how.moves):
            run = posterior.anneal(
                PriorPath(), _ONE_MOVE, kernel, direction=direction, initial=current,
                seeds=self._seeds(n, stage, t, i),
            )  # fmt: skip
            current = run.state_at_end if end else run.state_at_base
            failed = (run.failure >= Failure.ZERO_INITIAL).reshape(n_runs, n).any(axis=1)
            self.has_failed |= failed
            self.n_gradients += run.n_gradients.reshape(n_runs, n).sum(axis=1)
            self.n_evaluations += run.n_evaluations.reshape(n_runs, n).sum(axis=1)
        return np.array(current).reshape(states.shape), np.array(run.log_ratio[:, end]).reshape(n_runs, n)

    def resample(
        self, t: int, states: FloatArray, weights: FloatArray, total: FloatArray, *, keeps: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return resampled states and weights of one; a run that has failed, or has no weight, stays as it is."""
        choose = ancestors_of_kept if keeps else ancestors
        states = states.copy()
        for run in range(self.n_runs):
            if np.isfinite(total[run]):
                rng = default_rng(self._seed(run, _RESAMPLE, t))
                states[run] = states[run][choose(weights[run], self.how.resampling, rng)]
        return states, np.zeros_like(weights)

    def estimates(self, log_evidence: FloatArray) -> Estimates:
        """Return the log evidence of each run, NaN where one has failed."""
        found = np.where(self.has_failed & (log_evidence != -np.inf), np.nan, log_evidence)
        return Estimates(found, self.n_gradients, self.n_evaluations)
