"""Linear Gaussian models: prior N(m0, C0), data N(H theta, diag(sd^2)); every tempered density is Gaussian."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray
from tests.models.reference.arrays import Statistics, apply_matrix, row_dot
from tests.models.reference.model import ReferenceModel

LOG_2PI = float(np.log(2.0 * np.pi))


class LinearGaussianModel(ReferenceModel):
    """Formulae of a linear Gaussian model with known scales.

    The log likelihood is c + b' theta - theta' A theta / 2 with A = H' D^-1 H known and b = H' D^-1 y, so that a data
    set is two statistics, and the tempered density has precision C0^-1 + beta A.
    """

    y: FloatArray

    @property
    @abstractmethod
    def prior_location(self) -> FloatArray:
        """Prior mean of the state, shape (dim,)."""

    @property
    @abstractmethod
    def prior_covariance(self) -> FloatArray:
        """Prior covariance of the state, shape (dim, dim)."""

    @property
    @abstractmethod
    def design(self) -> FloatArray:
        """Matrix H that maps a state to the mean of the data, shape (n_observations, dim)."""

    @property
    @abstractmethod
    def noise(self) -> FloatArray:
        """Known standard deviation of each observation, shape (n_observations,)."""

    @cached_property
    def prior_precision(self) -> FloatArray:
        """Inverse of the prior covariance."""
        return np.asarray(np.linalg.inv(self.prior_covariance))

    @cached_property
    def information(self) -> FloatArray:
        """A = H' D^-1 H, shape (dim, dim)."""
        scaled = self.design / self.noise[:, None]
        return np.asarray(scaled.T @ scaled)

    @cached_property
    def log_normaliser(self) -> float:
        """-(n log 2 pi + sum log sd^2) / 2, the part of the log likelihood that no data change."""
        return float(-0.5 * len(self.noise) * LOG_2PI - np.log(self.noise).sum())

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        """The real data, ``y``."""
        return {"y": np.asarray(self.y, dtype=float)}

    def summarise(self, data: Data) -> Statistics:
        """Return ``constant`` (rows,) and ``linear`` (rows, dim)."""
        residual = np.asarray(data["y"], dtype=float) / self.noise
        weighted = np.ascontiguousarray((self.design / self.noise[:, None]).T)
        return {
            "constant": self.log_normaliser - 0.5 * row_dot(residual, residual),
            "linear": apply_matrix(weighted, residual),
        }

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return log N(theta; m0, C0)."""
        offset = states - self.prior_location
        return self._log_prior_normaliser - 0.5 * row_dot(offset, apply_matrix(self.prior_precision, offset))

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return c + b' theta - theta' A theta / 2."""
        slope = statistics["linear"] - 0.5 * apply_matrix(self.information, states)
        return np.asarray(statistics["constant"] + row_dot(slope, states))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return C0^-1 m0 + beta b - (C0^-1 + beta A) theta."""
        precision = self.prior_precision + beta * self.information
        return np.asarray(self._prior_linear + beta * statistics["linear"] - apply_matrix(precision, states))

    def gaussian_targets(self, betas: FloatArray, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Return mean (n_betas, 1, rows, dim) and Cholesky factor (n_betas, 1, dim, dim)."""
        column = np.asarray(betas, dtype=float)[:, None, None]
        covariance = np.linalg.inv(self.prior_precision + column * self.information)
        mean = apply_matrix(covariance[:, None], self._prior_linear + column * statistics["linear"])
        return mean[:, None], np.linalg.cholesky(covariance)[:, None]

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw from N(mean, covariance) of the posterior."""
        mean, cholesky = self.gaussian_targets(np.array([1.0]), statistics)
        return np.asarray(mean[0, 0] + apply_matrix(cholesky[0, 0], generator.standard_normal((n, self.dim))))

    def draw_tempered_of(self, beta: float, statistics: Statistics, generator: Generator) -> FloatArray:
        """Draw from N(mean, covariance) of the tempered law."""
        mean, cholesky = self.gaussian_targets(np.array([beta]), statistics)
        return np.asarray(mean[0, 0, 0] + cholesky[0, 0] @ generator.standard_normal(self.dim))

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return log N(y; H m0, H C0 H' + D), by completing the square."""
        precision = self.prior_precision + self.information
        right = self._prior_linear + statistics["linear"]
        mean = apply_matrix(np.linalg.inv(precision), right)
        log_determinants = np.linalg.slogdet(self.prior_precision)[1] - np.linalg.slogdet(precision)[1]
        prior_square = self.prior_location @ self._prior_linear
        return np.asarray(statistics["constant"] + 0.5 * (log_determinants - prior_square + row_dot(right, mean)))

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw y ~ N(H theta, diag(sd^2))."""
        return {"y": self.draw_data_rows(parameters, 1, generator)["y"][0]}

    def draw_data_rows(
        self, parameters: Mapping[str, NDArray[Any]], n: int, generator: Generator
    ) -> dict[str, NDArray[Any]]:
        """Draw ``n`` data sets at once."""
        state = self.unconstrain({name: value[None] for name, value in parameters.items()})
        mean = apply_matrix(self.design, state)[0]
        return {"y": mean + self.noise * generator.standard_normal((n, len(self.noise)))}

    @cached_property
    def _prior_linear(self) -> FloatArray:
        return np.asarray(self.prior_precision @ self.prior_location)

    @cached_property
    def _log_prior_normaliser(self) -> float:
        return float(0.5 * np.linalg.slogdet(self.prior_precision)[1] - 0.5 * self.dim * LOG_2PI)
