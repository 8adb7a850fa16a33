"""PyMC models with exact posterior draws by a grid, and real data that they do not fit."""

from __future__ import annotations

import numpy as np
import pymc as pm
from scipy.special import expit, gammaln, logsumexp

ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
X = np.linspace(-2.0, 2.0, 40)


def on_grid(rng, n, log_density, *axes):
    """Return n draws from a density on a grid, each coordinate (n,), moved at random within a cell."""
    mesh = np.meshgrid(*axes, indexing="ij")
    values = log_density(*mesh)
    chosen = rng.choice(values.size, n, p=np.exp(values - logsumexp(values)).ravel())
    moves = [(rng.random(n) - 0.5) * (axis[1] - axis[0]) for axis in axes]
    return [grid.ravel()[chosen] + move for grid, move in zip(mesh, moves, strict=True)]


class KnownScale:
    """mu ~ N(0, 3), y ~ N(mu, 1)."""

    def model(self, y):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu", 0.0, 3.0), 1.0, observed=y)
        return model

    def draws(self, rng, y, n):
        variance = 1.0 / (1.0 / 9.0 + y.size)
        return {"mu": variance * y.sum() + np.sqrt(variance) * rng.normal(size=n)}

    def clean(self, rng):
        return rng.normal(3.0 * rng.normal(), 1.0, 20)


class FreeScale:
    """mu ~ N(0, 5), sigma ~ half-normal(5), y ~ N(mu, sigma)."""

    def model(self, y):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu", 0.0, 5.0), pm.HalfNormal("sigma", 5.0), observed=y)
        return model

    def draws(self, rng, y, n):
        spread, root = max(y.std(), 1e-3), np.sqrt(y.size)

        def log_density(mu, log_sigma):
            sigma = np.exp(log_sigma)
            squares = ((y - y.mean()) ** 2).sum() + y.size * (y.mean() - mu) ** 2
            return -(mu**2) / 50 - sigma**2 / 50 + log_sigma - y.size * log_sigma - squares / (2 * sigma**2)

        axes = y.mean() + 8 * spread / root * np.linspace(-1, 1, 161), np.log(spread) + np.linspace(-1.5, 1.5, 161)
        mu, log_sigma = on_grid(rng, n, log_density, *axes)
        return {"mu": mu, "sigma": np.exp(log_sigma)}

    def clean(self, rng):
        return rng.normal(5.0 * rng.normal(), 5.0 * abs(rng.normal()), 20)


class Counts:
    """p ~ Beta(1, 1), y ~ Binomial(6, p)."""

    def model(self, y):
        with pm.Model() as model:
            pm.Binomial("y", 6, pm.Beta("p", 1.0, 1.0), observed=y)
        return model

    def draws(self, rng, y, n):
        return {"p": rng.beta(1.0 + y.sum(), 1.0 + 6 * y.size - y.sum(), size=n)}

    def clean(self, rng):
        return rng.binomial(6, rng.random(), 12)


class Rate:
    """rate ~ Gamma(2, 0.2), y ~ Poisson(rate)."""

    def model(self, y):
        with pm.Model() as model:
            pm.Poisson("y", pm.Gamma("rate", 2.0, 0.2), observed=y)
        return model

    def draws(self, rng, y, n):
        return {"rate": rng.gamma(2.0 + y.sum(), 1.0 / (0.2 + y.size), size=n)}

    def clean(self, rng):
        return rng.poisson(rng.gamma(2.0, 5.0), 40)


class LogLink:
    """a, b ~ N(0, 2), y ~ Poisson(exp(a + b x))."""

    def model(self, y):
        with pm.Model() as model:
            a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0)
            pm.Poisson("y", pm.math.exp(a + b * X), observed=y)
        return model

    def draws(self, rng, y, n):
        def log_density(a, b):
            eta = a[..., None] + b[..., None] * X
            return (y * eta - np.exp(eta) - gammaln(y + 1)).sum(axis=-1) - (a**2 + b**2) / 8

        a, b = on_grid(rng, n, log_density, np.linspace(-4, 5, 181), np.linspace(-3, 3, 181))
        return {"a": a, "b": b}

    def clean(self, rng):
        return rng.poisson(np.exp(rng.normal() + 0.5 * rng.normal() * X))


class Schools:
    """mu ~ N(0, 5), tau ~ half-normal(5), theta ~ N(mu, tau), y ~ N(theta, errors)."""

    def model(self, y):
        with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
            mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfNormal("tau", 5.0)
            theta = pm.Normal("theta", mu, tau, dims="school")
            pm.Normal("y", theta, ERRORS, observed=y, dims="school")
        return model

    def draws(self, rng, y, n):
        def log_density(mu, tau):
            variance = tau[..., None] ** 2 + ERRORS**2
            terms = -0.5 * np.log(variance) - (y - mu[..., None]) ** 2 / (2 * variance)
            return terms.sum(axis=-1) - mu**2 / 50 - tau**2 / 50

        mu, tau = on_grid(rng, n, log_density, np.linspace(-25, 25, 161), np.linspace(0.1, 30.0, 161))
        variance = 1.0 / (1.0 / tau[:, None] ** 2 + 1.0 / ERRORS**2)
        mean = variance * (mu[:, None] / tau[:, None] ** 2 + y / ERRORS**2)
        return {"mu": mu, "tau": tau, "theta": mean + np.sqrt(variance) * rng.normal(size=mean.shape)}

    def clean(self, rng):
        return 5 * rng.normal() + 5 * abs(rng.normal()) * rng.normal(size=8) + ERRORS * rng.normal(size=8)


MODELS = {
    "known scale": KnownScale(),
    "free scale": FreeScale(),
    "counts": Counts(),
    "rate": Rate(),
    "log link": LogLink(),
    "schools": Schools(),
}


def outlier(y, size):
    return np.append(y[:-1], y[:-1].mean() + size)


# name: (model, data, where the misfit must be found)
MISFITS = {
    "outlier at 12 sd": ("known scale", lambda rng: outlier(rng.normal(size=20), 12.0), "y"),
    "outlier at 12 sd, free scale": ("free scale", lambda rng: outlier(rng.normal(size=40), 12.0), "y"),
    "one value 300 times the others": ("free scale", lambda rng: outlier(rng.normal(1.0, 0.2, 40), 300.0), "sigma"),
    "mean ten prior sd away": ("known scale", lambda rng: 30.0 + rng.normal(size=20), "mu"),
    "constant": ("known scale", lambda rng: np.full(20, 0.7), "y"),
    "counts all 0 or 6": ("counts", lambda rng: 6 * rng.permutation(np.arange(12) % 2), "y"),
    "overdispersed counts": ("rate", lambda rng: rng.poisson(rng.gamma(1.0, 10.0, 40)), "y"),
    "missing covariate": ("known scale", lambda rng: rng.normal(2.0 * (np.arange(20) % 2), 1.0) * 1.5, "y"),
    "wrong link": ("log link", lambda rng: rng.poisson(30.0 * expit(4.0 * X)), "y"),
    "one school at 60": (
        "schools",
        lambda rng: np.where(np.arange(8) == 4, 60.0, ERRORS * rng.normal(size=8)),
        "y given mu, tau",
    ),
    "two clusters of schools": (
        "schools",
        lambda rng: np.where(np.arange(8) % 2, 60.0, -60.0) + ERRORS * rng.normal(size=8),
        "tau",
    ),
}  # fmt: skip
