"""Densities of a model with its data, evaluated so that one failing chain does not take the others with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bread.backends.base import FloatArray
from bread.paths.kinds import Path, PriorPath
from tests.models.reference.arrays import Statistics
from tests.models.reference.formulae import Formulae


class TargetDensity:
    """Tempered log density of a model with its data along a path, for states of shape (..., row, dim).

    An exception inside a density is caught, the states are then evaluated one by one, and those that raise
    become NaN.

    Attributes
    ----------
    raised : set of int
        Rows at which an evaluation raised.
    message : str
        Text of the first exception.
    """

    def __init__(self, formulae: Formulae, statistics: Statistics, path: Path) -> None:
        self.formulae = formulae
        self.statistics = statistics
        self.path = path
        self.raised: set[int] = set()
        self.message = ""

    def log_base(self, states: FloatArray) -> FloatArray:
        """Return log f_0: the log prior in unconstrained coordinates, or the log density of the reference."""
        return self._guard(lambda x, statistics: self._log_base(x), states, is_gradient=False)

    def log_ratio(self, states: FloatArray) -> FloatArray:
        """Return log f_1 - log f_0; shape ``states.shape[:-1]``."""
        return self._guard(self._log_ratio, states, is_gradient=False)

    def log_density(self, beta: float, states: FloatArray) -> FloatArray:
        """Return log f_beta; at beta = 0 the ratio is not evaluated."""
        if beta == 0.0:
            return self.log_base(states)
        return self._guard(
            lambda x, statistics: self._log_base(x) + beta * self._log_ratio(x, statistics),
            states,
            is_gradient=False,
        )

    def gradient(self, beta: float, states: FloatArray) -> FloatArray:
        """Return the gradient of log f_beta, shape ``states.shape``; zero at discrete coordinates."""
        return self._guard(lambda x, statistics: self._gradient(beta, x, statistics), states, is_gradient=True)

    def _log_base(self, x: FloatArray) -> FloatArray:
        reference = self.path.reference
        return self.formulae.log_prior(x) if reference is None else reference.log_density(x)

    def _log_ratio(self, x: FloatArray, statistics: Statistics) -> FloatArray:
        log_likelihood = self.formulae.log_likelihood(x, statistics)
        if self.path.reference is None:
            return log_likelihood
        return self.formulae.log_prior(x) + log_likelihood - self.path.reference.log_density(x)

    def _gradient(self, beta: float, x: FloatArray, statistics: Statistics) -> FloatArray:
        path = self.path
        if isinstance(path, PriorPath):
            return self.formulae.gradient_log_density(beta, x, statistics)
        if beta == 0.0:
            return path.reference.gradient(x)
        end = beta * self.formulae.gradient_log_density(1.0, x, statistics)
        return end if beta == 1.0 else (1.0 - beta) * path.reference.gradient(x) + end

    def _guard(
        self, function: Callable[[FloatArray, Statistics], FloatArray], states: FloatArray, *, is_gradient: bool
    ) -> FloatArray:
        try:
            return function(states, self.statistics)
        except Exception as error:  # a density may raise anything; the effect is recorded per chain
            self.message = self.message or f"{type(error).__name__}: {error}"
        values = np.full(states.shape if is_gradient else states.shape[:-1], np.nan)
        for index in np.ndindex(states.shape[:-1]):
            row = slice(index[-1], index[-1] + 1)
            statistics = {name: value[row] if len(value) > 1 else value for name, value in self.statistics.items()}
            try:
                values[index] = function(states[index][None, :], statistics)[0]
            except Exception:  # this state is the one that raises
                self.raised.add(index[-1])
        return values
