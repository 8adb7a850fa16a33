"""Kernels for whole numbers: Gibbs, Metropolised Gibbs, uniform proposals; and what goes wrong in them."""

from __future__ import annotations

import numpy as np

from tests.support.mutants.case import Case, Mutant
from tests.support.mutants.metropolis import accepts


def conditional(target, x, i):
    """Values of coordinate ``i`` and their probabilities given the others."""
    values = np.arange(target.lower[i], target.upper[i] + 1.0)
    y = x.copy()
    logs = np.empty(len(values))
    for k, value in enumerate(values):
        y[i] = value
        logs[k] = target.log_density(y)
    masses = np.exp(logs - max(logs.max(), -1e6)) + 1e-300  # outside of the support all are alike
    return values, masses / masses.sum()


def drawn(masses, rng):
    """Index drawn with these probabilities."""
    return min(int(np.searchsorted(np.cumsum(masses), rng.random())), len(masses) - 1)


def gibbs_offset(target, is_bad):
    """An index from 0 is taken for a value where the support begins at 1; 0 becomes the largest value."""

    def step(x, rng):
        i = rng.integers(target.dim)
        values, masses = conditional(target, x, i)
        x[i] = values[drawn(masses, rng) - int(is_bad)]
        return x

    return Case(target, step)


def gibbs_together(target, is_bad):
    """All coordinates are drawn from conditionals at the old state, in place of one after the other."""

    def step(x, rng):
        old = x.copy()
        for i in rng.permutation(target.dim):
            values, masses = conditional(target, old if is_bad else x, i)
            x[i] = values[drawn(masses, rng)]
        return x

    return Case(target, step)


def metropolised_gibbs(target, is_bad):
    """Another value is proposed by the conditional; the ratio is (1 - p(old)) / (1 - p(new)) (Liu 1996)."""

    def step(x, rng):
        i = rng.integers(target.dim)
        values, masses = conditional(target, x, i)
        old = int(x[i] - values[0])
        others = masses.copy()
        others[old] = 0.0
        new = drawn(others / others.sum(), rng)
        ratio = 0.0 if is_bad else np.log1p(-masses[old]) - np.log1p(-masses[new])
        if accepts(ratio, rng):
            x[i] = values[new]
        return x

    return Case(target, step)


def renormalised(target, is_bad):
    """The same; 1 - p(new) is taken after p(old) was set to zero and the others renormalised (PyMC up to 6.4.0)."""

    def step(x, rng):
        i = rng.integers(target.dim)
        values, masses = conditional(target, x, i)
        old = int(x[i] - values[0])
        others = masses.copy()
        others[old] = 0.0
        others /= others.sum()
        new = drawn(others, rng)
        ratio = np.log1p(-masses[old]) - np.log1p(-(others if is_bad else masses)[new])
        if accepts(ratio, rng):
            x[i] = values[new]
        return x

    return Case(target, step)


def last_category(target, is_bad):
    """A value is proposed at random; the end of the range is taken to be in it, and is not."""

    def step(x, rng):
        i = rng.integers(target.dim)
        y = x.copy()
        y[i] = rng.integers(target.lower[i], target.upper[i] + (0.0 if is_bad else 1.0))
        return y if accepts(target.log_density(y) - target.log_density(x), rng) else x

    return Case(target, step)


def count_walk(target, is_bad):
    """A step of one up or down; at zero one way only, which needs a correction."""

    def step(x, rng):
        i = rng.integers(target.dim)
        y = x.copy()
        if rng.random() < 0.5 or (is_bad and x[i] == 0.0):
            y[i] += 1.0
        else:
            y[i] -= 1.0
        return y if accepts(target.log_density(y) - target.log_density(x), rng) else x

    return Case(target, step)


def flip_twice(target, is_bad):
    """Two bits are flipped together; the ratio is of the first flip alone."""

    def step(x, rng):
        first = rng.integers(target.dim)
        second = rng.integers(target.dim)
        y = x.copy()
        y[first] = 1.0 - y[first]
        counted = y.copy()
        if second != first:
            y[second] = 1.0 - y[second]
        ratio = target.log_density(counted if is_bad else y) - target.log_density(x)
        return y if accepts(ratio, rng) else x

    return Case(target, step)


MUTANTS = (
    Mutant("gibbs-offset", "gibbs", "an index is taken for a value of a support that begins at 1", gibbs_offset,
           ("offset", "categories", "binary"), "law", "masses are given to the value before"),
    Mutant("gibbs-together", "gibbs", "all coordinates are drawn given the old state", gibbs_together,
           ("binary", "offset"), "law", "invisible where coordinates are independent"),
    Mutant("metropolised-gibbs", "gibbs", "Metropolised Gibbs without its ratio", metropolised_gibbs,
           ("categories", "offset", "binary"), "law", "likely values are left too often"),
    Mutant("renormalised", "gibbs", "Metropolised Gibbs with a ratio of renormalised masses", renormalised,
           ("categories", "offset"), "law", "likely values are left too often; of two values one is never left"),
    Mutant("last-category", "gibbs", "the last value is never proposed", last_category,
           ("categories", "offset"), "law", "it is left and not found again"),
    Mutant("count-walk", "gibbs", "a walk turned back at zero, uncorrected", count_walk, ("counts",), "law",
           "zero is left too often"),
    Mutant("flip-twice", "gibbs", "the ratio is of the first of two flips", flip_twice, ("binary",), "law",
           "the second is free"),
)  # fmt: skip
