"""A factor model for tests: a matrix of data near a product of two matrices, which rotations leave alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray
from tests.models.reference import HMCKernel, ReferenceKernel, ReferenceModel
from tests.models.reference.arrays import Statistics

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class FactorModel(ReferenceModel):
    """y ~ N(u v, noise_sd^2), u ~ N(0, scale^2), v ~ N(0, 1), log scale ~ N(0, scale_sd^2), or scale = 1.

    ``tilt`` times the sum of u's first column is added to the log density alone: rotations do not leave it as it is.
    """

    y: FloatArray
    n_factors: int = 2
    noise_sd: float = 0.5
    scale_sd: float | None = None
    tilt: float = 0.0
    kernel: ReferenceKernel = HMCKernel(n_leapfrog=10)  # noqa: RUF009  (a frozen value)

    @property
    def n_scales(self) -> int:
        return 0 if self.scale_sd is None else 1

    @property
    def coordinates(self) -> tuple[str, ...]:
        (n, d), k = self.y.shape, self.n_factors
        u = (f"u[{i}, {j}]" for i in range(n) for j in range(k))
        v = (f"v[{i}, {j}]" for i in range(k) for j in range(d))
        return (*("scale_log__",)[: self.n_scales], *u, *v)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        scale = {"scale": ()} if self.n_scales else {}
        return {**scale, "u": ("row", "factor"), "v": ("factor", "column")}

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        (n, d), k = self.y.shape, self.n_factors
        return {"row": np.arange(n), "factor": np.arange(k), "column": np.arange(d)}

    @property
    def positions(self) -> dict[str, NDArray[np.int64]]:
        names = np.array([label.split("[")[0].removesuffix("_log__") for label in self.coordinates])
        return {name: np.flatnonzero(names == name) for name in self.parameters}

    @property
    def transformed(self) -> NDArray[np.bool_]:
        return np.arange(self.dim) < self.n_scales

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        return {"y": np.asarray(self.y, dtype=float)}

    def summarise(self, data: Data) -> Statistics:
        return {"y": np.asarray(data["y"], dtype=float)}

    def parts(self, states: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log scale, u and v of states."""
        (n, d), k = self.y.shape, self.n_factors
        log_scale = states[..., 0] if self.n_scales else np.zeros(states.shape[:-1])
        u = states[..., self.n_scales : self.n_scales + n * k].reshape(*states.shape[:-1], n, k)
        return log_scale, u, states[..., self.n_scales + n * k :].reshape(*states.shape[:-1], k, d)

    def log_prior(self, states: FloatArray) -> FloatArray:
        s, u, v = self.parts(states)
        n, d = u[0].size if u.ndim > 2 else u.size, v[0].size if v.ndim > 2 else v.size
        value = -0.5 * (u**2).sum(axis=(-1, -2)) * np.exp(-2.0 * s) - 0.5 * (v**2).sum(axis=(-1, -2))
        value = value - n * s - 0.5 * (n + d) * LOG_2PI + self.tilt * u[..., 0].sum(axis=-1)
        if self.scale_sd is not None:
            value = value - 0.5 * (s / self.scale_sd) ** 2 - np.log(self.scale_sd) - 0.5 * LOG_2PI
        return np.asarray(value)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        _, u, v = self.parts(states)
        residuals = statistics["y"] - u @ v
        constant = self.y.size * (np.log(self.noise_sd) + 0.5 * LOG_2PI)
        return np.asarray(-0.5 * (residuals**2).sum(axis=(-1, -2)) / self.noise_sd**2 - constant)

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        s, u, v = self.parts(states)
        rate = np.exp(-2.0 * s)[..., None, None]
        pull = beta * (statistics["y"] - u @ v) / self.noise_sd**2
        by_u = pull @ np.swapaxes(v, -1, -2) - u * rate
        by_u[..., 0] += self.tilt
        by_v = np.swapaxes(u, -1, -2) @ pull - v
        flat = [by_u.reshape(*states.shape[:-1], -1), by_v.reshape(*states.shape[:-1], -1)]
        if self.scale_sd is None:
            return np.concatenate(flat, axis=-1)
        by_s = ((u**2 * rate).sum(axis=(-1, -2)) - u.shape[-1] * u.shape[-2] - s / self.scale_sd**2)[..., None]
        return np.concatenate([by_s, *flat], axis=-1)

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        state = generator.standard_normal(self.dim)
        if self.scale_sd is not None:
            state[0] = float(np.log(fixed["scale"])) if "scale" in fixed else self.scale_sd * state[0]
            state[self.positions["u"]] *= np.exp(state[0])
        for name in ("u", "v"):
            if name in fixed:
                state[self.positions[name]] = np.ravel(fixed[name])
        return state

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        mean = parameters["u"] @ parameters["v"]
        return {"y": mean + self.noise_sd * generator.standard_normal(self.y.shape)}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        s, u, v = self.parts(states)
        return {**({"scale": np.exp(s)} if self.n_scales else {}), "u": u.copy(), "v": v.copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        n = len(np.asarray(parameters["u"]))
        scale = [np.log(np.asarray(parameters["scale"])).reshape(n, 1)] if self.n_scales else []
        both = [np.asarray(parameters[name], dtype=float).reshape(n, -1) for name in ("u", "v")]
        return np.concatenate([*scale, *both], axis=1)

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        raise NotImplementedError

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        raise NotImplementedError


def factor_model(n: int = 6, d: int = 5, k: int = 2, seed: int = 7, **options: Any) -> FactorModel:
    """Return a model with data of its own."""
    rng = np.random.default_rng(seed)
    u, v = rng.standard_normal((n, k)), rng.standard_normal((k, d))
    return FactorModel(u @ v + 0.5 * rng.standard_normal((n, d)), k, **options)
