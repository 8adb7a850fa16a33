"""Wrong simulators: the density is right, exact draws are not. The kernel, where there is one, is right too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import betaln

from bread.debugging.continuous_targets import COVARIANCE, MEAN, correlated_normal
from bread.debugging.discrete_targets import offset
from bread.debugging.target import Target
from tests.support.mutants.case import Case, Mutant
from tests.support.mutants.gibbs import gibbs_offset
from tests.support.mutants.metropolis import random_walk

LOG_2PI = float(np.log(2.0 * np.pi))


def drawn_by(target, simulate):
    """Return the case of this target with another simulator, and a right kernel for its density."""
    kernel = gibbs_offset(target, False).kernel if target.is_discrete else random_walk(target)
    return Case(replace(target, simulate=simulate), kernel)


def half_normal_scale(_, is_bad):
    """mu ~ N(1, 1), tau ~ half-normal(1.5), two effects ~ N(mu, tau); the state has tau itself."""

    def log_density(x):
        mu, tau, effects = x[..., 0], x[..., 1], x[..., 2:]
        inside = tau > 0.0
        scale = np.where(inside, tau, 1.0)
        value = -0.5 * (mu - 1.0) ** 2 - 0.5 * (scale / 1.5) ** 2 - 2.0 * np.log(scale)
        value = value - 0.5 * (((effects - mu[..., None]) / scale[..., None]) ** 2).sum(-1)
        return np.where(inside, value + np.log(2.0) - np.log(1.5) - 2.0 * LOG_2PI, -np.inf)[()]

    def gradient(x):
        mu, tau, effects = x[..., :1], x[..., 1:2], x[..., 2:]
        gap = effects - mu
        slope = -tau / 1.5**2 - 2.0 / tau + (gap**2).sum(-1, keepdims=True) / tau**3
        return np.concatenate([1.0 - mu + (gap / tau**2).sum(-1, keepdims=True), slope, -gap / tau**2], axis=-1)

    def simulate(n, rng):
        mu, tau = 1.0 + rng.standard_normal((n, 1)), 1.5 * rng.standard_normal((n, 1))
        if not is_bad:
            tau = np.abs(tau)
        return np.concatenate([mu, tau, mu + tau * rng.standard_normal((n, 2))], axis=1)

    law = Target("hierarchy with a half-normal scale", 4, log_density, simulate, gradient, (),
                 (-np.inf, 0.0, -np.inf, -np.inf), (np.inf,) * 4)  # fmt: skip
    return Case(law, random_walk(law))


def scale_for_variance(_, is_bad):
    factor = np.linalg.cholesky(COVARIANCE)
    sd = np.sqrt(np.diag(COVARIANCE))
    stretch = sd if is_bad else np.ones(3)

    def simulate(n, rng):
        return MEAN + (rng.standard_normal((n, 3)) @ factor.T) * stretch

    return drawn_by(correlated_normal(), simulate)


def potential_ignored(_, is_bad):
    """Three normals and a potential that draws neighbours together, -0.3 (difference)^2; together a normal law."""
    difference = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    own = np.diag([1.0, 0.25, 2.0])
    precision = own + 0.6 * difference.T @ difference
    covariance = np.linalg.inv(precision)
    mean = covariance @ own @ MEAN
    constant = 1.5 * LOG_2PI - 0.5 * float(np.linalg.slogdet(precision)[1])
    factor = np.linalg.cholesky(np.linalg.inv(own) if is_bad else covariance)
    centre = MEAN if is_bad else mean

    def log_density(x):
        return -0.5 * (((x - mean) @ precision) * (x - mean)).sum(-1) - constant

    law = Target("normals with a potential", 3, log_density,
                 lambda n, rng: centre + rng.standard_normal((n, 3)) @ factor.T,
                 lambda x: -(x - mean) @ precision)  # fmt: skip
    return Case(law, random_walk(law))


def lkj_onion(_, is_bad):
    """LKJ(2) of three variables, drawn by the onion method, in inverse tanh of its partial correlations.

    z_12 and z_13 are 2 Beta(eta + 1/2) - 1, z_23 is 2 Beta(eta) - 1 (Lewandowski, Kurowicka & Joe 2009). The onion adds
    one row at a time, and lowers its index by 1/2 with each: forgotten, two variables are right and three are not.
    """
    eta = 2.0
    index = np.array([eta + 0.5, eta + 0.5, eta])
    constant = float((betaln(index, index) + (2.0 * index - 1.0) * np.log(2.0)).sum())

    def log_density(y):  # (1 - z^2)^(b - 1) dz, dz = (1 - z^2) dy
        return (-2.0 * index * (np.logaddexp(y, -y) - np.log(2.0))).sum(-1) - constant

    def simulate(n, rng):
        first = 2.0 * rng.beta(eta + 0.5, eta + 0.5, n) - 1.0
        square = rng.beta(1.0, eta + 0.5 if is_bad else eta, n)
        angle = 2.0 * np.pi * rng.random(n)
        u, v = np.sqrt(square) * np.cos(angle), np.sqrt(square) * np.sin(angle)
        return np.arctanh(np.column_stack([first, u, v / np.sqrt(1.0 - u**2)]))

    law = Target("LKJ(2) of three variables", 3, log_density, simulate, lambda y: -2.0 * index * np.tanh(y))
    return Case(law, random_walk(law))


def support_offset(_, is_bad):
    """Masses of 1 ... 4 given to 0 ... 3, and 0 then taken for 4."""
    target = offset()

    def simulate(n, rng):
        draws = target.simulate(n, rng)
        return np.where(draws == 1.0, 4.0, draws - 1.0) if is_bad else draws

    return drawn_by(target, simulate)


def draws_begin_at_zero(_, is_bad):
    """A label counted from 0, one below its support."""
    target = offset()
    return drawn_by(target, lambda n, rng: target.simulate(n, rng) - float(is_bad))


def marginals_for_joint(_, is_bad):
    target = correlated_normal()

    def simulate(n, rng):
        if not is_bad:
            return target.simulate(n, rng)
        return np.column_stack([target.simulate(n, rng)[:, i] for i in range(3)])

    return drawn_by(target, simulate)


def shared_noise(_, is_bad):
    """Two coordinates are drawn from the same random numbers."""
    from bread.debugging.continuous_targets import SHAPES, log_gamma

    def simulate(n, rng):
        draws = np.log(rng.gamma(SHAPES, size=(n, 3)))
        if is_bad:
            draws[:, 1] = np.log(-np.log(rng.random(n)))
            draws[:, 2] = np.log(rng.gamma(2.0, size=n) + np.exp(draws[:, 1]))  # each alone has its law
        return draws

    return drawn_by(log_gamma(), simulate)


def one_row_repeated(_, is_bad):
    """Draws come from a generator that is seeded anew for each: all are the same."""
    target = correlated_normal()

    def simulate(n, rng):
        if not is_bad:
            return target.simulate(n, rng)
        return np.concatenate([target.simulate(1, np.random.default_rng(12345 + i // 8)) for i in range(n)])

    return drawn_by(target, simulate)


MUTANTS = (
    Mutant("half-normal", "simulator", "a half-normal scale drawn without truncation", half_normal_scale, ("own",),
           "law", "half of the draws are where the density is zero"),
    Mutant("scale-for-variance", "simulator", "the variance is used where the standard deviation is meant",
           scale_for_variance, ("own",), "law",
           "scales 1, 4, 0.25 in place of 1, 2, 0.5; the first coordinate is right"),
    Mutant("potential-ignored", "simulator", "draws leave a potential out", potential_ignored, ("own",), "law",
           "the density counts it"),
    Mutant("lkj-onion", "simulator", "the index of the onion is not lowered with the row", lkj_onion, ("own",), "law",
           "the third correlation is too narrow; two variables are right"),
    Mutant("support-offset", "simulator", "masses are given to the value before", support_offset, ("own",), "law",
           "masses are unequal; on equal masses nothing is wrong"),
    Mutant("begins-at-zero", "simulator", "labels count from 0", draws_begin_at_zero, ("own",), "law",
           "zero is outside of the support"),
    Mutant("marginals", "simulator", "marginals are drawn in place of the joint law", marginals_for_joint, ("own",),
           "law", "the correlation is 0; each coordinate alone is right"),
    Mutant("shared-noise", "randomness", "two coordinates are drawn from the same numbers", shared_noise, ("own",),
           "law", "they depend on one another; each alone is right"),
    Mutant("seeded-draws", "randomness", "the simulator seeds its own generator for every eighth draw",
           one_row_repeated, ("own",), "streams", "draws are not independent: eight in a row are the same"),
)  # fmt: skip
