"""Posteriors whose mean lies where they have no mass: a ring, a product of two, three exchangeable clusters.

Each is unchanged by a symmetry, so that shares of its draws are known exactly. Exact posterior draws come by a grid, or
by a Gibbs sampler whose labels are drawn afresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import softmax

from bread.backends.base import Data, FloatArray
from tests.models.reference import HMCKernel, ReferenceKernel, ReferenceModel

LOG_2PI = float(np.log(2.0 * np.pi))
KERNEL = HMCKernel(n_leapfrog=5)


@dataclass(frozen=True, eq=False)
class SymmetricModel(ReferenceModel):
    """Coordinates ~ N(0, prior_sd^2), each a parameter of its own; subclasses supply the law of the data."""

    y: FloatArray
    prior_sd: float = 2.0
    noise_sd: float = 0.5
    kernel: ReferenceKernel = KERNEL

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        return {name: () for name in self.coordinates}

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        return {"y": np.asarray(self.y, dtype=float)}

    def summarise(self, data: Data) -> dict[str, FloatArray]:
        return {"y": np.asarray(data["y"], dtype=float)}

    def log_prior(self, states: FloatArray) -> FloatArray:
        constant = self.dim * (np.log(self.prior_sd) + 0.5 * LOG_2PI)
        return np.asarray(-0.5 * ((states / self.prior_sd) ** 2).sum(axis=-1) - constant)

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: dict[str, FloatArray]) -> FloatArray:
        prior = -states / self.prior_sd**2
        return prior if beta == 0.0 else prior + beta * self.gradient_log_likelihood(states, statistics["y"])

    def gradient_log_likelihood(self, states: FloatArray, y: FloatArray) -> FloatArray:
        raise NotImplementedError

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        drawn = self.prior_sd * generator.standard_normal(self.dim)
        return np.array([float(fixed.get(name, value)) for name, value in zip(self.coordinates, drawn, strict=True)])

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        return {name: states[:, i].copy() for i, name in enumerate(self.coordinates)}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        return np.stack([np.asarray(parameters[name], dtype=float) for name in self.coordinates], axis=1)

    def log_evidence_of_rows(self, statistics: dict[str, FloatArray]) -> FloatArray:
        raise NotImplementedError


class _Level(SymmetricModel):
    """y_i ~ N(level of (a, b), noise_sd^2)."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("a", "b")

    def level(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the level of each state and its gradient."""
        raise NotImplementedError

    def log_likelihood(self, states: FloatArray, statistics: dict[str, FloatArray]) -> FloatArray:
        residuals = statistics["y"] - self.level(states)[0][..., None]
        constant = len(self.y) * (np.log(self.noise_sd) + 0.5 * LOG_2PI)
        return np.asarray(-0.5 * (residuals**2).sum(axis=-1) / self.noise_sd**2 - constant)

    def gradient_log_likelihood(self, states: FloatArray, y: FloatArray) -> FloatArray:
        level, slope = self.level(states)
        pull = (y - level[..., None]).sum(axis=-1) / self.noise_sd**2
        return np.asarray(pull[..., None] * slope)

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        level = self.level(self.unconstrain({name: np.atleast_1d(value) for name, value in parameters.items()}))[0]
        return {"y": level[0] + self.noise_sd * generator.standard_normal(len(self.y))}


class Ring(_Level):
    """The distance of (a, b) from the origin is observed with noise: any direction is as good as another."""

    def level(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        radius = np.sqrt((states**2).sum(axis=-1))
        return radius, states / np.maximum(radius, 1e-12)[..., None]

    def draw_posterior_of(self, statistics: dict[str, FloatArray], n: int, generator: Generator) -> FloatArray:
        radius = np.linspace(1e-6, 6.0 * self.prior_sd, 20001)
        log_density = np.log(radius) - 0.5 * (radius / self.prior_sd) ** 2
        log_density -= 0.5 * ((statistics["y"][0] - radius[:, None]) ** 2).sum(axis=1) / self.noise_sd**2
        drawn, angle = generator.choice(radius, size=n, p=softmax(log_density)), 2.0 * np.pi * generator.random(n)
        return np.stack([drawn * np.cos(angle), drawn * np.sin(angle)], axis=1)


class Product(_Level):
    """a b is observed with noise: (a, b) and (-a, -b) are one."""

    def level(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        return states[..., 0] * states[..., 1], np.ascontiguousarray(states[..., ::-1])

    def draw_posterior_of(self, statistics: dict[str, FloatArray], n: int, generator: Generator) -> FloatArray:
        """Draw a on a grid, where b is integrated out, then b, which is normal given a."""
        a, y = np.linspace(-6.0 * self.prior_sd, 6.0 * self.prior_sd, 40001), statistics["y"][0]
        precision = 1.0 / self.prior_sd**2 + len(y) * a**2 / self.noise_sd**2
        mean = a * y.sum() / self.noise_sd**2 / precision
        log_density = -0.5 * (a / self.prior_sd) ** 2 + 0.5 * mean**2 * precision - 0.5 * np.log(precision)
        at = generator.choice(len(a), size=n, p=softmax(log_density))
        return np.stack([a[at], mean[at] + generator.standard_normal(n) / np.sqrt(precision[at])], axis=1)


class Clusters(SymmetricModel):
    """y_i ~ an equal mixture of N(centre_k, noise_sd^2), k = 1 to 3: any order of the centres is as good as another."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("centre_1", "centre_2", "centre_3")

    def _terms(self, states: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        standardised = (y[..., None, :] - states[..., None]) / self.noise_sd  # (..., row, centre, observation)
        return -0.5 * standardised**2, standardised

    def log_likelihood(self, states: FloatArray, statistics: dict[str, FloatArray]) -> FloatArray:
        terms, _ = self._terms(states, statistics["y"])
        largest = terms.max(axis=-2)
        sums = np.exp(terms - largest[..., None, :]).sum(axis=-2)
        constant = len(self.y) * (np.log(3.0 * self.noise_sd) + 0.5 * LOG_2PI)
        return np.asarray((largest + np.log(sums)).sum(axis=-1) - constant)

    def gradient_log_likelihood(self, states: FloatArray, y: FloatArray) -> FloatArray:
        terms, standardised = self._terms(states, y)
        shares = np.exp(terms - terms.max(axis=-2, keepdims=True))
        shares = shares / shares.sum(axis=-2, keepdims=True)
        return np.asarray((shares * standardised).sum(axis=-1) / self.noise_sd)

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        centres = np.array([float(parameters[name]) for name in self.coordinates])
        labels = generator.integers(3, size=len(self.y))
        return {"y": centres[labels] + self.noise_sd * generator.standard_normal(len(self.y))}

    def draw_posterior_of(self, statistics: dict[str, FloatArray], n: int, generator: Generator) -> FloatArray:
        """Run a Gibbs sampler, every third sweep kept, and draw the order of the centres afresh at each."""
        y, centres = statistics["y"][0], np.quantile(statistics["y"][0], [0.1, 0.5, 0.9])
        draws = np.empty((n, 3))
        for sweep in range(-20, 3 * n):
            logits = -0.5 * ((y[:, None] - centres) / self.noise_sd) ** 2
            below = np.cumsum(softmax(logits, axis=1), axis=1) < generator.random((len(y), 1))
            labels = np.minimum(below.sum(axis=1), 2)
            counts, sums = np.bincount(labels, minlength=3), np.bincount(labels, weights=y, minlength=3)
            precision = 1.0 / self.prior_sd**2 + counts / self.noise_sd**2
            centres = sums / self.noise_sd**2 / precision + generator.standard_normal(3) / np.sqrt(precision)
            if sweep >= 0:
                draws[sweep // 3] = centres[generator.permutation(3)]
        return draws


def _data(levels: Any, noise_sd: float, seed: int) -> FloatArray:
    return np.asarray(levels + noise_sd * np.random.default_rng(seed).standard_normal(len(levels)))


SYMMETRIC = {
    "ring": Ring(_data(np.full(2, 2.5), 0.8, 1), noise_sd=0.8),
    "product": Product(_data(np.full(2, 2.5), 0.8, 2), prior_sd=1.5, noise_sd=0.8),
    "clusters": Clusters(_data(np.repeat([-3.0, 0.0, 3.0], 2), 0.8, 3), prior_sd=3.0, noise_sd=0.8),
}


def in_one_part(name: str, states: FloatArray) -> NDArray[np.bool_]:
    """Return which states are in one part of the posterior; its share is `SHARE` of that model, by symmetry."""
    if name == "clusters":
        return np.asarray((states[:, 0] < states[:, 1]) & (states[:, 1] < states[:, 2]))
    return np.asarray(states[:, 0] > 0.0)


SHARE = {"ring": 1 / 2, "product": 1 / 2, "clusters": 1 / 6}
