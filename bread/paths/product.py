"""A reference whose linear combinations of coordinates are independent, each a mixture of normal laws.

A sparse regression has two laws for each of its coefficients, near zero and away from it, so that a mixture of laws of
all coefficients would need a component for every set of those that are away. Of one coefficient it takes two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from bread.errors import InvalidArgumentError
from bread.paths.mixture import FittedReference, FloatArray, rows_times

_AT_ONCE = 1000  # rows, whose densities stay in the processor's cache
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class ProductReference(FittedReference):
    """The coordinates of ``z = W (theta - centre)`` are independent, and each is a mixture of K normal laws.

    Attributes
    ----------
    centre : ndarray, shape (dim,)
    matrix : ndarray, shape (dim, dim)
        W.
    weights, means, scales : ndarray, shape (dim, K)
        Of the laws of each z; weights of sum 1, standard deviations above 0.
    label : str
        What it is, for the report.
    """

    centre: FloatArray
    matrix: FloatArray
    weights: FloatArray
    means: FloatArray
    scales: FloatArray
    label: str = "independent mixtures"

    def __post_init__(self) -> None:
        if not np.allclose(self.weights.sum(axis=1), 1.0):
            raise InvalidArgumentError(
                f"the weights of the laws of each coordinate must have the sum 1, got {self.weights.sum(axis=1)!r}."
            )
        if not (np.isfinite(self.scales).all() and (self.scales > 0.0).all()):
            raise InvalidArgumentError(f"standard deviations must be finite and above 0, got {self.scales!r}.")

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.centre)

    @cached_property
    def log_determinant(self) -> float:
        """Log of the absolute determinant of W."""
        return float(np.linalg.slogdet(self.matrix)[1])

    @cached_property
    def log_factors(self) -> FloatArray:
        """Logs of weights and of constant factors of the laws, shape (dim, K)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights) - np.log(self.scales) - _HALF_LOG_TWO_PI)

    @cached_property
    def rates(self) -> FloatArray:
        """One over standard deviations, shape (dim, K)."""
        return 1.0 / self.scales

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        cumulative = np.cumsum(self.weights, axis=1)
        chosen = (rng.random((n, self.dim))[:, :, None] >= (cumulative / cumulative[:, -1:])[:, :-1]).sum(axis=2)
        at = np.arange(self.dim)
        z = self.means[at, chosen] + self.scales[at, chosen] * rng.standard_normal((n, self.dim))
        return np.asarray(self.centre + np.linalg.solve(self.matrix, z.T).T)

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        z = rows_times(self.matrix, np.asarray(states) - self.centre).reshape(-1, self.dim)
        values = np.empty(len(z))
        for first in range(0, len(z), _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            terms, _ = self._terms(z[rows])
            largest = np.maximum(terms.max(axis=0), np.finfo(np.float64).min)  # also where all are -inf
            with np.errstate(divide="ignore"):
                logs = largest + np.log(np.exp(terms - largest).sum(axis=0))
            values[rows] = logs.sum(axis=-1) + self.log_determinant
        return values.reshape(np.shape(states)[:-1])

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        terms, standard = self._terms(rows_times(self.matrix, np.asarray(states) - self.centre))
        share = np.exp(terms - terms.max(axis=0))
        pull = (share * standard * _first(self.rates, standard.ndim)).sum(axis=0) / share.sum(axis=0)
        return rows_times(self.matrix.T, -pull)

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        terms, standard = self._terms(self.matrix.dot(state - self.centre))
        largest = terms.max(axis=0)
        share = np.exp(terms - largest)
        total = share.sum(axis=0)
        pull = (share * standard * self.rates.T).sum(axis=0) / total
        value = float((largest + np.log(total)).sum()) + self.log_determinant
        return value, np.asarray(-pull.dot(self.matrix))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,)."""
        mean = (self.weights * self.means).sum(axis=1)
        variance = (self.weights * (self.scales**2 + self.means**2)).sum(axis=1) - mean**2
        colour = np.linalg.inv(self.matrix)
        return self.centre + colour @ mean, np.sqrt(colour**2 @ variance)

    def _terms(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities of the laws, weights included, and standardised distances, both ``(K, *z.shape)``.

        Sums over a last axis of two or three are slow.
        """
        means, rates, factors = (_first(part, z.ndim + 1) for part in (self.means, self.rates, self.log_factors))
        standard = (np.ascontiguousarray(z) - means) * rates
        with np.errstate(over="ignore"):
            return factors - 0.5 * standard * standard, standard


def _first(part: FloatArray, ndim: int) -> FloatArray:
    """Return numbers of each coordinate's laws, shape (dim, K), with the laws along the first of so many axes."""
    return part.T.reshape(part.shape[1], *(1,) * (ndim - 2), part.shape[0])
