"""Three linear Gaussian models: a normal mean, a linear regression, a hierarchy with known scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Model
from bread.paths.mixture import MixtureReference, Reference
from tests.models.reference.kernels import AutoregressiveKernel, ReferenceKernel
from tests.models.reference.models.gaussian import LOG_2PI, LinearGaussianModel


@dataclass(frozen=True, eq=False)
class NormalMean(LinearGaussianModel):
    """Mean of normal data: mean ~ N(prior_mean, prior_sd^2), y_i ~ N(mean, noise_sd^2).

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data.
    prior_mean, prior_sd, noise_sd : float
        Known constants.
    kernel : kernel
        `AutoregressiveKernel` or `HMCKernel`.
    """

    y: FloatArray
    prior_mean: float = 0.0
    prior_sd: float = 1.0
    noise_sd: float = 1.0
    kernel: ReferenceKernel = AutoregressiveKernel()  # noqa: RUF009  (a frozen value)
    per_observation: ClassVar[tuple[str, ...]] = ("y",)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """One coordinate."""
        return ("mean",)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The mean."""
        return {"mean": ()}

    @cached_property
    def prior_location(self) -> FloatArray:
        """Prior mean, shape (1,)."""
        return np.array([float(self.prior_mean)])

    @cached_property
    def prior_covariance(self) -> FloatArray:
        """Prior variance, shape (1, 1)."""
        return np.array([[float(self.prior_sd) ** 2]])

    @cached_property
    def design(self) -> FloatArray:
        """Ones."""
        return np.ones((len(self.y), 1))

    @cached_property
    def noise(self) -> FloatArray:
        """The noise of every observation."""
        return np.full(len(self.y), float(self.noise_sd))

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the mean from its prior."""
        drawn = self.prior_mean + self.prior_sd * generator.standard_normal(1)
        return np.array([float(fixed["mean"])]) if "mean" in fixed else drawn

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the mean."""
        return {"mean": states[:, 0].copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the mean as a column."""
        return np.asarray(parameters["mean"], dtype=float)[:, None]


@dataclass(frozen=True, eq=False)
class LinearRegression(LinearGaussianModel):
    """Regression with known noise: coefficients_j ~ N(0, prior_sd^2), y ~ N(x @ coefficients, noise_sd^2).

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data.
    x : ndarray, shape (n_observations, n_predictors)
        Covariates.
    prior_sd, noise_sd : float
        Known constants.
    kernel : kernel
        `AutoregressiveKernel` or `HMCKernel`.
    """

    y: FloatArray
    x: FloatArray
    prior_sd: float = 1.0
    noise_sd: float = 1.0
    kernel: ReferenceKernel = AutoregressiveKernel()  # noqa: RUF009  (a frozen value)
    per_observation: ClassVar[tuple[str, ...]] = ("y", "x")

    @property
    def coordinates(self) -> tuple[str, ...]:
        """One coordinate a predictor."""
        return tuple(f"coefficients[{j}]" for j in range(self.x.shape[1]))

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The coefficients."""
        return {"coefficients": ("predictor",)}

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Numbers of observations and predictors."""
        return {"observation": np.arange(self.x.shape[0]), "predictor": np.arange(self.x.shape[1])}

    @property
    def constant_data(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """The covariates."""
        return {"x": (("observation", "predictor"), self.x)}

    @cached_property
    def prior_location(self) -> FloatArray:
        """Zeros."""
        return np.zeros(self.x.shape[1])

    @cached_property
    def prior_covariance(self) -> FloatArray:
        """Prior variances on the diagonal."""
        return np.eye(self.x.shape[1]) * float(self.prior_sd) ** 2

    @cached_property
    def design(self) -> FloatArray:
        """The covariates."""
        return np.ascontiguousarray(self.x, dtype=float)

    @cached_property
    def noise(self) -> FloatArray:
        """The noise of every observation."""
        return np.full(len(self.y), float(self.noise_sd))

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the coefficients from their prior."""
        drawn = np.asarray(self.prior_sd * generator.standard_normal(self.x.shape[1]))
        return np.array(fixed["coefficients"], dtype=float) if "coefficients" in fixed else drawn

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the coefficients."""
        return {"coefficients": states.copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the coefficients."""
        return np.array(parameters["coefficients"], dtype=float)


@dataclass(frozen=True, eq=False)
class HierarchicalNormal(LinearGaussianModel):
    """Groups with known scales: mu ~ N(prior_mean, prior_sd^2), group_mean_j ~ N(mu, group_sd^2), one number a group.

    y_j ~ N(group_mean_j, noise_sd_j^2). The coordinates are mu and the group means (the centred form), which the prior
    correlates.

    Parameters
    ----------
    y : ndarray, shape (n_groups,)
        The real data, one number a group.
    noise_sd : ndarray, shape (n_groups,)
        Known standard deviation of each number.
    prior_mean, prior_sd, group_sd : float
        Known constants.
    kernel : kernel
        `AutoregressiveKernel` or `HMCKernel`.
    """

    hyperparameter_names: ClassVar[tuple[str, ...] | None] = ("mu",)

    y: FloatArray
    noise_sd: FloatArray
    prior_mean: float = 0.0
    prior_sd: float = 1.0
    group_sd: float = 1.0
    kernel: ReferenceKernel = AutoregressiveKernel()  # noqa: RUF009  (a frozen value)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Mu, then the group means."""
        return ("mu", *(f"group_mean[{j}]" for j in range(len(self.y))))

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Mu and the group means."""
        return {"mu": (), "group_mean": ("group",)}

    @property
    def observed(self) -> dict[str, tuple[str, ...]]:
        """One number a group."""
        return {"y": ("group",)}

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Numbers of the groups."""
        return {"group": np.arange(len(self.y))}

    @property
    def constant_data(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """The known scales of the data."""
        return {"noise_sd": (("group",), np.asarray(self.noise_sd, dtype=float))}

    @cached_property
    def prior_location(self) -> FloatArray:
        """The prior mean of mu, everywhere."""
        return np.full(1 + len(self.y), float(self.prior_mean))

    @cached_property
    def prior_covariance(self) -> FloatArray:
        """Var(mu) everywhere, plus the variance between groups."""
        own = np.diag([0.0] + [float(self.group_sd) ** 2] * len(self.y))
        return np.asarray(float(self.prior_sd) ** 2 + own)

    @cached_property
    def design(self) -> FloatArray:
        """Picks the group means."""
        return np.eye(1 + len(self.y))[1:]

    @cached_property
    def noise(self) -> FloatArray:
        """Known standard deviations."""
        return np.asarray(self.noise_sd, dtype=float)

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw mu, then the group means given mu."""
        drawn = generator.standard_normal(1 + len(self.y))
        mu = float(fixed["mu"]) if "mu" in fixed else self.prior_mean + self.prior_sd * drawn[0]
        groups = np.asarray(fixed["group_mean"]) if "group_mean" in fixed else mu + self.group_sd * drawn[1:]
        return np.concatenate([[mu], groups])

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return mu and the group means."""
        return {"mu": states[:, 0].copy(), "group_mean": states[:, 1:].copy()}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return mu and the group means side by side."""
        mu = np.asarray(parameters["mu"], dtype=float)[:, None]
        return np.concatenate([mu, np.asarray(parameters["group_mean"], dtype=float)], axis=1)

    def has_own_prior(self, names: Sequence[str]) -> bool:
        """Whether the prior of the named parameters is a factor: that of mu is, that of the group means is not."""
        return set(names) == {"mu"} or super().has_own_prior(names)

    def log_prior_of(self, names: Sequence[str], states: FloatArray) -> FloatArray:
        """Return log N(mu; prior_mean, prior_sd^2), or the whole log prior."""
        if set(names) != {"mu"}:
            return super().log_prior_of(names, states)
        standardised = (states[..., 0] - self.prior_mean) / self.prior_sd
        return np.asarray(-0.5 * standardised**2 - np.log(self.prior_sd) - 0.5 * LOG_2PI)

    def gradient_log_prior_of(self, names: Sequence[str], states: FloatArray) -> FloatArray:
        """Return its gradient, zero at the group means."""
        result = np.zeros(states.shape)
        result[..., 0] = (self.prior_mean - states[..., 0]) / self.prior_sd**2
        return result

    def localise(self, names: Sequence[str], reference: Reference) -> Model:
        """Return the model with another law of mu; under a normal one it is of the same kind, with closed forms."""
        if set(names) == {"mu"} and isinstance(reference, MixtureReference) and len(reference.components) == 1:
            law = reference.components[0]
            if law.degrees is None:
                unit = abs(float(law.standardise(law.mean + law.scale)[0]))  # standard deviations in one scale
                return replace(self, prior_mean=float(law.mean[0]), prior_sd=float(law.scale[0]) / unit)
        return super().localise(names, reference)
