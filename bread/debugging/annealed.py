"""Annealed chains to a subject's law: one forward and one in reverse, from an exact draw, for some of the draws.

Both run the same frozen kernels along one short schedule, which the pilot chose: Crooks' relation between their weights
holds whatever the schedule is, and shows most where the weights differ by a few nats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Failure, Kernel, Posterior
from bread.debugging.subject import Draws, FloatArray, Subject
from bread.paths.kinds import Path

TEMPERATURES = (5, 9, 17)  # whichever leaves a small gap
POWERS = (1.0, 3.0)  # of the schedule: evenly spaced, or dense near 0 as vague priors need
SMALL_GAP = 2.0  # nats between reverse and forward log weights: larger ones hide defects
N_PILOT = 20
SHARE = 0.1  # of a draw's cost, on average
BASE, END = 0, 1
FORWARD, REVERSE = 0, 1


@dataclass(frozen=True, eq=False)
class AnnealedPairs:
    """Pairs of annealed chains, n of them: forward and in reverse, on the data of one draw each.

    Attributes
    ----------
    log_weight : ndarray, shape (n, 2)
        Of the forward and the reverse chain; -inf is legal forward. NaN where a chain failed.
    log_ratio : ndarray, shape (n, 2, T)
        Along the chains, in order of inverse temperature.
    states : ndarray, shape (n, 2, 2, d)
        At beta = 0 and at beta = 1.
    log_base, fresh_ratio, fresh_base : ndarray, shape (n, 2, 2)
        Log density of the base there, as the chain says; log ratio and base density as a fresh evaluation says. The
        fresh base density has a constant of its own for each draw.
    """

    log_weight: FloatArray
    log_ratio: FloatArray
    states: FloatArray
    log_base: FloatArray
    fresh_ratio: FloatArray
    fresh_base: FloatArray

    @classmethod
    def empty(cls, n: int, n_temperatures: int, d: int) -> AnnealedPairs:
        """Return n pairs that are NaN."""
        shapes = (n, 2), (n, 2, n_temperatures), (n, 2, 2, d), (n, 2, 2), (n, 2, 2), (n, 2, 2)
        return cls(*(np.full(shape, np.nan) for shape in shapes))

    def __len__(self) -> int:
        return len(self.log_weight)

    @property
    def is_sound(self) -> NDArray[np.bool_]:
        """Which pairs have weights, shape (n,)."""
        return np.asarray(~np.isnan(self.log_weight).any(axis=1), dtype=np.bool_)

    def joined(self, other: AnnealedPairs) -> AnnealedPairs:
        """Return both, one after the other."""
        names = [field.name for field in fields(self)]
        return AnnealedPairs(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))


@dataclass(frozen=True, eq=False)
class Annealed:
    """What `AnnealingSubject.anneal` returns."""

    pairs: AnnealedPairs
    n_evaluations: int
    failures: tuple[str, ...]


class Anneals(Protocol):
    """Anneals chains."""

    def anneal(self, draws: Draws, betas: FloatArray, seeds: Sequence[Sequence[SeedSequence]]) -> Annealed:
        """Anneal one chain each way for each draw; three seeds each: base, forward, reverse.

        Failures are returned, not raised.
        """
        ...


class AnnealingSubject(Subject, Anneals, Protocol):
    """A subject to whose law chains can be annealed by the kernel, and from it by the kernel's reversal.

    ``missing["annealing"]`` says why not, where they cannot.
    """


def anneal_pair(
    posterior: Posterior,
    path: Path,
    betas: FloatArray,
    kernel: Kernel,
    exact: FloatArray,
    seeds: Sequence[SeedSequence],
) -> Annealed:
    """Anneal one pair of chains of a model; shapes as for n = 1.

    Parameters
    ----------
    posterior : Posterior
        Given the data of the exact draw.
    path : Path
    betas : ndarray, shape (T,)
    kernel : Kernel
        Frozen, and tuned on other data.
    exact : ndarray, shape (d,)
        The exact draw.
    seeds : three SeedSequence
        Of the draw from the base, and of both chains.
    """
    base = posterior.draw_base(path, [seeds[0]])
    forward = posterior.anneal(path, betas, kernel, direction="forward", initial=base, seeds=[seeds[1]])
    reverse = posterior.anneal(path, betas, kernel, direction="reverse", initial=exact[None], seeds=[seeds[2]])
    runs = (forward, reverse)
    failures = tuple(
        f"a chain annealed {direction}: {run.message or Failure(int(run.failure[0])).name.lower().replace('_', ' ')}"
        for direction, run in zip(("forward", "in reverse"), runs, strict=True)
        if np.isnan(run.log_weight[0])
    )
    states = np.stack([np.stack([run.state_at_base[0], run.state_at_end[0]]) for run in runs])
    flat = states.reshape(4, -1)
    ratio = np.asarray(posterior.log_ratio(path, flat), dtype=np.float64)
    at_base = np.asarray(posterior.log_base(path, flat), dtype=np.float64)
    pairs = AnnealedPairs(
        np.array([[run.log_weight[0] for run in runs]]),
        np.stack([run.log_ratio[0] for run in runs])[None],
        states[None],
        np.stack([run.log_base_density[0] for run in runs])[None],
        ratio.reshape(1, 2, 2),
        at_base.reshape(1, 2, 2),
    )
    spent = sum(int(run.n_gradients[0] + run.n_evaluations[0]) for run in runs)
    return Annealed(pairs, max(spent, 2 * (len(betas) - 1)), failures)


class AnnealedSample:
    """Annealed pairs of one subject, for some of its draws; it grows with them.

    Parameters
    ----------
    subject : Anneals
    pilot : Draws
        Draws on which nothing is tested: they set the schedule.
    seeds : callable
        ``seeds(part, low, high)``: those of chains ``low`` to ``high`` of the base, forward or in reverse (0, 1, 2);
        the pilot's are of parts 3, 4, 5.
    longest : int
        Largest number of steps of a chain that the budget allows for.
    cost_of_draw : float
        What a draw costs without annealing.

    Attributes
    ----------
    betas : ndarray, shape (T,)
    gap : float
        Median difference of the pilot's reverse and forward log weights, in nats, where both are finite; infinite where
        none are.
    every : int
        Each ``every``-th draw is annealed.
    pairs : AnnealedPairs
    failures : tuple of str
    spent, cost_of_draw : float
        So far; and about what a draw more costs, on average.
    """

    def __init__(
        self,
        subject: Anneals,
        pilot: Draws,
        seeds: Callable[[int, int, int], list[SeedSequence]],
        longest: int,
        cost_of_draw: float,
    ) -> None:
        self._subject, self._seeds = subject, seeds
        self.spent = 0.0
        self.failures: tuple[str, ...] = ()
        self.betas, self.gap, cost = self._schedule(pilot.rows(slice(0, N_PILOT)), longest)
        self.every = max(1, round(cost / (SHARE * cost_of_draw)))
        self.cost_of_draw = cost / self.every
        self._n_draws = 0
        self.pairs = AnnealedPairs.empty(0, len(self.betas), pilot.states.shape[1])

    def grow(self, draws: Draws) -> None:
        """Anneal for further draws."""
        numbers = np.arange(self._n_draws, self._n_draws + len(draws))
        rows = np.flatnonzero(numbers % self.every == 0)
        done = len(self.pairs)
        self._n_draws += len(draws)
        if rows.size:
            found = self._anneal(draws.rows(rows), self.betas, 0, done)
            self.pairs = self.pairs.joined(found.pairs)
            self.failures = tuple(dict.fromkeys([*self.failures, *found.failures]))

    def _anneal(self, draws: Draws, betas: FloatArray, first_part: int, low: int) -> Annealed:
        parts = [self._seeds(first_part + part, low, low + len(draws)) for part in range(3)]
        found = self._subject.anneal(draws, betas, list(zip(*parts, strict=True)))
        self.spent += found.n_evaluations
        return found

    def _schedule(self, pilot: Draws, longest: int) -> tuple[FloatArray, float, float]:
        """Return the shortest schedule that leaves a small gap, or the one that leaves the smallest; gap and cost."""
        tried: list[tuple[FloatArray, float, float]] = []
        for n_temperatures in TEMPERATURES:
            if tried and (8 * (n_temperatures - 1) > longest or min(gap for _, gap, _ in tried) <= SMALL_GAP):
                break
            for power in POWERS:
                betas = np.linspace(0.0, 1.0, n_temperatures) ** power
                found = self._anneal(pilot, betas, 3, 0)
                forward, reverse = found.pairs.log_weight[found.pairs.is_sound].T
                says = np.isfinite(forward)  # zero weights say nothing of the order
                gap = float(np.median((reverse - forward)[says])) if says.any() else float("inf")
                tried.append((betas, max(gap, 0.0), found.n_evaluations / len(pilot)))
        return min(tried, key=lambda one: max(one[1], SMALL_GAP))
