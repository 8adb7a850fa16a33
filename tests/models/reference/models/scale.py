"""Unknown scale of normal data under a half-normal prior: the ordinary model whose usual bound is infinite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln, kve
from scipy.stats import geninvgauss

from bread.backends.base import Data, FloatArray
from tests.models.reference.arrays import Statistics
from tests.models.reference.hmc import HMCKernel
from tests.models.reference.kernels import ReferenceKernel
from tests.models.reference.model import ReferenceModel
from tests.models.reference.models.gaussian import LOG_2PI

LOG_2_OVER_PI = float(np.log(2.0 / np.pi))


@dataclass(frozen=True, eq=False)
class NormalScale(ReferenceModel):
    """Scale of normal data: scale ~ HalfNormal(prior_scale), y_i ~ N(mean, scale^2) with a known mean.

    The coordinate is log(scale), its Jacobian part of the prior. The prior mean of the log likelihood is -infinity,
    because that of 1 / scale^2 is infinite, and so is B along the usual path at any number of temperatures. The
    posterior of scale^2 is generalised inverse Gaussian (Jorgensen 1982), so that evidence and draws are exact.

    Parameters
    ----------
    y : ndarray, shape (n_observations,)
        The real data.
    mean, prior_scale : float
        Known constants.
    kernel : kernel
        `HMCKernel`; the tempered densities are not Gaussian.
    """

    y: FloatArray
    mean: float = 0.0
    prior_scale: float = 1.0
    kernel: ReferenceKernel = HMCKernel()  # noqa: RUF009  (a frozen value)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The log scale."""
        return ("scale_log__",)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The scale."""
        return {"scale": ()}

    @property
    def transformed(self) -> NDArray[np.bool_]:
        """The coordinate is a logarithm."""
        return np.ones(1, dtype=bool)

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        """The real data, ``y``."""
        return {"y": np.asarray(self.y, dtype=float)}

    def summarise(self, data: Data) -> Statistics:
        """Return the sum of squares about the known mean, (rows,)."""
        return {"squares": ((np.asarray(data["y"], dtype=float) - self.mean) ** 2).sum(axis=-1)}

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return the log half-normal density plus the log Jacobian, log(scale)."""
        log_scale = np.ascontiguousarray(states[..., 0])
        standardised = np.exp(log_scale) / self.prior_scale
        return np.asarray(0.5 * LOG_2_OVER_PI - np.log(self.prior_scale) - 0.5 * standardised**2 + log_scale)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return -n log(scale) - squares / (2 scale^2) - n log(2 pi) / 2."""
        log_scale = np.ascontiguousarray(states[..., 0])
        fall = 0.5 * statistics["squares"] * np.exp(-2.0 * log_scale)
        return np.asarray(-len(self.y) * (log_scale + 0.5 * LOG_2PI) - fall)

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return 1 - scale^2 / prior_scale^2 + beta (squares / scale^2 - n)."""
        states = np.ascontiguousarray(states)
        prior = 1.0 - np.exp(2.0 * states) / self.prior_scale**2
        if beta == 0.0:
            return np.asarray(prior)
        pull = statistics["squares"][:, None] * np.exp(-2.0 * states) - len(self.y)
        return np.asarray(prior + beta * pull)

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the log scale from its prior."""
        drawn = self.prior_scale * np.abs(generator.standard_normal(1))
        return np.log([float(fixed["scale"])] if "scale" in fixed else drawn)

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw y given the scale."""
        return {"y": self.mean + parameters["scale"] * generator.standard_normal(len(self.y))}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the scale."""
        return {"scale": np.exp(np.ascontiguousarray(states[:, 0]))}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the log scale as a column."""
        return np.asarray(np.log(np.asarray(parameters["scale"], dtype=float)))[:, None]

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return the log of the integral over v = scale^2, v^(p - 1) exp(-(v / prior_scale^2 + squares / v) / 2)."""
        p, root = self._bessel(statistics["squares"])
        with np.errstate(over="ignore"):
            log_bessel = np.log(kve(p, root)) - root
        small = gammaln(abs(p)) + (abs(p) - 1.0) * np.log(2.0) - abs(p) * np.log(root)
        log_bessel = np.where(np.isfinite(log_bessel), log_bessel, small)
        constant = 0.5 * LOG_2_OVER_PI - np.log(self.prior_scale) - 0.5 * len(self.y) * LOG_2PI
        return np.asarray(constant + log_bessel + p * (0.5 * np.log(statistics["squares"]) + np.log(self.prior_scale)))

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw v = scale^2 from its generalised inverse Gaussian law."""
        p, root = self._bessel(statistics["squares"][0])
        drawn = geninvgauss(p, root).rvs(size=n, random_state=generator)
        unit = np.sqrt(statistics["squares"][0]) * self.prior_scale
        return np.asarray(0.5 * np.log(drawn * unit))[:, None]

    def _bessel(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """Return order and argument of the Bessel function: (1 - n) / 2 and sqrt(squares) / prior_scale."""
        return 0.5 * (1.0 - len(self.y)), np.asarray(np.sqrt(squares) / self.prior_scale)
