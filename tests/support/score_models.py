"""Models for the tests before annealing: exact joint draws with the gradients of prior and likelihood, by NumPy.

Every function takes a generator and a number of draws and returns `Draws`. Densities are in unconstrained coordinates,
Jacobians included. ``wrong`` scales plant an error in the density, never in the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma


class Draws(NamedTuple):
    """Joint draws: parameters (n, d), prior and likelihood gradients by them, outcomes (n, m) and their gradient."""

    theta: np.ndarray
    prior: np.ndarray
    likelihood: np.ndarray
    outcomes: np.ndarray
    by_outcomes: np.ndarray


def half_cauchy_log(rng, n, scale):
    """Return log of half-Cauchy draws and the gradient of their log density with the Jacobian."""
    u = np.log(np.abs(rng.standard_cauchy(n)) * scale)
    ratio = np.exp(2.0 * (u - np.log(scale)))
    return u, 1.0 - 2.0 * ratio / (1.0 + ratio)


def hierarchy(rng, n, prior_power=1.0, noise_power=1.0):
    """mu ~ N(0, 3), tau ~ half-Cauchy(2), theta_j ~ N(mu, tau), sigma ~ half-normal(1.5), y_jk ~ N(theta_j, sigma).

    Centred: gradients by theta_j have no mean. A power of 0.5 is a standard deviation where a variance is meant.
    """
    groups, repeats = 4, 3
    mu = 3.0 * rng.normal(size=n)
    log_tau, tau_slope = half_cauchy_log(rng, n, 2.0)
    tau = np.exp(log_tau)
    theta = mu[:, None] + tau[:, None] * rng.normal(size=(n, groups))
    sigma = 1.5 * np.abs(rng.normal(size=n))
    y = theta[:, :, None] + sigma[:, None, None] * rng.normal(size=(n, groups, repeats))
    variance, noise = tau ** (2.0 * prior_power), sigma ** (2.0 * noise_power)
    gap, rest = theta - mu[:, None], y - theta[:, :, None]
    prior = np.column_stack([
        -mu / 9.0 + gap.sum(axis=1) / variance,
        tau_slope + prior_power * ((gap**2).sum(axis=1) / variance - groups),
        1.0 - sigma**2 / 1.5**2,
        -gap / variance[:, None],
    ])  # fmt: skip
    likelihood = np.column_stack([
        np.zeros(n), np.zeros(n),
        noise_power * ((rest**2).sum(axis=(1, 2)) / noise - groups * repeats),
        rest.sum(axis=2) / noise[:, None],
    ])  # fmt: skip
    by_outcomes = -rest / noise[:, None, None]
    coordinates = np.column_stack([mu, log_tau, np.log(sigma), theta])
    return Draws(coordinates, prior, likelihood, y.reshape(n, -1), by_outcomes.reshape(n, -1))


def known_scale(rng, n, noise_power=1.0, prior_shift=0.0):
    """mu ~ N(0, 2), y_j ~ N(mu, 1.7) for five j: the score by mu has mean zero whatever scale the density has."""
    mu = 2.0 * rng.normal(size=(n, 1))
    y = mu + 1.7 * rng.normal(size=(n, 5))
    variance = 1.7 ** (2.0 * noise_power)
    prior, score = -(mu - prior_shift) / 4.0, (y - mu) / variance
    return Draws(mu, prior, score.sum(axis=1, keepdims=True), y, -score)


def rare_events(rng, n, rate=1.0):
    """eta ~ N(-5, 2), six Bernoulli and six Poisson counts; unseen: a variance ~ inverse gamma(0.02, 0.02)."""
    eta = -5.0 + 2.0 * rng.normal(size=n)
    log_variance = -np.log(rng.gamma(0.02, size=n) / 0.02)
    p, mean = 1.0 / (1.0 + np.exp(-eta)), np.exp(eta)
    events, counts = rng.random((n, 6)) < p[:, None], rng.poisson(mean[:, None], (n, 6))
    prior = np.column_stack([-(eta + 5.0) / 4.0, -0.02 + 0.02 * np.exp(-log_variance)])
    score = events.sum(axis=1) - 6.0 * p + counts.sum(axis=1) - 6.0 * rate * mean
    likelihood = np.column_stack([score, np.zeros(n)])
    return Draws(np.column_stack([eta, log_variance]), prior, likelihood, np.zeros((n, 0)), np.zeros((n, 0)))


def skewed(rng, n, rate=1.0):
    """log shape ~ N(0.3, 0.8), log mean ~ Laplace(0, 1), log y_j ~ log of Gamma(shape, shape / mean) for four j."""
    log_shape, log_mean = 0.3 + 0.8 * rng.normal(size=n), rng.laplace(size=n)
    shape = np.exp(log_shape)
    u = np.log(rng.gamma(shape[:, None], size=(n, 4))) - log_shape[:, None] + log_mean[:, None]
    scaled = rate * shape[:, None] * np.exp(u - log_mean[:, None])
    prior = np.column_stack([-(log_shape - 0.3) / 0.64, -np.sign(log_mean)])
    rest = (np.log(scaled) + 1.0 - digamma(shape)[:, None]).sum(axis=1) * shape - scaled.sum(axis=1)
    likelihood = np.column_stack([rest, (scaled - shape[:, None]).sum(axis=1)])
    return Draws(np.column_stack([log_shape, log_mean]), prior, likelihood, u, shape[:, None] - scaled)


def funnel(rng, n, dim=5, power=1.0):
    """v ~ N(0, 3), x_k ~ N(0, exp(v / 2)), seen with noise whose scale is x_1's: Neal's funnel as a prior."""
    v = 3.0 * rng.normal(size=n)
    x = np.exp(v / 2.0)[:, None] * rng.normal(size=(n, dim))
    inverse = np.exp(-power * v)[:, None]
    prior = np.column_stack([-v / 9.0 + power * ((x**2 * inverse).sum(axis=1) - dim) / 2.0, -x * inverse])
    y = x[:, :1] + np.exp(v / 2.0)[:, None] * rng.gumbel(size=(n, 1))
    z = (y - x[:, :1]) * np.exp(-v / 2.0)[:, None]
    by_y = -(1.0 - np.exp(-z)) * np.exp(-v / 2.0)[:, None]
    likelihood = np.column_stack(
        [0.5 * (z[:, 0] * (1.0 - np.exp(-z[:, 0])) - 1.0), -by_y[:, 0], np.zeros((n, dim - 1))]
    )
    return Draws(np.column_stack([v, x]), prior, likelihood, y, by_y)


def cauchy(rng, n, scale=1.0):
    """Location ~ Cauchy(0, 3), y_j ~ Cauchy(location, 1) for three j."""
    x = 3.0 * rng.standard_cauchy((n, 1))
    y = x + rng.standard_cauchy((n, 3))
    z = (y - x) / scale
    score = 2.0 * z / (1.0 + z**2) / scale
    return Draws(x, -2.0 * x / (9.0 + x**2), score.sum(axis=1, keepdims=True), y, -score)


def correlations(rng, n, wrong_shape=0.0):
    """Partial correlations of three variables under LKJ(2), as arctanh; ``wrong_shape`` is added in the *draws*."""
    shapes = np.array([2.5, 2.5, 2.0])
    y = np.arctanh(2.0 * rng.beta(shapes + wrong_shape, shapes + wrong_shape, size=(n, 3)) - 1.0)
    return Draws(y, -2.0 * shapes * np.tanh(y), np.zeros((n, 3)), np.zeros((n, 0)), np.zeros((n, 0)))


def many(rng, n, dim=60, spread=1.0):
    """Sixty correlated normal coordinates and outcomes."""
    x = rng.normal(size=(n, dim)) + 0.7 * rng.normal(size=(n, 1))
    share = 0.49 / (1.0 + dim * 0.49)
    y = x + rng.normal(size=(n, dim))
    prior = -(x - share * x.sum(axis=1, keepdims=True)) / spread**2
    return Draws(x, prior, y - x, y, x - y)


CLEAN = {
    "hierarchy": hierarchy, "known scale": known_scale, "rare events": rare_events, "skewed": skewed,
    "funnel": funnel, "Cauchy": cauchy, "correlations": correlations, "many": many,
}  # fmt: skip
