"""Kernels that adapt while they run, and what that does to their law."""

from __future__ import annotations

import numpy as np

from tests.support.mutants.case import Case, Mutant, spread_of
from tests.support.mutants.metropolis import accepts


class Adaptive:
    """A random walk with a scale per chain, or one for all chains, that may change after each step.

    ``rate`` 0 is a frozen kernel. The scale is multiplied by e^rate after an acceptance, divided after a rejection.
    """

    def __init__(self, target, rate, *, is_shared=False):
        self._density, self._spread, self._rate = target.log_density, spread_of(target), rate
        self._is_shared, self._log_scale = is_shared, 0.0

    def start(self, position, rng):
        return np.array(position), 0.0

    def position(self, carry):
        return carry[0]

    def step(self, carry, rng):
        x, log_scale = carry
        if self._is_shared:
            log_scale = self._log_scale
        y = x + np.exp(log_scale) * self._spread * rng.standard_normal(len(x))
        is_accepted = accepts(self._density(y) - self._density(x), rng)
        log_scale = float(np.clip(log_scale + (self._rate if is_accepted else -self._rate), -4.0, 3.0))
        if self._is_shared:
            self._log_scale = log_scale
        return (y if is_accepted else x), log_scale


def adapts_during_the_run(target, is_bad):
    return Case(target, Adaptive(target, 0.3 if is_bad else 0.0))


def leak_between_chains(target, is_bad):
    """The scale of one object serves all chains: what one has learnt the next begins with."""
    return Case(target, Adaptive(target, 0.02 if is_bad else 0.0, is_shared=True))


class PastDifferences:
    """Proposals are multiples of the difference of two earlier states (as DE-MC(Z), with too little of a past)."""

    def __init__(self, target, is_bad):
        self._density, self._spread, self._is_bad = target.log_density, spread_of(target), is_bad
        self._fixed = target.simulate(20, np.random.default_rng(11))

    def start(self, position, rng):
        past = [np.array(position)] if self._is_bad else list(self._fixed)
        return np.array(position), past

    def position(self, carry):
        return carry[0]

    def step(self, carry, rng):
        x, past = carry
        i, j = rng.integers(len(past), size=2)
        y = x + 2.0 * (past[i] - past[j]) + 0.1 * self._spread * rng.standard_normal(len(x))
        if accepts(self._density(y) - self._density(x), rng):
            x = y
        return x, [*past, x][-3:] if self._is_bad else past


def past_of_the_chain(target, is_bad):
    return Case(target, PastDifferences(target, is_bad))


SMOOTH = ("funnel", "log-gamma", "student t")
MUTANTS = (
    Mutant("adapts-in-run", "adaptation", "the scale goes on adapting, at a constant rate", adapts_during_the_run,
           SMOOTH, "memory",
           "the next step depends on how the state was reached; the law hardly changes"),
    Mutant("leak-between-chains", "adaptation", "a chain begins with the scale that the one before had learnt",
           leak_between_chains, SMOOTH, "history",
           "the law is nearly right; the same seed does not lead to the same chain"),
    Mutant("past-of-the-chain", "adaptation", "proposals by differences of the chain's own last three states",
           past_of_the_chain, SMOOTH, "memory",
           "the next step depends on how the state was reached; the law hardly changes"),
)  # fmt: skip
