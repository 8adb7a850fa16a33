"""Beta-Binomial on the logit scale: the Jacobian of the logit is part of the prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import betaln, expit, gammaln, log_expit, logit

from bread.backends.base import Data, FloatArray, IntArray
from tests.models.reference.arrays import Statistics
from tests.models.reference.hmc import HMCKernel
from tests.models.reference.kernels import ReferenceKernel
from tests.models.reference.model import ReferenceModel


@dataclass(frozen=True, eq=False)
class BetaBinomial(ReferenceModel):
    """Success probability: probability ~ Beta(alpha, beta), successes_i ~ Binomial(trials_i, probability).

    The coordinate is logit(probability); the log Jacobian log p + log(1 - p) belongs to the prior.

    Parameters
    ----------
    successes : ndarray of int, shape (n_observations,)
        The real data.
    trials : ndarray of int, shape (n_observations,)
        Known numbers of trials.
    alpha, beta : float
        Constants of the prior.
    kernel : kernel
        `HMCKernel`; the tempered densities are not Gaussian.
    """

    successes: IntArray
    trials: IntArray
    alpha: float = 1.0
    beta: float = 1.0
    kernel: ReferenceKernel = HMCKernel()  # noqa: RUF009  (a frozen value)
    per_observation: ClassVar[tuple[str, ...]] = ("successes", "trials")

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The log odds."""
        return ("probability_logodds__",)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The success probability."""
        return {"probability": ()}

    @property
    def transformed(self) -> NDArray[np.bool_]:
        """The coordinate is a transform of the probability."""
        return np.ones(1, dtype=bool)

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        """The real data."""
        return {"successes": np.asarray(self.successes)}

    @property
    def constant_data(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Numbers of trials."""
        return {"trials": (("observation",), np.asarray(self.trials))}

    @cached_property
    def n_trials(self) -> int:
        """All trials together."""
        return int(np.sum(self.trials))

    def summarise(self, data: Data) -> Statistics:
        """Return the number of successes and the log binomial coefficients, each (rows,)."""
        successes = np.asarray(data["successes"], dtype=float)
        trials = np.asarray(self.trials, dtype=float)
        coefficients = gammaln(trials + 1.0) - gammaln(successes + 1.0) - gammaln(trials - successes + 1.0)
        return {"successes": successes.sum(axis=-1), "constant": coefficients.sum(axis=-1)}

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return alpha log p + beta log(1 - p) - log B: the Beta density times the Jacobian p (1 - p)."""
        odds = np.ascontiguousarray(states[..., 0])
        return np.asarray(self.alpha * log_expit(odds) + self.beta * log_expit(-odds) - betaln(self.alpha, self.beta))

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the sum of the binomial log probabilities."""
        odds = np.ascontiguousarray(states[..., 0])
        successes = statistics["successes"]
        failures = self.n_trials - successes
        return np.asarray(statistics["constant"] + successes * log_expit(odds) + failures * log_expit(-odds))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return alpha + beta' Y - (alpha + beta + beta' n) p, with beta' the inverse temperature."""
        successes = statistics["successes"][:, None]
        total = self.alpha + self.beta + beta * self.n_trials
        return np.asarray(self.alpha + beta * successes - total * expit(np.ascontiguousarray(states)))

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the log odds from the prior, as a difference of two log gamma draws."""
        drawn = np.log(generator.standard_gamma(self.alpha)) - np.log(generator.standard_gamma(self.beta))
        return np.array([logit(fixed["probability"]) if "probability" in fixed else drawn], dtype=float)

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw binomial data."""
        return {"successes": generator.binomial(self.trials, parameters["probability"])}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the probability."""
        return {"probability": np.asarray(expit(np.ascontiguousarray(states[:, 0])))}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the log odds as a column."""
        return np.asarray(logit(np.asarray(parameters["probability"], dtype=float)))[:, None]

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return the sum of log coefficients + log B(alpha + Y, beta + n - Y) - log B(alpha, beta)."""
        successes = statistics["successes"]
        updated = betaln(self.alpha + successes, self.beta + self.n_trials - successes)
        return np.asarray(statistics["constant"] + updated - betaln(self.alpha, self.beta))

    def draw_tempered_of(self, beta: float, statistics: Statistics, generator: Generator) -> FloatArray:
        """Draw log odds of Beta(alpha + beta' Y, beta + beta' (n - Y)), with beta' the inverse temperature."""
        successes = float(statistics["successes"][0])
        shapes = self.alpha + beta * successes, self.beta + beta * (self.n_trials - successes)
        one, other = (np.log(generator.standard_gamma(shape)) for shape in shapes)
        return np.array([one - other])

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw log odds of Beta(alpha + Y, beta + n - Y)."""
        successes = float(statistics["successes"][0])
        drawn = np.log(generator.standard_gamma(self.alpha + successes, n))
        drawn = drawn - np.log(generator.standard_gamma(self.beta + self.n_trials - successes, n))
        return np.asarray(drawn)[:, None]
