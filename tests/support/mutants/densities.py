"""Wrong densities: exact draws are right, density and gradient are wrong together, and the kernel follows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from bread.debugging.continuous_targets import (
    COVARIANCE,
    MEAN,
    SHAPES,
    correlated_normal,
    funnel,
    log_gamma,
    stick_breaking,
    student_t,
)
from bread.debugging.target import Target
from tests.support.mutants.case import Case, Mutant, spread_of
from tests.support.mutants.metropolis import accepts, random_walk


def plus(target, extra, slope, is_bad):
    """Return the case whose density has one term too many; the kernel is right for it."""
    if is_bad:
        density, gradient = target.log_density, target.gradient
        target = replace(target, log_density=lambda x: density(x) + extra(x), gradient=lambda x: gradient(x) + slope(x))
    return Case(target, random_walk(target))


def missing_jacobian(_, is_bad):
    """Stick-breaking without log(z) + log(1 - z) + log(what is left) of each part."""
    shift = np.log([3.0, 2.0, 1.0])
    power = np.array([3.0, 2.0, 1.0])  # (1 - z_k) stands in the stick of every later part

    def extra(x):
        return (np.logaddexp(0.0, shift - x) + power * np.logaddexp(0.0, x - shift)).sum(-1)

    def slope(x):
        return -expit(shift - x) + power * expit(x - shift)

    return plus(stick_breaking(), extra, slope, is_bad)


def jacobian_k_times(_, is_bad):
    """Logarithms of Gamma draws: the Jacobian, sum of x, is added up once for every coordinate of the vector."""
    return plus(log_gamma(), lambda x: 2.0 * x.sum(-1), lambda x: np.full(x.shape, 2.0), is_bad)


def jacobian_of_one_twice(_, is_bad):
    """The same for one coordinate, half a time."""
    return plus(log_gamma(), lambda x: 0.5 * x[..., 1], lambda x: np.broadcast_to([0.0, 0.5, 0.0], x.shape), is_bad)


def normaliser_sign(_, is_bad):
    """The funnel's -v, the normaliser of two coordinates of scale exp(v / 2), with a plus."""
    return plus(funnel(), lambda x: 2.0 * x[..., 0], lambda x: np.broadcast_to([2.0, 0.0, 0.0], x.shape), is_bad)


def prior_twice(_, is_bad):
    """The prior of v counted once more."""

    def slope(x):
        return x * np.array([-1.0 / 1.5**2, 0.0, 0.0])

    return plus(funnel(), lambda x: -0.5 * (x[..., 0] / 1.5) ** 2, slope, is_bad)


def likelihood_twice(_, is_bad):
    """The part of two coordinates given v counted once more."""

    def extra(x):
        return -0.5 * np.exp(-x[..., 0]) * (x[..., 1:] ** 2).sum(-1) - x[..., 0]

    def slope(x):
        precision = np.exp(-x[..., :1])
        own = 0.5 * precision * (x[..., 1:] ** 2).sum(-1, keepdims=True) - 1.0
        return np.concatenate([own, -precision * x[..., 1:]], axis=-1)

    return plus(funnel(), extra, slope, is_bad)


def degrees_of_freedom(_, is_bad):
    """A t law whose exponent forgets the dimension: (nu + 1) / 2 in place of (nu + 3) / 2."""
    good = student_t()
    if not is_bad:
        return Case(good, random_walk(good))
    bad = replace(
        good, log_density=lambda x: 5.0 / 7.0 * good.log_density(x), gradient=lambda x: 5.0 / 7.0 * good.gradient(x)
    )
    return Case(bad, random_walk(bad))


def constant_of_the_normaliser(_, is_bad):
    """A constant with the wrong sign: of no consequence for draws, kernels or gradients."""
    return plus(log_gamma(), lambda x: 1.7, np.zeros_like, is_bad)


class GibbsThenWalk:
    """A random walk of two coordinates with a kept log density, then an exact draw of the first; a normal law."""

    def __init__(self, target, is_bad):
        self._is_bad, self._density, self._spread = is_bad, target.log_density, spread_of(target)
        self._weights = np.linalg.solve(COVARIANCE[1:, 1:], COVARIANCE[1:, 0])
        self._sd = float(np.sqrt(COVARIANCE[0, 0] - self._weights @ COVARIANCE[1:, 0]))

    def start(self, position, rng):
        return np.array(position), self._density(position)

    def position(self, carry):
        return carry[0]

    def log_density(self, carry):
        return carry[1]

    def step(self, carry, rng):
        x, value = carry
        y = x.copy()
        y[1:] += self._spread[1:] * rng.standard_normal(2)
        new = self._density(y)
        if accepts(float(new) - float(value), rng):
            x, value = y, new
        x = x.copy()
        x[0] = MEAN[0] + self._weights @ (x[1:] - MEAN[1:]) + self._sd * rng.standard_normal()
        return x, value if self._is_bad else self._density(x)


def stale_after_gibbs(_, is_bad):
    target = correlated_normal()
    return Case(target, GibbsThenWalk(target, is_bad), is_reversible=False)


def concentration_off_by_one(_, is_bad):
    """Dirichlet exponents a in place of a - 1, for the last part: a Jacobian's worth too much."""
    shift = np.log([3.0, 2.0, 1.0])

    def extra(x):  # log of what is left after all breaks
        return -np.logaddexp(0.0, x - shift).sum(-1)

    return plus(stick_breaking(), extra, lambda x: -expit(x - shift), is_bad)


def told_by_itself(_, is_bad):
    """Density and simulator share one wrong line: exponent 1 / scale in place of scale, in both.

    The compensating error: a test whose truth comes from the code that it tests. Nothing that compares the two can
    see it. `compensated` says how it is seen: against draws from elsewhere.
    """
    rate = np.array([0.5, 1.0, 3.0]) if is_bad else 1.0 / np.array([0.5, 1.0, 3.0])

    def log_density(x):
        return (SHAPES * (x + np.log(rate)) - rate * np.exp(x)).sum(-1)

    law = Target("scaled log-gamma", 3, log_density, lambda n, rng: np.log(rng.gamma(SHAPES, 1.0 / rate, size=(n, 3))),
                 lambda x: SHAPES - rate * np.exp(x))  # fmt: skip
    return Case(law, random_walk(law))


def compensated(is_bad):
    """The same law with its wrong density, and draws made by someone who read the definition."""
    case, right = told_by_itself(None, is_bad), told_by_itself(None, False)
    return Case(replace(case.target, simulate=right.target.simulate), case.kernel)


MUTANTS = (
    Mutant("missing-jacobian", "density", "no Jacobian of stick-breaking", missing_jacobian, ("own",), "law",
           "the density is that of the simplex, in other coordinates"),
    Mutant("jacobian-k-times", "density", "the Jacobian of a vector is added once for each element", jacobian_k_times,
           ("own",), "law", "shapes 2.5, 3 and 5 in place of 0.5, 1 and 3; one element alone is right"),
    Mutant("jacobian-once-more", "density", "half the Jacobian of one element too much", jacobian_of_one_twice,
           ("own",), "law", "a shape of 1.5 in place of 1"),
    Mutant("normaliser-sign", "density", "the normaliser of a scale that varies has the wrong sign", normaliser_sign,
           ("own",), "law", "the scale drifts up"),
    Mutant("normaliser-constant", "density", "a constant of the density has the wrong sign",
           constant_of_the_normaliser, ("own",), "nothing",
           "ratios and gradients are the same; only an integral of the density could tell"),
    Mutant("prior-twice", "density", "the prior is counted twice", prior_twice, ("own",), "law",
           "a standard deviation of 1.06 in place of 1.5"),
    Mutant("likelihood-twice", "density", "the likelihood is counted twice", likelihood_twice, ("own",), "law",
           "scales too small by 1.4"),
    Mutant("degrees-of-freedom", "density", "the exponent of a t law forgets the dimension", degrees_of_freedom,
           ("own",), "law", "tails too heavy; in one dimension nothing is wrong"),
    Mutant("concentration", "density", "an exponent of a Dirichlet law is too large by one", concentration_off_by_one,
           ("own",), "law", "a concentration of 2.5 in place of 1.5"),
    Mutant("stale-after-gibbs", "density", "the log density kept is not renewed after a Gibbs block",
           stale_after_gibbs, ("own",), "cache", "the value kept is of another state; the law changes by little"),
    Mutant("compensating-error", "tests", "density and simulator of a test share the wrong line", told_by_itself,
           ("own",), "nothing", "the two agree; only draws from elsewhere tell them from what was meant"),
)  # fmt: skip
