"""Models with exact posterior draws for the fit test. Each gives the p-values of one posterior draw on given data."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from bread.statistics.real_data.fit import draw_p_value, fit_p_value, node_fit, rank_fit


def normal_node(rng, y, mean, deviation, m):
    """Return the fit of normal elements given mean and deviation."""
    copies = mean + deviation * rng.standard_normal((m, y.size))
    pointwise, replicated = (-0.5 * ((v - mean) / deviation) ** 2 - np.log(deviation) for v in (y, copies))
    pointwise, replicated = np.broadcast_to(pointwise, y.shape), np.broadcast_to(replicated, copies.shape)
    return node_fit(pointwise.sum(), replicated.sum(axis=1), pointwise, replicated.min(axis=1))


class KnownScale:
    """mu ~ N(0, 3), y_i ~ N(mu, 1), i = 1..20."""

    def simulate(self, rng):
        return 3.0 * rng.normal() + rng.normal(size=20)

    def draw(self, rng, y, m):
        variance = 1.0 / (1.0 / 9.0 + y.size)
        mu = variance * y.sum() + np.sqrt(variance) * rng.normal()
        node = normal_node(rng, y, mu, 1.0, m)
        rank = rank_fit([mu], 3.0 * rng.normal(size=(m, 1)))
        return draw_p_value([node.p_value_total, node.p_value_extreme, rank.p_value])


class FreeScale:
    """1 / variance ~ Gamma(2, 2), mu ~ N(0, 5 sd), y_i ~ N(mu, sd), i = 1..20."""

    def simulate(self, rng):
        sd = np.sqrt(2.0 / rng.gamma(2.0))
        return sd * (5.0 * rng.normal() + rng.normal(size=20))

    def draw(self, rng, y, m):
        precision = 1.0 / 25.0 + y.size
        mean = y.sum() / precision
        rate = 2.0 + 0.5 * ((y**2).sum() - precision * mean**2)
        sd = np.sqrt(rate / rng.gamma(2.0 + y.size / 2.0))
        mu = mean + sd / np.sqrt(precision) * rng.normal()
        node = normal_node(rng, y, mu, sd, m)
        rank_mu = rank_fit([mu], 5.0 * sd * rng.normal(size=(m, 1)))
        rank_sd = rank_fit([sd], np.sqrt(2.0 / rng.gamma(2.0, size=(m, 1))))
        return draw_p_value([node.p_value_total, node.p_value_extreme, rank_mu.p_value, rank_sd.p_value])


class Counts:
    """p ~ Beta(1, 1), y_i ~ Binomial(6, p), i = 1..12: many ties."""

    def simulate(self, rng):
        return rng.binomial(6, rng.random(), size=12)

    def draw(self, rng, y, m):
        p = rng.beta(1.0 + y.sum(), 1.0 + 6 * y.size - y.sum())
        table = binom.logpmf(np.arange(7), 6, p)
        copies = table[rng.binomial(6, p, size=(m, y.size))]
        node = node_fit(table[y].sum(), copies.sum(axis=1), table[y], copies.min(axis=1))
        rank = rank_fit([p], rng.random((m, 1)))
        return draw_p_value([node.p_value_total, node.p_value_extreme, rank.p_value])


class Schools:
    """mu ~ N(0, 5), tau ~ half-normal(5), theta_j ~ N(mu, tau), y_j ~ N(theta_j, s_j): the latents are a node too."""

    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    grid = np.linspace(0.02, 25.0, 400)

    def simulate(self, rng):
        tau = 5.0 * abs(rng.normal())
        return 5.0 * rng.normal() + tau * rng.normal(size=8) + self.errors * rng.normal(size=8)

    def draw(self, rng, y, m):
        weight = 1.0 / (self.grid[:, None] ** 2 + self.errors**2)
        precision = 1.0 / 25.0 + weight.sum(axis=1)
        mean = weight @ y / precision
        log_mass = -(self.grid**2) / 50.0 - 0.5 * np.log(precision) + 0.5 * precision * mean**2
        log_mass += 0.5 * np.log(weight).sum(axis=1) - 0.5 * weight @ y**2
        mass = np.exp(log_mass - log_mass.max())
        k = rng.choice(len(mass), p=mass / mass.sum())
        tau = abs(self.grid[k] + (rng.random() - 0.5) * (self.grid[1] - self.grid[0]))
        mu = mean[k] + rng.normal() / np.sqrt(precision[k])
        variance = 1.0 / (1.0 / tau**2 + 1.0 / self.errors**2)
        theta = variance * (mu / tau**2 + y / self.errors**2) + np.sqrt(variance) * rng.normal(size=8)
        data, latent = normal_node(rng, y, theta, self.errors, m), normal_node(rng, theta, mu, tau, m)
        ranks = rank_fit([mu, tau], np.column_stack([5.0 * rng.normal(size=m), 5.0 * np.abs(rng.normal(size=m))]))
        return draw_p_value(
            [data.p_value_total, data.p_value_extreme, latent.p_value_total, latent.p_value_extreme, ranks.p_value]
        )


MODELS = {"known scale": KnownScale(), "free scale": FreeScale(), "counts": Counts(), "schools": Schools()}


def outlier(y, size):
    return np.append(y[:-1], y[:-1].mean() + size)


# name: (model, data, p-value that they must not exceed)
MISFITS = {
    "outlier at 12 sd": ("known scale", lambda rng: outlier(rng.normal(size=20), 12.0), 0.005),
    "outlier at 12 sd, free scale": ("free scale", lambda rng: outlier(rng.normal(size=20), 12.0), 0.005),
    "one value 300 times the others": (
        "free scale",
        lambda rng: outlier(1.0 + 0.3 * rng.normal(size=20), 300.0),
        0.005,
    ),
    "mean ten prior deviations away": ("known scale", lambda rng: 30.0 + rng.normal(size=20), 0.005),
    "constant": ("known scale", lambda rng: np.full(20, 0.7), 0.005),
    "all 0 or 6": ("counts", lambda rng: 6 * rng.permutation(np.arange(12) % 2), 0.005),
    "all 3": ("counts", lambda rng: np.full(12, 3), 0.005),
    "one school at 60": ("schools", lambda rng: np.where(np.arange(8) == 4, 60.0, 8.0 * rng.normal(size=8)), 0.05),
}


def combined(rng, model, y, n_draws=20, m=8000):
    """Return the fit p-value over exact posterior draws."""
    return fit_p_value([model.draw(rng, y, m) for _ in range(n_draws)])
