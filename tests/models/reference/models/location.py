"""What the models of one location share: the parameter's names and the likelihood of normal data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray
from tests.models.reference.arrays import Statistics
from tests.models.reference.model import ReferenceModel
from tests.models.reference.models.gaussian import LOG_2PI


class LocationModel(ReferenceModel):
    """A model of data ``y`` with one continuous parameter, location ~ N(prior_mean, prior_sd^2)."""

    y: FloatArray
    prior_mean: float
    prior_sd: float

    @property
    def coordinates(self) -> tuple[str, ...]:
        """One coordinate."""
        return ("location",)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The location."""
        return {"location": ()}

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        """The real data, ``y``."""
        return {"y": np.asarray(self.y, dtype=float)}

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return log N(location; prior_mean, prior_sd^2)."""
        return normal_log_density(states[..., -1], self.prior_mean, self.prior_sd)

    def summarise(self, data: Data) -> Statistics:
        """Return mean and sum of squares about it, each (rows,)."""
        y = np.asarray(data["y"], dtype=float)
        mean = y.mean(axis=-1)
        return {"mean": mean, "squares": ((y - mean[:, None]) ** 2).sum(axis=-1)}

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the location from its prior."""
        drawn = self.prior_mean + self.prior_sd * generator.standard_normal(1)
        return np.array([float(fixed["location"])]) if "location" in fixed else drawn

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the location."""
        return {"location": states[:, -1].copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the location as a column."""
        return np.asarray(parameters["location"], dtype=float)[:, None]


def normal_log_density(values: FloatArray, mean: float | FloatArray, sd: float | FloatArray) -> FloatArray:
    """Return log N(values; mean, sd^2)."""
    return np.asarray(-0.5 * ((values - mean) / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI)


def sample_log_likelihood(location: FloatArray, statistics: Statistics, n: int, sd: float) -> FloatArray:
    """Return the log likelihood of ``n`` normal observations with this mean, from their mean and squares."""
    squares = statistics["squares"] + n * (statistics["mean"] - location) ** 2
    return np.asarray(-0.5 * squares / sd**2 - n * (np.log(sd) + 0.5 * LOG_2PI))


def sample_log_evidence(statistics: Statistics, n: int, sd: float, mean: float, mean_sd: float) -> FloatArray:
    """Return the log evidence of ``n`` normal observations whose mean is N(mean, mean_sd^2)."""
    centred = sample_log_likelihood(statistics["mean"], statistics, n, sd)
    spread = np.sqrt(mean_sd**2 + sd**2 / n)
    peak = 0.5 * LOG_2PI + np.log(sd / np.sqrt(n))
    return np.asarray(centred + peak + normal_log_density(statistics["mean"], mean, spread))


def tempered_normal(
    beta: float | FloatArray, data_mean: FloatArray, n: int, sd: float, mean: float, mean_sd: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and sd of N(mean, mean_sd^2) times the likelihood to the power ``beta``."""
    precision = 1.0 / mean_sd**2 + np.asarray(beta) * n / sd**2
    centre = (mean / mean_sd**2 + np.asarray(beta) * n / sd**2 * data_mean) / precision
    return np.asarray(centre), np.asarray(1.0 / np.sqrt(precision))
