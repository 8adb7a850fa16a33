"""A compact NUTS: multinomial within subtrees, biased progressive between them, Stan's six U-turn checks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.support.mutants.case import Case, Mutant, spread_of


class Tree(NamedTuple):
    """A stretch of the path: momenta at its ends in the order of building, what it proposes, sums."""

    valid: bool
    first: np.ndarray
    end: tuple
    proposal: np.ndarray
    log_weight: float
    rho: np.ndarray


class NUTS:
    """Unit metric in coordinates scaled by their spread; ``defect`` names the line that is changed."""

    def __init__(self, target, defect=None, *, step_size=0.6, max_depth=5, limit=1000.0):
        self._spread = spread_of(target)
        self._target, self._defect = target, defect
        self._step_size, self._max_depth, self._limit = step_size, max_depth, limit

    def gradient(self, z):
        return self._spread * self._target.gradient(self._spread * z)

    def density(self, z):
        return self._target.log_density(self._spread * z)

    def leapfrog(self, end, way):
        z, p, g = end
        size = way * self._step_size
        half = p + 0.5 * size * g
        z = z + size * half
        g = self.gradient(z)
        return z, half + 0.5 * size * g, g

    def build(self, end, way, depth, energy, rng):
        """Return a subtree of 2^depth states that goes on from ``end``."""
        if depth == 0:
            end = self.leapfrog(end, way)
            log_weight = self.density(end[0]) - 0.5 * end[1] @ end[1] - energy
            return Tree(-log_weight < self._limit, end[1], end, end[0], log_weight, end[1])
        one = self.build(end, way, depth - 1, energy, rng)
        if not one.valid:
            return one
        two = self.build(one.end, way, depth - 1, energy, rng)
        if not two.valid and self._defect != "unfinished":
            return two
        total = np.logaddexp(one.log_weight, two.log_weight)
        share = two.log_weight - (one.log_weight if self._defect == "biased within" else total)
        proposal = two.proposal if np.log(rng.random()) < share else one.proposal
        valid = two.valid and (self._defect == "subtree boundary" or not turns(one, two, self._defect))
        return Tree(valid, one.first, two.end, proposal, total, one.rho + two.rho)

    def __call__(self, x, rng):
        z = x / self._spread
        p = rng.standard_normal(len(z))
        g = self.gradient(z)
        energy = self.density(z) - 0.5 * p @ p
        ends = {1: (z, p, g), -1: (z, p, g)}
        # The tree so far, as seen from each end: what is built last is at the end, what was there first begins it.
        rho, log_weight, sample = p, 0.0, z
        for depth in range(self._max_depth):
            way = 1 if rng.random() < 0.5 else -1
            inner = ends[way][1]
            new = self.build(ends[way], way, depth, energy, rng)
            if not new.valid and self._defect != "unfinished":
                break
            if np.log(rng.random()) < new.log_weight - log_weight:
                sample = new.proposal
            if not new.valid:
                break
            far = ends[-way][1]
            old = Tree(True, far, (None, inner, None), z, log_weight, rho)
            ends[way] = new.end
            log_weight = np.logaddexp(log_weight, new.log_weight)
            rho = rho + new.rho
            if turns(old, new, self._defect):
                break
        return sample * self._spread


def turns(one, two, defect=None):
    """Whether the path over both turns back: over all of it, or over one half and the first state of the other."""
    if defect == "edge":  # of the new part the near edge is looked at, and no seam
        return backwards(one.first, two.first, one.rho + two.rho)
    if backwards(one.first, two.end[1], one.rho + two.rho):
        return True
    return backwards(one.first, two.first, one.rho + two.first) or backwards(
        one.end[1], two.end[1], two.rho + one.end[1]
    )


def backwards(first, last, rho):
    """Whether either end moves against the sum of momenta; the same for both directions of time."""
    return first @ rho <= 0.0 or last @ rho <= 0.0


def nuts(defect, **options):
    """Return a builder of the kernel with this defect."""
    return lambda target, is_bad: Case(target, NUTS(target, defect if is_bad else None, **options))


def divergence_limit(target, is_bad):
    """A limit of half a nat above the start; the good twin has Stan's, 1000.

    The limit is on the error against the start of the path: a subtree that is refused from one state of the tree is
    not from another, of higher energy.
    """
    return Case(target, NUTS(target, None, step_size=0.8, limit=0.5 if is_bad else 1000.0))


MUTANTS = (
    Mutant("u-turn-edge", "nuts", "the U-turn is looked for at the near edge of the new part",
           nuts("edge", step_size=0.4), ("log-gamma", "correlated normal", "curved"), "law",
           "when the tree stops growing depends on which state it grew from"),
    Mutant("subtree-boundary", "nuts", "U-turns are not looked for at the boundaries of subtrees",
           nuts("subtree boundary", step_size=0.4), ("log-gamma", "correlated normal", "curved"), "law",
           "trees that could not have grown from some of their states"),
    Mutant("unfinished-subtree", "nuts", "a subtree that turned back or diverged still proposes", nuts("unfinished"),
           ("correlated normal", "log-gamma", "curved"), "law", "such a tree could not have grown from the new state"),
    Mutant("biased-within", "nuts", "biased progressive sampling within subtrees", nuts("biased within"),
           ("log-gamma", "curved", "correlated normal"), "law", "late states of a subtree are proposed too often"),
    Mutant("divergence-limit", "nuts", "the limit of the energy error is half a nat", divergence_limit,
           ("log-gamma", "funnel", "curved"), "law", "whether a tree stands depends on the energy at its start"),
)  # fmt: skip
