"""Two models with corners: two mirrored modes, and a likelihood that is zero outside an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr, ndtr, ndtri

from bread.backends.base import Data, FloatArray
from tests.models.reference.arrays import Statistics
from tests.models.reference.hmc import HMCKernel
from tests.models.reference.kernels import ReferenceKernel
from tests.models.reference.models.location import (
    LocationModel,
    sample_log_evidence,
    sample_log_likelihood,
    tempered_normal,
)


@dataclass(frozen=True, eq=False)
class AbsoluteMean(LocationModel):
    """Two well separated modes: location ~ N(prior_mean, prior_sd^2), y_i ~ N(|location|, noise_sd^2).

    The modes are mirror images of unequal weight unless ``prior_mean`` is 0. A chain that has found one hardly ever
    leaves it, but annealed chains divide between them before they part.

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data.
    prior_mean, prior_sd, noise_sd : float
        Known constants.
    kernel : kernel
        `HMCKernel`; the tempered densities are not Gaussian.
    """

    y: FloatArray
    prior_mean: float = 0.2
    prior_sd: float = 1.0
    noise_sd: float = 0.3
    kernel: ReferenceKernel = HMCKernel()  # noqa: RUF009  (a frozen value)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log likelihood of normal data with mean |location|."""
        return sample_log_likelihood(np.abs(states[..., 0]), statistics, len(self.y), self.noise_sd)

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the gradient; zero likelihood part at the corner, location = 0."""
        location = states[..., 0]
        pull = np.sign(location) * (statistics["mean"] - np.abs(location))
        prior = (self.prior_mean - location) / self.prior_sd**2
        return np.asarray(prior + beta * len(self.y) / self.noise_sd**2 * pull)[..., None]

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw y given the location."""
        noise = self.noise_sd * generator.standard_normal(len(self.y))
        return {"y": np.abs(parameters["location"]) + noise}

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return the log of the sum over both signs of normal evidence times the mass on that side."""
        return np.asarray(np.logaddexp(*(part[0] for part in self._sides(statistics))))

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw a sign, then the distance from a normal density cut at 0, by inversion."""
        (log_plus, plus_mean, sd), (log_minus, minus_mean, _) = self._sides(statistics)
        is_plus = generator.random(n) < expit(log_plus - log_minus)
        mean = np.where(is_plus, plus_mean, minus_mean)
        uniforms = 1.0 - generator.random(n)
        distance = mean - sd * ndtri(uniforms * ndtr(mean / sd))
        return np.asarray(np.where(is_plus, distance, -distance))[:, None]

    def _sides(self, statistics: Statistics) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Return, for the plus and the minus side, log mass, and mean and sd of the uncut distance."""
        n, sides = len(self.y), []
        for sign in (1.0, -1.0):
            mean, sd = tempered_normal(1.0, statistics["mean"], n, self.noise_sd, sign * self.prior_mean, self.prior_sd)
            evidence = sample_log_evidence(statistics, n, self.noise_sd, sign * self.prior_mean, self.prior_sd)
            sides.append((np.asarray(evidence + log_ndtr(mean / sd)), mean, sd))
        return sides


@dataclass(frozen=True, eq=False)
class UniformLocation(LocationModel):
    """Zero likelihood at many prior draws: y_i ~ Uniform(location - half_width, location + half_width).

    Forward log weights are -inf (`Failure.ZERO_RATIO`) where the first draw does not fit all data, so that B is
    infinite at every number of temperatures.

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data, of range below twice the half width.
    half_width, prior_mean, prior_sd : float
        Known constants.
    kernel : kernel
        `HMCKernel`; the tempered densities are not Gaussian.
    """

    y: FloatArray
    half_width: float = 1.0
    prior_mean: float = 0.0
    prior_sd: float = 1.0
    kernel: ReferenceKernel = HMCKernel()  # noqa: RUF009  (a frozen value)

    def summarise(self, data: Data) -> Statistics:
        """Return the ends of the interval in which the likelihood is positive, each (rows,)."""
        y = np.asarray(data["y"], dtype=float)
        return {"lower": y.max(axis=-1) - self.half_width, "upper": y.min(axis=-1) + self.half_width}

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return -n log(2 half_width) inside the interval, -inf outside."""
        location = states[..., 0]
        is_inside = (location >= statistics["lower"]) & (location <= statistics["upper"])
        return np.asarray(np.where(is_inside, -len(self.y) * np.log(2.0 * self.half_width), -np.inf))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the gradient of the log prior."""
        return (self.prior_mean - states) / self.prior_sd**2

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw y given the location."""
        return {"y": parameters["location"] + self.half_width * generator.uniform(-1.0, 1.0, len(self.y))}

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return the log likelihood inside the interval + the log prior mass of the interval."""
        lower, upper = self._masses(statistics)
        return np.asarray(np.log(upper - lower) - len(self.y) * np.log(2.0 * self.half_width))

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw from the prior cut to the interval, by inversion."""
        lower, upper = self._masses(statistics)
        drawn = self.prior_mean + self.prior_sd * ndtri(lower + (upper - lower) * generator.random(n))
        inside: FloatArray = np.clip(drawn, statistics["lower"], statistics["upper"])
        return inside[:, None]

    def _masses(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        lower = ndtr((statistics["lower"] - self.prior_mean) / self.prior_sd)
        upper = ndtr((statistics["upper"] - self.prior_mean) / self.prior_sd)
        return np.asarray(lower), np.asarray(upper)
