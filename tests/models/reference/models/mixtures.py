"""Two components behind the data: with the label as a discrete coordinate, or summed out (a posterior of two modes)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from bread.backends.base import FloatArray
from tests.models.reference.arrays import Statistics
from tests.models.reference.hmc import HMCKernel
from tests.models.reference.kernels import AutoregressiveKernel, CompoundKernel, GibbsLabelKernel, ReferenceKernel
from tests.models.reference.models.location import (
    LocationModel,
    normal_log_density,
    sample_log_evidence,
    sample_log_likelihood,
    tempered_normal,
)


class TwoComponentModel(LocationModel):
    """Two components: label ~ Bernoulli(probability), y_i ~ N(location + shifts[label], noise_sds[label]^2).

    One label for all observations.
    """

    probability: float
    shifts: tuple[float, float]
    noise_sds: tuple[float, float]

    @property
    def log_weights(self) -> tuple[float, float]:
        """Log prior probabilities of the labels 0 and 1."""
        return float(np.log1p(-self.probability)), float(np.log(self.probability))

    def component_log_likelihood(self, label: int, location: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log likelihood given the label, of a location without the shift."""
        return sample_log_likelihood(location + self.shifts[label], statistics, len(self.y), self.noise_sds[label])

    def component_log_evidence(self, statistics: Statistics) -> FloatArray:
        """Return log prior probability + log evidence of each label, shape (2, rows)."""
        return np.stack(
            [
                self.log_weights[label]
                + sample_log_evidence(
                    statistics,
                    len(self.y),
                    self.noise_sds[label],
                    self.prior_mean + self.shifts[label],
                    self.prior_sd,
                )
                for label in (0, 1)
            ]
        )

    def component_normal(
        self, label: int, beta: float | FloatArray, statistics: Statistics
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and sd of the location without the shift, given the label, at ``beta``."""
        return tempered_normal(
            beta,
            statistics["mean"] - self.shifts[label],
            len(self.y),
            self.noise_sds[label],
            self.prior_mean,
            self.prior_sd,
        )

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return the log of the sum over both labels."""
        return np.asarray(np.logaddexp(*self.component_log_evidence(statistics)))

    def draw_labelled_posterior(
        self, statistics: Statistics, n: int, generator: Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw labels, and locations without the shift, from the exact posterior, each (n,)."""
        zero, one = self.component_log_evidence(statistics)
        labels = (generator.random(n) < expit(one - zero)).astype(float)
        normals = generator.standard_normal(n)
        locations = np.empty(n)
        for label in (0, 1):
            mean, sd = self.component_normal(label, 1.0, statistics)
            locations = np.where(labels == label, mean + sd * normals, locations)
        return labels, locations


@dataclass(frozen=True, eq=False)
class LabelMixture(TwoComponentModel):
    """Two components with the label as a discrete coordinate; exact evidence by enumeration.

    label ~ Bernoulli(probability), location ~ N(prior_mean + shifts[label], prior_sd^2), y_i ~ N(location,
    noise_sds[label]^2). The location includes the shift here, so that it depends on the label in the prior too.

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data.
    probability : float
        Prior probability of label 1.
    shifts : tuple of two floats
        What label 0 and label 1 add to the prior mean of the location.
    noise_sds : tuple of two floats
        Noise of either component.
    prior_mean, prior_sd : float
        Prior of the location.
    kernel : kernel
        A `CompoundKernel` with a `GibbsLabelKernel` and a kernel for the location; it is not reversible, and reverse
        chains run its parts in the opposite order.
    """

    label_index: ClassVar[int | None] = 0

    y: FloatArray
    probability: float = 0.3
    shifts: tuple[float, float] = (0.0, 1.5)
    noise_sds: tuple[float, float] = (1.0, 0.5)
    prior_mean: float = 0.0
    prior_sd: float = 1.0
    kernel: ReferenceKernel = CompoundKernel((GibbsLabelKernel(), AutoregressiveKernel()))  # noqa: RUF009

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The label, then the location."""
        return ("label", "location")

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The label and the location."""
        return {"label": (), "location": ()}

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return log prior of the label + log prior of the location; -inf where the label is neither 0 nor 1."""
        is_zero, is_one = states[..., 0] == 0.0, states[..., 0] == 1.0
        centre = self.prior_mean + np.where(is_one, self.shifts[1], self.shifts[0])
        zero, one = self.log_weights
        return np.where(is_one, one, np.where(is_zero, zero, -np.inf)) + normal_log_density(
            states[..., 1], centre, self.prior_sd
        )

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log likelihood of the component that the label names."""
        zero, one = (sample_log_likelihood(states[..., 1], statistics, len(self.y), sd) for sd in self.noise_sds)
        return np.where(states[..., 0] == 1.0, one, zero)

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the gradient for the location, zero for the label."""
        is_one = states[..., 0] == 1.0
        shift = np.where(is_one, self.shifts[1], self.shifts[0])
        precision = len(self.y) / np.where(is_one, self.noise_sds[1], self.noise_sds[0]) ** 2
        location = states[..., 1]
        gradient = np.zeros_like(states)
        gradient[..., 1] = (self.prior_mean + shift - location) / self.prior_sd**2
        gradient[..., 1] += beta * precision * (statistics["mean"] - location)
        return gradient

    def label_log_odds(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log odds of label 1 given the location at ``beta``."""
        zero, one = states.copy(), states.copy()
        zero[..., 0], one[..., 0] = 0.0, 1.0
        likelihood = self.log_likelihood(one, statistics) - self.log_likelihood(zero, statistics)
        return np.asarray(self.log_prior(one) - self.log_prior(zero) + beta * likelihood)

    def gaussian_targets(self, betas: FloatArray, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Return mean (n_betas, 2, rows, 1) and sd (n_betas, 2, 1, 1) of the location given the label."""
        column = np.asarray(betas, dtype=float)[:, None]
        moments = [self.component_normal(label, column, statistics) for label in (0, 1)]
        mean = np.stack([moment[0] + shift for moment, shift in zip(moments, self.shifts, strict=True)], axis=1)
        sd = np.stack([moment[1] for moment in moments], axis=1)
        return mean[..., None], sd[..., None]

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the label and the location from their priors."""
        label = float(fixed["label"]) if "label" in fixed else float(generator.random() < self.probability)
        drawn = self.prior_mean + self.shifts[int(label)] + self.prior_sd * generator.standard_normal()
        return np.array([label, fixed.get("location", drawn)], dtype=float)

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw y given label and location."""
        noise = self.noise_sds[int(parameters["label"])] * generator.standard_normal(len(self.y))
        return {"y": parameters["location"] + noise}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the label (whole numbers) and the location."""
        return {"label": np.rint(states[:, 0]).astype(np.int64), "location": states[:, 1].copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return label and location side by side."""
        label = np.asarray(parameters["label"], dtype=float)
        return np.stack([label, np.asarray(parameters["location"], dtype=float)], axis=1)

    def draw_tempered_of(self, beta: float, statistics: Statistics, generator: Generator) -> FloatArray:
        """Draw the label by its tempered evidence, and the location given the label, which is normal."""
        mean, sd = (values[0, :, 0, 0] for values in self.gaussian_targets(np.array([beta]), statistics))
        at = np.column_stack([[0.0, 1.0], mean])[:, None]  # density over normal density at the mean: the evidence
        density = self.log_prior(at)[:, 0] + beta * self.log_likelihood(at, statistics)[:, 0]
        zero, one = density - normal_log_density(mean, mean, sd)
        label = int(generator.random() < expit(one - zero))
        return np.array([label, mean[label] + sd[label] * generator.standard_normal()])

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw label and location from the exact posterior."""
        label, location = self.draw_labelled_posterior(statistics, n, generator)
        return np.stack([label, location + np.where(label == 1.0, self.shifts[1], self.shifts[0])], axis=1)


@dataclass(frozen=True, eq=False)
class MarginalMixture(TwoComponentModel):
    """Two components with the label summed out: a posterior of up to two modes, with exact evidence.

    The defaults are a narrow heavy mode (sd 0.01, nine tenths of the mass, for data that fit both alike) beside a wide
    light one: chains that anneal from the prior find the wide one.

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data.
    probability : float
        Prior probability of component 1, the wide one by default.
    shifts : tuple of two floats
        What either component adds to the location; the modes are as far apart.
    noise_sds : tuple of two floats
        Noise of either component.
    prior_mean, prior_sd : float
        Prior of the location.
    kernel : kernel
        `HMCKernel`; the tempered densities are not Gaussian.
    """

    y: FloatArray
    probability: float = 0.1
    shifts: tuple[float, float] = (0.0, 5.0)
    noise_sds: tuple[float, float] = (0.01, 1.0)
    prior_mean: float = 0.0
    prior_sd: float = 5.0
    kernel: ReferenceKernel = HMCKernel()  # noqa: RUF009  (a frozen value)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log of the mixture's likelihood."""
        return np.asarray(np.logaddexp(*self._terms(states, statistics)))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the components' gradients, weighted by their shares of the likelihood."""
        zero, one = self._terms(states, statistics)
        share = expit(one - zero)
        location = states[..., 0]
        slopes = [
            len(self.y) / self.noise_sds[label] ** 2 * (statistics["mean"] - self.shifts[label] - location)
            for label in (0, 1)
        ]
        likelihood = (1.0 - share) * slopes[0] + share * slopes[1]
        prior = (self.prior_mean - location) / self.prior_sd**2
        return np.asarray(prior + beta * likelihood)[..., None]

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw the label, then y."""
        label = int(generator.random() < self.probability)
        noise = self.noise_sds[label] * generator.standard_normal(len(self.y))
        return {"y": parameters["location"] + self.shifts[label] + noise}

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw the location from the exact posterior."""
        return self.draw_labelled_posterior(statistics, n, generator)[1][:, None]

    def _terms(self, states: FloatArray, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        location = states[..., 0]
        zero, one = self.log_weights
        return (
            zero + self.component_log_likelihood(0, location, statistics),
            one + self.component_log_likelihood(1, location, statistics),
        )
