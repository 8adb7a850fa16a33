"""Replica exchange (parallel tempering): walkers at several inverse temperatures, and what goes wrong in their swaps.

The state is three replicas of a point, at beta = 1, 0.5 and 0.25 of a law whose powers can be drawn: of log-gamma
variables. Each step moves one replica by a random walk and then tries to swap two neighbours.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from bread.debugging.target import Target
from tests.support.mutants.case import Case, Mutant

BETAS = np.array([1.0, 0.5, 0.25])
SHAPE, DIM = 2.0, 2
WIDTHS = 1.2 / np.sqrt(BETAS)
SHAPES, RATES = np.repeat(SHAPE * BETAS, DIM), np.repeat(BETAS, DIM)
CONSTANT = float((gammaln(SHAPES) - SHAPES * np.log(RATES)).sum())


def single(x):
    """Log density of one replica at beta = 1, up to a constant."""
    return (SHAPE * x - np.exp(x)).sum(-1)


def replicas():
    """Return the product of the powers: x such that beta exp(x) is a Gamma variable of shape beta SHAPE."""
    shapes, rates = SHAPES, RATES

    def simulate(n, rng):
        # log of a Gamma variable of small shape, by the boost of shape + 1
        boosted = np.log(rng.gamma(shapes + 1.0, size=(n, len(shapes))))
        return boosted + np.log(rng.random((n, len(shapes)))) / shapes - np.log(rates)

    return Target(
        "replicas of a log-gamma law", len(shapes),
        lambda x: (shapes * x - rates * np.exp(x)).sum(-1) - CONSTANT,
        simulate,
        lambda x: shapes - rates * np.exp(x),
        n_walkers=len(BETAS),
    )  # fmt: skip


class Exchange:
    """Random walks and swaps; log densities are kept. ``defect`` names the line that is changed."""

    def __init__(self, defect=None):
        self._defect = defect

    def start(self, position, rng):
        walkers = np.array(position).reshape(len(BETAS), DIM)
        return walkers, single(walkers)

    def position(self, carry):
        return carry[0].ravel()

    def log_density(self, carry):
        return float(BETAS @ carry[1]) - CONSTANT

    def step(self, carry, rng):
        walkers, densities = carry[0].copy(), carry[1].copy()
        i = rng.integers(len(BETAS))
        proposal = walkers[i] + WIDTHS[i] * rng.standard_normal(DIM)
        density = single(proposal)
        if np.log(rng.random()) < BETAS[i] * (density - densities[i]):
            walkers[i], densities[i] = proposal, density
        j = rng.integers(len(BETAS) - 1)
        ratio = (BETAS[j] - BETAS[j + 1]) * (densities[j + 1] - densities[j])
        if self._defect == "sign":
            ratio = -ratio
        if self._defect == "hot only":
            ratio = BETAS[j] * (densities[j + 1] - densities[j])
        if self._defect == "always" or np.log(rng.random()) < ratio:
            if self._defect == "view":
                walkers[j], walkers[j + 1] = walkers[j + 1], walkers[j]  # both names are of one row by then
            else:
                walkers[[j, j + 1]] = walkers[[j + 1, j]]
            if self._defect != "densities stay":
                densities[[j, j + 1]] = densities[[j + 1, j]]
        return walkers, densities


def exchange(defect):
    """Return a builder of the kernel with this defect."""
    return lambda _, is_bad: Case(replicas(), Exchange(defect if is_bad else None), is_reversible=False)


MUTANTS = (
    Mutant("swap-sign", "ensemble", "replicas are swapped by the inverse of the ratio", exchange("sign"), ("own",),
           "law", "likely states go to warm replicas"),
    Mutant("swap-always", "ensemble", "replicas are swapped without a test", exchange("always"), ("own",), "law",
           "all replicas get one law, which is none of theirs"),
    Mutant("swap-one-beta", "ensemble", "the ratio of a swap counts the colder replica alone", exchange("hot only"),
           ("own",), "law", "what the warmer replica loses or gains is left out"),
    Mutant("swap-aliased", "ensemble", "rows are swapped through views of one array", exchange("view"), ("own",), "law",
           "one state is lost and the other is there twice"),
    Mutant("swap-densities-stay", "ensemble", "states are swapped and the densities kept for them are not",
           exchange("densities stay"), ("own",), "cache", "later ratios are of other states"),
)  # fmt: skip
