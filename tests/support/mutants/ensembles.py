"""The affine-invariant stretch move (Goodman & Weare 2010) as a kernel on stacked walkers, in two halves."""

from __future__ import annotations

import numpy as np

from bread.debugging.targets import copies
from tests.support.mutants.case import Case, Mutant

N_WALKERS = 4


def stretch(target, defect=None):
    """Move one half, chosen at random, each walker along the line through a walker of the other half."""
    dim, half = target.dim, N_WALKERS // 2
    exponent = {"walkers": N_WALKERS - 1, "dimension": dim}.get(defect, dim - 1)

    def step(x, rng):
        walkers = x.reshape(N_WALKERS, dim)
        first = rng.random() < 0.5
        moved, others = (slice(0, half), slice(half, None)) if first else (slice(half, None), slice(0, half))
        if defect == "against itself" and not first:
            others = moved
        own, rest = walkers[moved], walkers[others]
        partner = rest[::-1] if others == moved else rest[rng.integers(half, size=half)]
        if defect == "own mean":
            partner = own.mean(axis=0)
        z = 0.5 * (1.0 + rng.random(half)) ** 2  # density 1 / sqrt(z) on (1/2, 2)
        proposal = partner + z[:, None] * (own - partner)
        ratio = exponent * np.log(z) + target.log_density(proposal) - target.log_density(own)
        if defect == "swapped":
            ratio = np.roll(ratio, 1)
        accepted = np.log(rng.random(half)) < ratio
        new = walkers.copy()
        new[moved] = np.where(accepted[:, None], proposal, own)
        if defect == "places" and first:
            new[moved] = new[moved][::-1]
        return new.ravel()

    return step


def ensemble(defect):
    """Return a builder of the kernel with this defect, on independent copies of a target."""
    return lambda target, is_bad: Case(copies(target, N_WALKERS), stretch(target, defect if is_bad else None))


SMOOTH = ("log-gamma", "curved", "correlated normal")
MUTANTS = (
    Mutant("half-against-itself", "ensemble", "the second half moves along lines through itself",
           ensemble("against itself"), SMOOTH, "law",
           "each walker alone keeps its law; two become correlated, by -0.01, and are near one another too often"),
    Mutant("own-mean", "ensemble", "walkers move along lines through the mean of their own half", ensemble("own mean"),
           SMOOTH, "law", "the mean moves with the walker: the way back is another line"),
    Mutant("ratios-swapped", "ensemble", "walkers are accepted by their neighbours' ratios", ensemble("swapped"),
           SMOOTH, "law", "each test is of another proposal"),
    Mutant("exponent-walkers", "ensemble", "the exponent counts walkers in place of coordinates",
           ensemble("walkers"), SMOOTH, "law",
           "outward moves are accepted too often; right with as many walkers as dimensions"),
    Mutant("exponent-dimension", "ensemble", "the exponent is d in place of d - 1", ensemble("dimension"), SMOOTH,
           "law", "walkers drift apart"),
    Mutant("places-exchanged", "ensemble", "walkers of a half change places", ensemble("places"), SMOOTH, "nothing",
           "walkers are independent draws of one distribution, whatever their order"),
)  # fmt: skip
