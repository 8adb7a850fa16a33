"""Posteriors with known evidence and exact draws, on which draws miss a mode or do not; as models for a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from scipy.special import gammaln, logsumexp

from bread.backends.base import FloatArray, Identity, Layout, ModelInfo, RealData
from bread.paths.kinds import PriorPath

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class ModeCase:
    """An unnormalised density with exact draws; it is model and posterior of itself, one vector parameter "x".

    Attributes
    ----------
    log_f : callable
        States (n, dim) to log densities (n,), nats.
    draw : callable
        (n, rng) to draws (n, dim) that are under test: all of the posterior, or a part of it.
    draw_prior : callable
        (n, rng) to draws (n, dim).
    log_lower : float
        A lower bound of the log evidence as annealing gives it: that of the part that is drawn.
    gradient : callable or None
        State (dim,) to gradient; None for central differences.
    n_labels : int
        Length of "x" as the model declares it; 1 where coordinates are parameters of their own.
    """

    dim: int
    log_f: Callable[[FloatArray], FloatArray]
    draw: Callable[[int, Generator], FloatArray]
    draw_prior: Callable[[int, Generator], FloatArray]
    log_lower: float
    gradient: Callable[[FloatArray], FloatArray] | None = None
    is_vector: bool = False
    log_evidence: float = field(default=float("nan"))

    @property
    def info(self) -> ModelInfo:
        names = ("x",) if self.is_vector else tuple(f"x{i}" for i in range(self.dim))
        places = [np.arange(self.dim)] if self.is_vector else [np.array([i]) for i in range(self.dim)]
        return ModelInfo(
            Identity("case", "test", "test", "test", {}),
            Layout(
                tuple(f"x[{i}]" for i in range(self.dim)), np.zeros(self.dim, dtype=bool), names,
                {name: () for name in names}, dict(zip(names, places, strict=True)),
            ),
            RealData({}, {}),
        )  # fmt: skip

    def constrain(self, states: FloatArray) -> dict[str, Any]:
        if self.is_vector:
            return {"x": states.copy()}
        return {f"x{i}": states[:, i].copy() for i in range(self.dim)}

    def unconstrain(self, parameters: dict[str, Any]) -> FloatArray:
        if self.is_vector:
            return np.array(parameters["x"], dtype=float)
        return np.stack([parameters[f"x{i}"] for i in range(self.dim)], axis=1)

    def condition(self, data: Any) -> ModeCase:
        return self

    def draw_base(self, path: Any, seeds: list[SeedSequence]) -> FloatArray:
        assert isinstance(path, PriorPath)
        return np.concatenate([self.draw_prior(1, default_rng(seed)) for seed in seeds])

    def log_ratio(self, path: Any, states: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return self.log_f(states) - path.reference.log_density(states)

    def end_gradient(self, path: Any, state: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(all="ignore"):
            value = float(self.log_f(state[None, :])[0])
            if self.gradient is not None:
                return value, self.gradient(state)
            step = 1e-5 * np.eye(self.dim)
            both = self.log_f(np.concatenate([state + step, state - step]))
        return value, (both[: self.dim] - both[self.dim :]) / 2e-5


def _normal(x: FloatArray, sd: Any) -> FloatArray:
    return -0.5 * (x / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI


def _wide(dim: int, sd: float) -> Callable[[int, Generator], FloatArray]:
    return lambda n, rng: sd * rng.standard_normal((n, dim))


def mixture(
    centres: Any,
    sds: Any,
    log_evidences: Any,
    drawn: Any,
    *,
    prior_sd: float,
    prior: Any = None,
    is_vector: bool = False,
) -> ModeCase:
    """Return Gaussian modes of these log evidences; draws come from those that are ``drawn``, by evidence."""
    centres, sds = np.asarray(centres, dtype=float), np.asarray(sds, dtype=float)
    logs, dim = np.asarray(log_evidences, dtype=float), centres.shape[1]
    chosen = np.flatnonzero(drawn)
    shares = np.exp(logs[chosen] - logsumexp(logs[chosen]))

    def log_f(x: FloatArray) -> FloatArray:
        terms = [log + _normal(x - centre, sd).sum(axis=1) for log, centre, sd in zip(logs, centres, sds, strict=True)]
        return logsumexp(terms, axis=0)

    def draw(n: int, rng: Generator) -> FloatArray:
        labels = rng.choice(chosen, size=n, p=shares)
        return centres[labels] + sds[labels, None] * rng.standard_normal((n, dim))

    return ModeCase(
        dim, log_f, draw, prior or _wide(dim, prior_sd), float(logsumexp(logs[chosen])), is_vector=is_vector,
        log_evidence=float(logsumexp(logs)),
    )  # fmt: skip


def planted_regime(dim: int = 3) -> ModeCase:
    """0.4% of the prior, all of the posterior: a log evidence 68 nats higher; draws are from the other regime."""
    centres = np.stack([np.zeros(dim), np.full(dim, 8.0)])

    def prior(n: int, rng: Generator) -> FloatArray:
        return centres[(rng.random(n) < 0.004).astype(int)] + rng.standard_normal((n, dim))

    return mixture(centres, [0.5, 0.3], [0.0, 68.0], [True, False], prior_sd=1.0, prior=prior)


def halves(dim: int, *, is_seen: bool = False) -> ModeCase:
    """Two equal modes that differ in the first coordinate; draws are from one."""
    centres = np.zeros((2, dim))
    centres[:, 0] = -4.0, 4.0
    centres[:, 1:] = 1.0
    return mixture(centres, [1.0, 1.0], [0.0, 0.0], [True, is_seen], prior_sd=3.0)


def minor_mode(dim: int = 2, share: float = 0.05) -> ModeCase:
    """A mode of a small share, seen by the draws."""
    centres = np.stack([np.zeros(dim), np.full(dim, 6.0)])
    return mixture(centres, [1.0, 0.5], np.log([1 - share, share]), [True, True], prior_sd=5.0)


def spike(share: float, is_seen: bool) -> ModeCase:
    """A narrow mode in the middle of a wide one, of this share."""
    return mixture(np.zeros((2, 2)), [1.0, 0.02], np.log([1 - share, share]), [True, is_seen], prior_sd=3.0)


def labels(n_labels: int, is_seen: bool) -> ModeCase:
    """Every order of distinct values of one vector; draws are from all orders, or from one."""
    from itertools import permutations

    values = 3.0 * np.arange(n_labels) ** 1.3
    centres = np.array(list(permutations(values)))
    drawn = np.arange(len(centres)) == 0 if not is_seen else np.ones(len(centres), dtype=bool)
    return mixture(
        centres, np.full(len(centres), 0.6), np.zeros(len(centres)), drawn, prior_sd=6.0, is_vector=True
    )  # fmt: skip


def gaussian(dim: int, correlation: float = 0.0) -> ModeCase:
    """A plain Gaussian, with equal correlations."""
    covariance = (1 - correlation) * np.eye(dim) + correlation
    factor = np.linalg.cholesky(covariance)
    inverse, constant = np.linalg.inv(factor), -np.log(np.diag(factor)).sum() - 0.5 * dim * LOG_2PI

    def log_f(x: FloatArray) -> FloatArray:
        return constant - 0.5 * ((x @ inverse.T) ** 2).sum(axis=1)

    def draw(n: int, rng: Generator) -> FloatArray:
        return rng.standard_normal((n, dim)) @ factor.T

    return ModeCase(dim, log_f, draw, _wide(dim, 5.0), 0.0, log_evidence=0.0)


def funnel(dim: int = 10) -> ModeCase:
    """Neal's funnel: its joint mode is far out in the neck, where none of its mass is."""

    def log_f(x: FloatArray) -> FloatArray:
        return _normal(x[:, 0], 3.0) + _normal(x[:, 1:], np.exp(x[:, :1] / 2)).sum(axis=1)

    def gradient(x: FloatArray) -> FloatArray:
        squares = x[1:] ** 2 * np.exp(-x[0])
        first = -x[0] / 9 + 0.5 * squares.sum() - 0.5 * (dim - 1)
        return np.concatenate([[first], -x[1:] * np.exp(-x[0])])

    def draw(n: int, rng: Generator) -> FloatArray:
        v = 3.0 * rng.standard_normal((n, 1))
        return np.concatenate([v, np.exp(v / 2) * rng.standard_normal((n, dim - 1))], axis=1)

    return ModeCase(dim, log_f, draw, draw, 0.0, gradient, log_evidence=0.0)


def banana(dim: int = 4) -> ModeCase:
    """Pairs (u, v) with v normal around a parabola of u."""

    def log_f(x: FloatArray) -> FloatArray:
        u, v = x[:, ::2], x[:, 1::2]
        return (_normal(u, 2.0) + _normal(v - u**2, 0.3)).sum(axis=1)

    def draw(n: int, rng: Generator) -> FloatArray:
        x = np.empty((n, dim))
        x[:, ::2] = 2.0 * rng.standard_normal((n, dim // 2))
        x[:, 1::2] = x[:, ::2] ** 2 + 0.3 * rng.standard_normal((n, dim // 2))
        return x

    return ModeCase(dim, log_f, draw, _wide(dim, 6.0), 0.0, log_evidence=0.0)


def student(dim: int) -> ModeCase:
    """A multivariate Student t with two degrees of freedom."""
    constant = gammaln(1 + dim / 2) - 0.5 * dim * np.log(2 * np.pi)

    def log_f(x: FloatArray) -> FloatArray:
        return constant - (1 + dim / 2) * np.log1p((x**2).sum(axis=1) / 2)

    def draw(n: int, rng: Generator) -> FloatArray:
        return rng.standard_normal((n, dim)) / np.sqrt(rng.chisquare(2, (n, 1)) / 2)

    return ModeCase(dim, log_f, draw, _wide(dim, 10.0), 0.0, log_evidence=0.0)


def log_gamma(dim: int, shape: float = 0.3) -> ModeCase:
    """Logarithms of Gamma variables of a small shape: a long tail to the left."""

    def log_f(x: FloatArray) -> FloatArray:
        return (shape * x - np.exp(x) - gammaln(shape)).sum(axis=1)

    def draw(n: int, rng: Generator) -> FloatArray:
        extra = np.log(rng.random((n, dim))) / shape  # Gamma(a) = Gamma(a + 1) U^(1/a), without underflow
        return np.log(rng.gamma(shape + 1.0, size=(n, dim))) + extra

    return ModeCase(dim, log_f, draw, _wide(dim, 5.0), 0.0, log_evidence=0.0)


def ring() -> ModeCase:
    """A thin ring in the plane: no maximum is better than another."""
    radii = np.linspace(2.0, 8.0, 20001)
    log_evidence = float(np.log(2 * np.pi * np.sum(radii * np.exp(-0.5 * ((radii - 5.0) / 0.1) ** 2)) * 3e-4))

    def log_f(x: FloatArray) -> FloatArray:
        return -0.5 * ((np.hypot(x[:, 0], x[:, 1]) - 5.0) / 0.1) ** 2

    def draw(n: int, rng: Generator) -> FloatArray:
        weights = radii * np.exp(-0.5 * ((radii - 5.0) / 0.1) ** 2)
        radius, angle = rng.choice(radii, size=n, p=weights / weights.sum()), 2 * np.pi * rng.random(n)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    return ModeCase(2, log_f, draw, _wide(2, 4.0), log_evidence, log_evidence=log_evidence)


SCHOOLS_Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_SD = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(*, is_centred: bool) -> ModeCase:
    """mu ~ N(0, 5), tau ~ half-Cauchy(5), theta ~ N(mu, tau); exact draws by a grid over log tau."""
    grid = np.linspace(-14.0, 7.0, 8001)
    prior = np.log(2 / np.pi / 5.0) - np.log1p((np.exp(grid) / 5.0) ** 2) + grid
    variance = np.exp(2 * grid)[:, None] + SCHOOLS_SD**2
    precision = (1 / variance).sum(axis=1) + 1 / 25.0
    mean = (SCHOOLS_Y / variance).sum(axis=1) / precision
    log_joint = prior + _normal(SCHOOLS_Y, np.sqrt(variance)).sum(axis=1) + _normal(0.0, 5.0)
    log_joint = log_joint + 0.5 * ((SCHOOLS_Y / variance).sum(axis=1) * mean) + 0.5 * (LOG_2PI - np.log(precision))
    log_evidence = float(logsumexp(log_joint) + np.log(grid[1] - grid[0]))

    def log_f(x: FloatArray) -> FloatArray:
        mu, t, theta = x[:, :1], x[:, 1:2], x[:, 2:]
        head = _normal(mu, 5.0) + np.log(2 / np.pi / 5.0) - np.log1p((np.exp(t) / 5.0) ** 2) + t
        if is_centred:
            body = _normal(theta - mu, np.exp(t)) + _normal(SCHOOLS_Y - theta, SCHOOLS_SD)
        else:
            body = _normal(theta, 1.0) + _normal(SCHOOLS_Y - mu - np.exp(t) * theta, SCHOOLS_SD)
        return head[:, 0] + body.sum(axis=1)

    def of(mu: FloatArray, t: FloatArray, theta: FloatArray) -> FloatArray:
        z = theta if is_centred else (theta - mu) / np.exp(t)
        return np.concatenate([mu, t, z], axis=1)

    def draw(n: int, rng: Generator) -> FloatArray:
        at = rng.choice(len(grid), size=n, p=np.exp(log_joint - logsumexp(log_joint)))
        t = grid[at][:, None]
        mu = (mean[at] + rng.standard_normal(n) / np.sqrt(precision[at]))[:, None]
        inverse = np.exp(-2 * t) + 1 / SCHOOLS_SD**2
        theta = (mu * np.exp(-2 * t) + SCHOOLS_Y / SCHOOLS_SD**2) / inverse
        return of(mu, t, theta + rng.standard_normal((n, 8)) / np.sqrt(inverse))

    def draw_prior(n: int, rng: Generator) -> FloatArray:
        mu, t = 5.0 * rng.standard_normal((n, 1)), np.log(5.0 * np.abs(rng.standard_cauchy((n, 1))))
        return of(mu, t, mu + np.exp(t) * rng.standard_normal((n, 8)))

    return ModeCase(10, log_f, draw, draw_prior, log_evidence, log_evidence=log_evidence)


MISSED = {
    "planted regime": planted_regime,
    "missed half, d = 1": lambda: halves(1),
    "missed half, d = 10": lambda: halves(10),
    "missed spike of 60%": lambda: spike(0.6, False),
}
NOT_MISSED = {
    "funnel": funnel,
    "banana": banana,
    "t2, d = 1": lambda: student(1),
    "t2, d = 5": lambda: student(5),
    "log-gamma, d = 1": lambda: log_gamma(1),
    "log-gamma, d = 5": lambda: log_gamma(5),
    "eight schools, centred": lambda: eight_schools(is_centred=True),
    "eight schools, non-centred": lambda: eight_schools(is_centred=False),
    "seen mode of 5%": minor_mode,
    "seen halves": lambda: halves(3, is_seen=True),
    "seen spike of 30%": lambda: spike(0.3, True),
    "two labels, both seen": lambda: labels(2, True),
    "two labels, one seen": lambda: labels(2, False),
    "three labels, one seen": lambda: labels(3, False),
    "Gaussian, d = 30": lambda: gaussian(30),
    "correlated Gaussian, d = 30": lambda: gaussian(30, 0.9),
    "ring": ring,
}
