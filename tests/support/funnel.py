"""A funnel for tests: effects of unknown spread, seen through a design. Given the spread all laws are normal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from scipy.special import logsumexp

from bread.backends.base import Data, FloatArray
from bread.paths.mixture import Component, MixtureReference
from bread.paths.nested import NestedReference
from tests.models.reference import HMCKernel, ReferenceKernel, ReferenceModel
from tests.models.reference.arrays import Statistics, apply_matrix
from tests.models.reference.models.location import normal_log_density

GRID, WIDTH = 3001, 9.0  # points of quadratures over the log spread; to so many prior standard deviations


@dataclass(frozen=True, eq=False)
class Funnel(ReferenceModel):
    """log(spread) ~ N(prior_mean, prior_sd^2), effect_j ~ N(0, (unit_j spread)^2), y ~ N(design effect, noise_sd^2).

    Given the spread the effects are normal, with precision ``diag((unit spread)^-2)`` plus a matrix of the design: the
    matrix that makes them independent is the same for every spread, and no rotation. The rest is a quadrature over one
    coordinate.
    """

    hyperparameter_names: ClassVar[tuple[str, ...] | None] = ("spread",)

    y: FloatArray
    design: FloatArray
    noise_sd: FloatArray
    unit: FloatArray
    prior_mean: float = 0.0
    prior_sd: float = 1.0
    kernel: ReferenceKernel = HMCKernel(5)  # noqa: RUF009  (a frozen value)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("spread_log__", *(f"effect[{j}]" for j in range(self.design.shape[1])))

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        return {"spread": (), "effect": ("group",)}

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        return {"observation": np.arange(len(self.y)), "group": np.arange(self.design.shape[1])}

    @property
    def transformed(self) -> NDArray[np.bool_]:
        return np.arange(self.dim) == 0

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        return {"y": np.asarray(self.y, dtype=float)}

    def summarise(self, data: Data) -> Statistics:
        return {"y": np.asarray(data["y"], dtype=float)}

    def log_prior(self, states: FloatArray) -> FloatArray:
        u = np.ascontiguousarray(states[..., 0])
        effects = normal_log_density(states[..., 1:], 0.0, self.unit * np.exp(u)[..., None]).sum(axis=-1)
        return np.asarray(normal_log_density(u, self.prior_mean, self.prior_sd) + effects)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        fitted = apply_matrix(self.design, states[..., 1:])
        return np.asarray(normal_log_density(statistics["y"], fitted, self.noise_sd).sum(axis=-1))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        u, effects = np.ascontiguousarray(states[..., 0]), np.ascontiguousarray(states[..., 1:])
        precision = np.exp(-2.0 * u)[..., None] / self.unit**2
        pull = (statistics["y"] - apply_matrix(self.design, effects)) / self.noise_sd**2
        along = (self.prior_mean - u) / self.prior_sd**2 + (effects**2 * precision - 1.0).sum(axis=-1)
        across = beta * apply_matrix(self.design.T, pull) - effects * precision
        return np.concatenate([along[..., None], across], axis=-1)

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        drawn = generator.standard_normal(self.dim)
        u = float(np.log(fixed["spread"])) if "spread" in fixed else self.prior_mean + self.prior_sd * drawn[0]
        effects = np.asarray(fixed["effect"]) if "effect" in fixed else np.exp(u) * self.unit * drawn[1:]
        return np.concatenate([[u], effects])

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        noise = self.noise_sd * generator.standard_normal(len(self.y))
        return {"y": apply_matrix(self.design, parameters["effect"]) + noise}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        return {"spread": np.exp(np.ascontiguousarray(states[:, 0])), "effect": states[:, 1:].copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        u = np.log(np.asarray(parameters["spread"], dtype=float))[:, None]
        return np.concatenate([u, np.asarray(parameters["effect"], dtype=float)], axis=1)

    # ---- exact answers ----------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """U, s and V' of the design in units, over the noise; more observations than effects, or as many."""
        return np.linalg.svd(self.design * self.unit / self.noise_sd[:, None])

    @cached_property
    def grid(self) -> FloatArray:
        return np.linspace(self.prior_mean - WIDTH * self.prior_sd, self.prior_mean + WIDTH * self.prior_sd, GRID)

    def _log_joint(self, y: FloatArray) -> FloatArray:
        """log p(u, y) on the grid, shape (row, grid)."""
        left, s, _ = self.parts
        seen = (y / self.noise_sd) @ left
        result = normal_log_density(self.grid, self.prior_mean, self.prior_sd) - np.log(self.noise_sd).sum()
        for k in range(len(self.y)):
            s_k = s[k] if k < len(s) else 0.0
            result = result + normal_log_density(seen[:, k, None], 0.0, np.sqrt(1.0 + s_k**2 * np.exp(2 * self.grid)))
        return result

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        joint = self._log_joint(statistics["y"])
        return np.asarray(logsumexp(joint, axis=1) + np.log(self.grid[1] - self.grid[0]))

    def marginal(self, y: FloatArray) -> FloatArray:
        """Masses of u at the points of the grid, shape (row, grid)."""
        joint = self._log_joint(y)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def given(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean, shape (u, effect), and covariance, (u, effect, effect), of the effects given u and one data set."""
        left, s, right = self.parts
        variance = 1.0 / (np.exp(-2.0 * u)[:, None] + s**2)
        mean = variance * s * ((y / self.noise_sd) @ left)[: len(s)]
        colour = right * self.unit
        return mean @ colour, np.einsum("ki,uk,kj->uij", colour, variance, colour)

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        y = statistics["y"]
        cumulative = np.cumsum(self.marginal(y)[0])
        u = np.interp(generator.random(n), cumulative, self.grid)
        mean, covariance = self.given(u, y[0])
        normals = generator.standard_normal(mean.shape)
        return np.column_stack([u, mean + np.einsum("uij,uj->ui", np.linalg.cholesky(covariance), normals)])

    # ---- a reference of every data set --------------------------------------------------------------------------

    def references(self, data: Data, width: float, truth: FloatArray | None = None) -> list[NestedReference]:
        """Return, from formulae, a reference for each row of data, ``width`` times as wide as the posterior.

        ``truth`` moves it to the exact draw (a defect, for negative controls).
        """
        y, (left, s, right) = np.asarray(data["y"], dtype=float), self.parts
        matrix = right / self.unit
        knots = np.linspace(self.prior_mean - 4.0 * self.prior_sd, self.prior_mean + 4.0 * self.prior_sd, 25)
        mass = self.marginal(y)
        centre = mass @ self.grid
        deviation = width * np.sqrt(mass @ self.grid**2 - centre**2)
        variance = 1.0 / (np.exp(-2.0 * knots)[:, None] + s**2)
        variance_slope = 2.0 * variance**2 * np.exp(-2.0 * knots)[:, None]
        scale, scale_slope = np.log(width) + 0.5 * np.log(variance), 0.5 * variance_slope / variance
        found = []
        for row, seen in enumerate(((y / self.noise_sd) @ left)[:, : len(s)]):
            mean, middle = variance * s * seen, centre[[row]]
            if truth is not None:
                middle = truth[row, :1]
                mean = mean + matrix @ truth[row, 1:] - [np.interp(middle[0], knots, column) for column in mean.T]
            law = MixtureReference((Component(middle, deviation[[row]]),), np.ones(1))
            values = np.stack([mean, scale], axis=1)
            slopes = np.stack([variance_slope * s * seen, scale_slope], axis=1)
            found.append(NestedReference(0, law, np.zeros(len(s)), matrix, knots, values, slopes))
        return found


DESIGN = np.array(
    [[1.0, 0.3, 0.0, 0.0], [0.0, 1.0, -0.4, 0.0], [0.2, 0.0, 1.0, 0.0], [0.0, 0.0, 0.5, 1.0], [0.6, 0.0, 0.0, 1.0]]
)
FUNNEL = Funnel(
    np.array([1.9, -0.4, 0.7, 0.2, 1.1]), DESIGN, np.array([1.0, 0.7, 1.3, 0.9, 1.1]), np.array([1.0, 1.6, 0.7, 1.1]),
    prior_mean=-0.5, prior_sd=1.5,
)  # fmt: skip
SMALL = Funnel(
    np.array([1.4, -0.3]), np.array([[1.0, 0.4], [-0.2, 1.0]]), np.array([1.0, 0.8]), np.array([0.8, 1.5]),
    prior_mean=-0.2, prior_sd=0.8,
)  # fmt: skip


@dataclass(frozen=True)
class RowReferences:
    """A reference for every row of states, (..., row, dim)."""

    rows: list[NestedReference]
    label: str = "one a row"

    def sample_rows(self, seeds):
        return np.array([row.sample(1, default_rng(seed))[0] for row, seed in zip(self.rows, seeds, strict=True)])

    def log_density(self, states):
        return self._each(states)[0]

    def gradient(self, states):
        return self._each(states)[1]

    def _each(self, states):
        value, gradient = np.empty(states.shape[:-1]), np.empty(states.shape)
        for place in np.ndindex(value.shape):
            value[place], gradient[place] = self.rows[place[-1]].value_and_gradient(states[place])
        return value, gradient
