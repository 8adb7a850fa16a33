"""Laws with exact draws, densities and gradients by hand, and draws of them that are wrong in a known way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from scipy.stats import gamma
from scipy.stats import t as student

Array = NDArray[np.float64]
CHAINS, DRAWS = 4, 250


class Law(NamedTuple):
    """Exact draws (chain, draw, d), the gradient at states, the log density of states (n, d)."""

    draw: Callable[[Generator], Array]
    gradient: Callable[[Array], Array]
    log_density: Callable[[Array], Array]


def gaussian(covariance: Array, mean: Array | float = 0.0) -> Law:
    root, precision = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    d = len(covariance)
    return Law(
        lambda rng: mean + rng.standard_normal((CHAINS, DRAWS, d)) @ root.T,
        lambda x: -(x - mean) @ precision,
        lambda x: -0.5 * np.einsum("ni,ij,nj->n", x - mean, precision, x - mean),
    )


def equicorrelated(d: int, correlation: float) -> Array:
    return np.asarray(np.full((d, d), correlation) + (1.0 - correlation) * np.eye(d))


def by_coordinate(draw: Callable[[Generator, tuple[int, ...]], Array], slope: Callable[[Array], Array],
                  log_density: Callable[[Array], Array], d: int) -> Law:  # fmt: skip
    return Law(lambda rng: draw(rng, (CHAINS, DRAWS, d)), slope, lambda x: log_density(x).sum(axis=-1))


def log_gamma(shape: float, d: int) -> Law:
    """Of the logarithm of a gamma variable, a scale or a precision."""
    return by_coordinate(
        lambda rng, size: np.log(rng.gamma(shape + 1.0, size=size)) + np.log(rng.uniform(size=size)) / shape,
        lambda x: shape - np.exp(x), lambda x: shape * x - np.exp(x), d,
    )  # fmt: skip


def autoregressive(d: int, correlation: float, shape: tuple[int, int] = (CHAINS, DRAWS)) -> Law:
    """Of chains that move slowly, or of another shape; the law is a standard normal one."""

    def draw(rng: Generator) -> Array:
        x, state = np.empty((*shape, d)), rng.standard_normal((shape[0], d))
        for t in range(shape[1]):
            state = correlation * state + np.sqrt(1.0 - correlation**2) * rng.standard_normal(state.shape)
            x[:, t] = state
        return x

    return gaussian(np.eye(d))._replace(draw=draw)


def slow(law: Law, quantile: Callable[[Array], Array], d: int, correlation: float) -> Law:
    """Return a law of independent coordinates with slow chains: quantiles at those of autoregressive ones."""
    chains = autoregressive(d, correlation)
    return law._replace(draw=lambda rng: quantile(ndtr(chains.draw(rng))))


def student_t(degrees: float, d: int) -> Law:
    return by_coordinate(
        lambda rng, size: rng.standard_t(degrees, size), lambda x: -(degrees + 1.0) * x / (degrees + x * x),
        lambda x: -0.5 * (degrees + 1.0) * np.log1p(x * x / degrees), d,
    )  # fmt: skip


def log_odds(shape: float, d: int) -> Law:
    """Of a beta variable with both shapes alike, whose draws lie at its bounds."""
    low = log_gamma(shape, d)
    return by_coordinate(
        lambda rng, size: low.draw(rng) - low.draw(rng), lambda x: -shape * np.tanh(0.5 * x),
        lambda x: -2.0 * shape * np.logaddexp(0.5 * x, -0.5 * x), d,
    )  # fmt: skip


def open_interval(d: int) -> Law:
    """Of a uniform variable whose edges no transform takes away: its density jumps."""
    return by_coordinate(
        lambda rng, size: rng.uniform(-1.0, 1.0, size), np.zeros_like,
        lambda x: np.where(np.abs(x) < 1.0, 0.0, -np.inf), d,
    )  # fmt: skip


def simplex(concentration: Array) -> Law:
    """Of log ratios to the last share of a Dirichlet law: its density has the product of all shares as Jacobian."""
    total = concentration.sum()

    def shares(x: Array) -> Array:
        whole = np.concatenate([x, np.zeros((*x.shape[:-1], 1))], axis=-1)
        whole = np.exp(whole - whole.max(axis=-1, keepdims=True))
        return np.asarray(whole / whole.sum(axis=-1, keepdims=True))

    def draw(rng: Generator) -> Array:
        gammas = np.stack([log_gamma(a, 1).draw(rng)[..., 0] for a in concentration], axis=-1)
        return np.asarray(gammas[..., :-1] - gammas[..., -1:])

    return Law(
        draw,
        lambda x: concentration[:-1] - total * shares(x)[..., :-1],
        lambda x: (concentration * np.log(shares(x))).sum(axis=-1),
    )


def cholesky_factor(eta: float, n: int) -> Law:
    """Of a correlation matrix by LKJ's law: partial correlations are independent; their inverse hyperbolic tangents."""
    b = np.array([eta + (n - 2 - row) / 2.0 for row in range(n - 1) for _ in range(row + 1)])
    return by_coordinate(
        lambda rng, size: np.arctanh(2.0 * rng.beta(b, b, size=size) - 1.0),
        lambda x: -2.0 * b * np.tanh(x), lambda x: -2.0 * b * np.log(np.cosh(x)), len(b),
    )  # fmt: skip


def funnel(d: int) -> Law:
    def draw(rng: Generator) -> Array:
        v = 3.0 * rng.standard_normal((CHAINS, DRAWS, 1))
        return np.concatenate([v, np.exp(0.5 * v) * rng.standard_normal((CHAINS, DRAWS, d - 1))], axis=-1)

    def gradient(x: Array) -> Array:
        v, rest = x[..., :1], x[..., 1:]
        own = -v / 9.0 - (d - 1) / 2.0 + 0.5 * np.exp(-v) * (rest**2).sum(axis=-1, keepdims=True)
        return np.concatenate([own, -rest * np.exp(-v)], axis=-1)

    def log_density(x: Array) -> Array:
        v, rest = x[..., 0], x[..., 1:]
        return np.asarray(-v * v / 18.0 - 0.5 * (d - 1) * v - 0.5 * np.exp(-v) * (rest**2).sum(axis=-1))

    return Law(draw, gradient, log_density)


LAWS: dict[str, Law] = {
    "normal, d = 1": gaussian(np.eye(1)),
    "normal, correlated 0.8, d = 10": gaussian(equicorrelated(10, 0.8)),
    "normal, d = 200": gaussian(np.eye(200)),
    "normal, correlated 0.5, d = 200": gaussian(equicorrelated(200, 0.5)),
    "normal, chains AR(0.5), d = 10": autoregressive(10, 0.5),
    "Student t, 3 degrees, d = 10": student_t(3.0, 10),
    "bounded: logit of uniform, d = 10": by_coordinate(
        lambda rng, size: rng.logistic(size=size), lambda x: 1.0 - 2.0 * expit(x),
        lambda x: x - 2.0 * np.logaddexp(0.0, x), 10,
    ),
    "scales: log of gamma 0.5, d = 10": log_gamma(0.5, 10),
    "simplex: Dirichlet 0.5 to 5, d = 5": simplex(np.array([0.5, 1.0, 1.0, 2.0, 3.0, 5.0])),
    "Cholesky factor: LKJ 2, 5 x 5, d = 10": cholesky_factor(2.0, 5),
    "funnel, d = 10": funnel(10),
}  # fmt: skip

# What might look wrong and is right. Of 4 chains of 1000 a look takes every fourth draw.
HARD_LAWS: dict[str, Law] = {
    **{
        f"every fourth of 4 x 1000, AR({correlation:g}), d = {d}": autoregressive(d, correlation**4)
        for correlation in (0.8, 0.9, 0.94, 0.95, 0.96, 0.99) for d in (1, 10)
    },
    "AR(0.5), d = 50": autoregressive(50, 0.5),
    "AR(-0.5), d = 10": autoregressive(10, -0.5),
    "one chain of 1000, AR(0.7), d = 10": autoregressive(10, 0.7, (1, 1000)),
    "one chain of 200, d = 10": autoregressive(10, 0.0, (1, 200)),
    "2 chains of 50, d = 10": autoregressive(10, 0.0, (2, 50)),
    "2 chains of 75, d = 3": autoregressive(3, 0.0, (2, 75)),
    "100 chains of 10, d = 10": autoregressive(10, 0.0, (100, 10)),
    "500 chains of 2, d = 10": autoregressive(10, 0.0, (500, 2)),
    "Student t, 2 degrees, d = 10": student_t(2.0, 10),
    "Cauchy, d = 10": student_t(1.0, 10),
    "scales: log of gamma 0.05, d = 10": log_gamma(0.05, 10),
    "bounded: log odds of beta 0.1, d = 10": log_odds(0.1, 10),
    "slow scales: log of gamma 0.5, AR(0.85), d = 5": slow(
        log_gamma(0.5, 5), lambda u: np.log(gamma.ppf(u, 0.5)), 5, 0.85
    ),
    "slow tails: Student t, 2 degrees, AR(0.85), d = 5": slow(
        student_t(2.0, 5), lambda u: student.ppf(u, 2.0), 5, 0.85
    ),
    "open edges: uniform, d = 10": open_interval(10),
    "funnel, d = 3": funnel(3),
    "funnel, d = 50": funnel(50),
}  # fmt: skip


def regression(rng: Generator, n: int, prior_sd: float, y: Array | None = None, k: int = 5) -> tuple[Array, Array, Law]:
    """Return X, y and the posterior of coefficients, noise of variance 1."""
    x = rng.standard_normal((n, k))
    y = x @ rng.standard_normal(k) + rng.standard_normal(n) if y is None else y
    return x, y, posterior_of(x, y, prior_sd)


def posterior_of(x: Array, y: Array, prior_sd: float) -> Law:
    covariance = np.linalg.inv(x.T @ x + np.eye(x.shape[1]) / prior_sd**2)
    return gaussian(covariance, covariance @ x.T @ y)


def correlated_posteriors() -> dict[str, Array]:
    """Return covariances of five posteriors whose mean-field approximation is wrong."""
    place = np.arange(10.0)
    kernel = np.exp(-0.5 * (place[:, None] - place) ** 2 / 4.0) + 1e-6 * np.eye(10)
    x = np.column_stack([np.ones(30), np.linspace(3.0, 9.0, 30)])
    groups = np.zeros((9, 9))  # mu and eight group means around it, five observations each
    groups[0, 0], groups[0, 1:], groups[1:, 0] = 8.0 + 0.01, -1.0, -1.0
    groups[1:, 1:] = 6.0 * np.eye(8)
    return {
        "equicorrelated 0.8": equicorrelated(10, 0.8),
        "autoregressive 0.9": 0.9 ** np.abs(place[:, None] - place),
        "regression, covariate not centred": np.linalg.inv(x.T @ x),
        "groups around a mean": np.linalg.inv(groups),
        "latent Gaussian process": np.linalg.inv(np.linalg.inv(kernel) + np.eye(10) / 0.25),
    }
