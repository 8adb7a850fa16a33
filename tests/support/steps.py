"""Exact draws and frozen kernels for the invariance test, right and wrong, by NumPy.

Each case is a function of a generator and a number of draws that returns states before and after some steps.
"""

from __future__ import annotations

import numpy as np


def metropolis(rng, x, log_density, scale, n_steps, propose=None, accept=None):
    """Return x after random-walk Metropolis steps; ``propose`` and ``accept`` replace the parts to be broken."""
    for _ in range(n_steps):
        y = x + scale * rng.normal(size=x.shape) if propose is None else propose(rng, x)
        with np.errstate(all="ignore"):
            ratio = log_density(y) - log_density(x) if accept is None else accept(x, y)
        x = np.where((np.log(rng.random(len(x))) < ratio)[:, None], y, x)
    return x


def with_density(before, after, log_density):
    """Append the log density as one more column, as a check does."""
    return tuple(np.column_stack([x, log_density(x)]) for x in (before, after))


def funnel_density(x):
    return (
        -(x[:, 0] ** 2) / 18.0 - (x[:, 1:] ** 2).sum(axis=1) * np.exp(-x[:, 0]) / 2.0 - x[:, 0] * (x.shape[1] - 1) / 2.0
    )


def funnel_draws(rng, n, dim=4):
    v = 3.0 * rng.normal(size=n)
    return np.column_stack([v, np.exp(v / 2.0)[:, None] * rng.normal(size=(n, dim))])


def on_funnel(rng, n):
    x = funnel_draws(rng, n)
    return with_density(x, metropolis(rng, x, funnel_density, 0.5, 5), funnel_density)


def cauchy_density(x):
    return -np.log1p(x**2).sum(axis=1)


def on_cauchy(rng, n):
    x = rng.standard_cauchy((n, 3))
    return with_density(x, metropolis(rng, x, cauchy_density, 1.0, 5), cauchy_density)


def half_cauchy_density(u):
    return (u - np.log1p(np.exp(2.0 * u))).sum(axis=1)


def on_half_cauchy(rng, n):
    """Multiplicative steps on a half-Cauchy scale: right, since the density is of the log, Jacobian included."""
    u = np.log(np.abs(rng.standard_cauchy((n, 2))))
    return np.exp(u), np.exp(metropolis(rng, u, half_cauchy_density, 1.0, 3))


def on_circle(rng, n):
    """Rotation by 0.1: leaves the uniform law invariant, is not reversible, and moves nine draws of ten upwards."""
    x = rng.random((n, 2))
    return x, (x + 0.1) % 1.0


def gibbs(rng, n, variance_factor=1.0, correlation=0.9, dim=3):
    """A fixed-order sweep over an equicorrelated normal law: invariant, not reversible."""
    x = rng.normal(size=(n, dim)) * np.sqrt(1.0 - correlation) + rng.normal(size=(n, 1)) * np.sqrt(correlation)
    before = x.copy()
    slope = correlation / (1.0 + (dim - 2) * correlation)
    deviation = np.sqrt(variance_factor * (1.0 - slope * correlation * (dim - 1)))
    for _ in range(3):
        for i in range(dim):
            x[:, i] = slope * (x.sum(axis=1) - x[:, i]) + deviation * rng.normal(size=n)
    return before, x


def counts(rng, n, wrong=False):
    """Poisson(1) by +-1 proposals; wrong: at 0 the proposal of -1 is turned into +1 without a correction."""
    x = rng.poisson(1.0, (n, 1)).astype(float)
    before = x.copy()
    for _ in range(10):
        step = rng.choice([-1.0, 1.0], size=x.shape)
        y = np.abs(x + step) if wrong else x + step
        ratio = np.where(y > x, 1.0 / (x + 1.0), x)
        x = np.where(rng.random(x.shape) < np.where(y < 0.0, 0.0, ratio), y, x)
    return before, x


def lazy(rng, n):
    """A kernel that accepts 2% of its proposals."""
    x = rng.gamma(2.0, size=(n, 2))
    return x, metropolis(rng, x, lambda y: np.where(y > 0, np.log(np.abs(y)) - y, -np.inf).sum(axis=1), 30.0, 3)


def langevin(rng, n, step=1.0, dim=4, n_steps=10):
    """Langevin steps without the Metropolis correction, on a normal law."""
    x = rng.normal(size=(n, dim))
    before = x.copy()
    for _ in range(n_steps):
        x = x - step**2 / 2.0 * x + step * rng.normal(size=x.shape)
    return with_density(before, x, lambda y: -(y**2).sum(axis=1) / 2.0)


def without_jacobian(rng, n):
    """Multiplicative proposals accepted by the ratio of densities of the scale: the Hastings factor is missing."""
    x = np.abs(rng.standard_cauchy((n, 1)))
    for_scale = lambda u: -np.log1p(np.exp(2.0 * u)).sum(axis=1)  # noqa: E731
    return x, np.exp(metropolis(rng, np.log(x), for_scale, 1.0, 3))


def reckless(rng, n):
    """Metropolis on the funnel that accepts whatever is above half the density."""
    x = funnel_draws(rng, n)
    accept = lambda x, y: funnel_density(y) - funnel_density(x) + np.log(2.0)  # noqa: E731
    return with_density(x, metropolis(rng, x, funnel_density, 0.5, 5, accept=accept), funnel_density)


RIGHT = {
    "funnel": on_funnel, "Cauchy": on_cauchy, "half-Cauchy": on_half_cauchy, "rotation": on_circle, "sweep": gibbs,
    "counts": counts, "lazy": lazy,
}  # fmt: skip
WRONG = {
    "Langevin without correction": langevin,
    "small Langevin steps": lambda rng, n: langevin(rng, n, 0.7),
    "no Jacobian": without_jacobian,
    "accepts too much": reckless,
    "sweep with twice the variance": lambda rng, n: gibbs(rng, n, 2.0),
    "reflection without correction": lambda rng, n: counts(rng, n, wrong=True),
}
