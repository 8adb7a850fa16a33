"""Effects of two unknown spreads, seen through one design: given both all laws are normal, but no basis fits all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from scipy.special import logsumexp

from bread.backends.base import Data, FloatArray
from bread.paths.kinds import ReferencePath
from tests.models.reference import HMCKernel, ReferenceKernel, ReferenceModel
from tests.models.reference.arrays import Statistics, apply_matrix
from tests.models.reference.models.location import normal_log_density

N_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class TwoScales(ReferenceModel):
    """log(spread_g) ~ N(0, prior_sd^2), effect_j ~ N(0, spread_{of(j)}^2), y ~ N(design effect, noise_sd^2)."""

    hyperparameter_names: ClassVar[tuple[str, ...] | None] = ("spread",)

    y: FloatArray
    design: FloatArray
    of: NDArray[np.int64]
    noise_sd: float = 0.7
    prior_sd: float = 1.0
    kernel: ReferenceKernel = HMCKernel(5)  # noqa: RUF009  (a frozen value)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("spread_log__[0]", "spread_log__[1]", *(f"effect[{j}]" for j in range(len(self.of))))

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        return {"spread": ("group",), "effect": ("unit",)}

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        return {"observation": np.arange(len(self.y)), "group": np.arange(2), "unit": np.arange(len(self.of))}

    @property
    def transformed(self) -> NDArray[np.bool_]:
        return np.arange(self.dim) < 2

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        return {"y": np.asarray(self.y, dtype=float)}

    def summarise(self, data: Data) -> Statistics:
        return {"y": np.asarray(data["y"], dtype=float)}

    def log_prior(self, states: FloatArray) -> FloatArray:
        u = np.ascontiguousarray(states[..., :2])
        effects = normal_log_density(states[..., 2:], 0.0, np.exp(u[..., self.of])).sum(axis=-1)
        return np.asarray(normal_log_density(u, 0.0, self.prior_sd).sum(axis=-1) + effects)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        fitted = apply_matrix(self.design, states[..., 2:])
        return np.asarray(normal_log_density(statistics["y"], fitted, self.noise_sd).sum(axis=-1))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        u, effects = np.ascontiguousarray(states[..., :2]), np.ascontiguousarray(states[..., 2:])
        precision = np.exp(-2.0 * u[..., self.of])
        pull = (statistics["y"] - apply_matrix(self.design, effects)) / self.noise_sd**2
        each = effects**2 * precision - 1.0
        along = -u / self.prior_sd**2 + np.stack([each[..., self.of == g].sum(axis=-1) for g in (0, 1)], axis=-1)
        across = beta * apply_matrix(self.design.T, pull) - effects * precision
        return np.concatenate([along, across], axis=-1)

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        drawn = generator.standard_normal(self.dim)
        u = np.log(np.asarray(fixed["spread"])) if "spread" in fixed else self.prior_sd * drawn[:2]
        effects = np.asarray(fixed["effect"]) if "effect" in fixed else np.exp(u[self.of]) * drawn[2:]
        return np.concatenate([u, effects])

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        noise = self.noise_sd * generator.standard_normal(len(self.y))
        return {"y": apply_matrix(self.design, parameters["effect"]) + noise}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        return {"spread": np.exp(np.ascontiguousarray(states[:, :2])), "effect": states[:, 2:].copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        u = np.log(np.asarray(parameters["spread"], dtype=float))
        return np.concatenate([u, np.asarray(parameters["effect"], dtype=float)], axis=1)

    # ---- exact answers, by a quadrature over the two log spreads ------------------------------------------------

    @property
    def grid(self) -> FloatArray:
        axis = self.prior_sd * np.linspace(-6.0, 6.0, 121)
        return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def given(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (m, unit) and covariance (m, unit, unit) of the effects at rows of u, and log p(y | u), (m,)."""
        information = self.design.T @ self.design / self.noise_sd**2
        prior = np.exp(-2.0 * u[:, self.of])
        precision = prior[:, :, None] * np.eye(len(self.of)) + information
        covariance = np.linalg.inv(precision)
        score = self.design.T @ y / self.noise_sd**2
        mean = covariance @ score
        log_evidence = normal_log_density(y, 0.0, self.noise_sd).sum() + 0.5 * mean @ score
        log_evidence = log_evidence + 0.5 * np.log(prior).sum(axis=1) - 0.5 * np.linalg.slogdet(precision)[1]
        return mean, covariance, log_evidence

    def _log_joint(self, y: FloatArray) -> FloatArray:
        return self.given(self.grid, y)[2] + normal_log_density(self.grid, 0.0, self.prior_sd).sum(axis=1)

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        cell = (0.1 * self.prior_sd) ** 2
        return np.array([logsumexp(self._log_joint(y)) + np.log(cell) for y in statistics["y"]])

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        (y,) = statistics["y"]
        joint = self._log_joint(y)
        weights = np.exp(joint - logsumexp(joint))
        u = self.grid[generator.choice(len(weights), n, p=weights)]
        u = u + 0.1 * self.prior_sd * (generator.random(u.shape) - 0.5)
        mean, covariance, _ = self.given(u, y)
        normals = generator.standard_normal(mean.shape)
        return np.column_stack([u, mean + np.einsum("mij,mj->mi", np.linalg.cholesky(covariance), normals)])


def _made_up() -> TwoScales:
    rng = default_rng(7)
    of = np.repeat([0, 1], 5)
    design = rng.normal(size=(14, 10)) + 0.8 * rng.normal(size=(14, 1))  # correlated: no basis fits all spreads
    effects = np.where(of == 0, 0.5, 0.3) * rng.standard_normal(10)
    return TwoScales(design @ effects + 1.2 * rng.standard_normal(14), design, of, noise_sd=1.2, prior_sd=1.2)


TWO_SCALES = _made_up()
OTHER = TWO_SCALES.draw_data({"effect": np.repeat([0.2, 1.5], 5) * default_rng(8).normal(size=10)}, default_rng(9))


def exact_draws(data: Data, n: int = N_DRAWS) -> FloatArray:
    """Exact draws of the posterior."""
    return TWO_SCALES.draw_posterior(data, n, default_rng(1))


def divergence(data: Data, reference: Any) -> tuple[float, float]:
    """Jeffreys divergence (nats) between a reference and the exact posterior, and its standard error."""
    posterior, path = TWO_SCALES.condition(data), ReferencePath(reference)
    at_end = posterior.log_ratio(path, exact_draws(data))
    at_start = posterior.log_ratio(path, reference.sample(N_DRAWS, default_rng(2)))
    return float(at_end.mean() - at_start.mean()), float(np.sqrt((at_end.var() + at_start.var()) / N_DRAWS))
