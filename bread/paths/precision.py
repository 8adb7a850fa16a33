"""A reference for linear models: scales, however many, and the others' exact Gaussian law given them.

In a linear model with normal errors and normal priors, whose scales are themselves unknown, the precision matrix of the
coefficients given the scales is known but for numbers: each of its elements is a sum of products of powers of scales.
On logarithms of scales these are exponentials. A horseshoe regression has a scale for every coefficient, and is as
far from Gaussian as can be jointly; given all scales it is Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.paths.mixture import FittedReference, FloatArray
from bread.paths.product import ProductReference
from bread.paths.sums import Factors, Sums

SMALLEST_PRECISION = 1e-100  # of a coordinate, where the matrix is none
_AT_ONCE = 256  # rows


class Given(NamedTuple):
    """The law of the others at one u.

    Attributes
    ----------
    factor : ndarray, shape (n, n)
        Lower triangular L, of the precision matrix ``L L'``.
    mean : ndarray, shape (n,)
    by_matrix, by_linear : Factors
        Functions of which the elements of the precision matrix, and the linear coefficients, are sums.
    is_used : ndarray of bool, shape (n, n)
        Which elements of the matrix the law depends on: all, or those of the diagonal that are precisions.
    """

    factor: FloatArray
    mean: FloatArray
    by_matrix: Factors
    by_linear: Factors
    is_used: NDArray[np.bool_]


@dataclass(frozen=True)
class PrecisionReference(FittedReference):
    """A law of coordinates u, and of the others y given u, with log density ``b(u)' y - y' P(u) y / 2 + constant``.

    Where P(u), far out, is numerically not positive definite, the law is the one of its diagonal, and standard normal
    where an element of that is not positive: a normalised law at every u.

    Attributes
    ----------
    drivers : tuple of int
        Which coordinates u are, k of them.
    marginal : ProductReference
        Law of u.
    precision : Sums
        Elements of P: places are ``row * n + column``, in the lower triangle.
    linear : Sums
        Elements of b.
    """

    is_given = True

    drivers: tuple[int, ...]
    marginal: ProductReference
    precision: Sums
    linear: Sums
    n_others: int

    @property
    def label(self) -> str:
        """What it is, for the report."""
        return f"Gaussian given {len(self.drivers)} coordinates, by its precision"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.n_others + len(self.drivers)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the elements of P."""
        return self.precision.places // self.n_others

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Columns of the elements of P."""
        return self.precision.places % self.n_others

    @cached_property
    def at(self) -> NDArray[np.int64]:
        """Coordinates u."""
        return np.array(self.drivers)

    @cached_property
    def others(self) -> NDArray[np.int64]:
        """The other coordinates."""
        return np.delete(np.arange(self.dim), self.at)

    def given(self, u: FloatArray) -> Given:
        """Return the law of the others at one u, shape (k,)."""
        n = self.n_others
        by_matrix, by_linear = self.precision.functions.at_one(u), self.linear.functions.at_one(u)
        linear = self.linear.of(by_linear, n)
        matrix = self.precision.of(by_matrix, n * n).reshape(n, n)
        is_used = np.ones((n, n), dtype=bool)
        try:
            factor = np.linalg.cholesky(matrix)
            mean = np.linalg.solve(factor.T, np.linalg.solve(factor, linear))
            if not np.isfinite(mean).all():
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            diagonal, linear, is_held = _held(np.diag(matrix), linear)
            is_used = np.diag(is_held)
            factor, mean = np.diag(np.sqrt(diagonal)), linear / diagonal
        return Given(np.asarray(factor, dtype=np.float64), mean, by_matrix, by_linear, is_used)

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        draws = np.empty((n, self.dim))
        draws[:, self.at] = self.marginal.sample(n, rng)
        noise = rng.standard_normal((n, self.n_others))
        for first in range(0, n, _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            draws[rows, self.others] = self._given_noise(draws[rows, self.at], noise[rows])
        return draws

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        rows = np.ascontiguousarray(states, dtype=np.float64).reshape(-1, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            values = [self._value(self.given(row[self.at]), row[self.others]) for row in rows]
        return np.asarray(self.marginal.log_density(rows[:, self.at]) + values).reshape(np.shape(states)[:-1])

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._value_and_gradient(state[self.at], state[self.others])

    def _given_noise(self, u: FloatArray, noise: FloatArray) -> FloatArray:
        """Return draws of the others at rows of u, from standard normal ones."""
        n = self.n_others
        matrices, linear = self.precision.at(u, n * n).reshape(-1, n, n), self.linear.at(u, n)
        factors, is_law = cholesky_factors(matrices)
        half = np.linalg.solve(factors, linear[..., None])[..., 0]
        parts = np.linalg.solve(np.swapaxes(factors, 1, 2), np.stack([half, noise], axis=-1))
        mean, draws = parts[..., 0], parts.sum(axis=-1)
        is_law &= np.isfinite(mean).all(axis=1)
        diagonal, linear, _ = _held(np.einsum("nii->ni", matrices[~is_law]), linear[~is_law])
        draws[~is_law] = linear / diagonal + noise[~is_law] / np.sqrt(diagonal)
        return np.asarray(draws)

    def _value(self, law: Given, y: FloatArray) -> float:
        """Return the log density (nats) of the others, given u."""
        residual = law.factor.T.dot(y - law.mean)
        half_log_volume = float(np.log(np.diag(law.factor)).sum())
        return half_log_volume - 0.5 * float(residual.dot(residual)) - 0.5 * self.n_others * float(np.log(2.0 * np.pi))

    def _value_and_gradient(self, u: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
        law = self.given(u)
        away = y - law.mean
        inverse = np.linalg.inv(law.factor)
        by_element = inverse.T.dot(inverse) - np.outer(y, y) + np.outer(law.mean, law.mean)
        by_element = np.where(law.is_used, by_element, 0.0)  # some are infinite
        by_element[np.diag_indices(self.n_others)] *= 0.5
        by_linear = np.where(np.diag(law.is_used), away, 0.0)
        by_u = self.precision.gradient(law.by_matrix, by_element.ravel())
        by_u = by_u + self.linear.gradient(law.by_linear, by_linear)
        own, own_gradient = self.marginal.value_and_gradient(u)
        gradient = np.empty(self.dim)
        gradient[self.others] = -law.factor.dot(law.factor.T.dot(away))
        gradient[self.at] = own_gradient + by_u
        return own + self._value(law, y), gradient


def _held(diagonal: FloatArray, linear: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return precisions and linear coefficients of independent coordinates, and which of them are such.

    Those that are not become those of a standard normal law.
    """
    is_held = np.isfinite(diagonal) & (diagonal > SMALLEST_PRECISION)
    diagonal = np.where(is_held, diagonal, 1.0)
    is_held &= np.isfinite(linear / diagonal)
    return np.where(is_held, diagonal, 1.0), np.where(is_held, linear, 0.0), is_held


def cholesky_factors(lower: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return Cholesky factors of matrices, shape (rows, n, n), the identity where there is none, and where one is.

    Only lower triangles are read.
    """
    is_law: NDArray[np.bool_] = np.asarray(np.isfinite(lower).all(axis=(1, 2)))
    identity = np.eye(lower.shape[1])
    lower = np.where(is_law[:, None, None], lower, identity)
    try:
        return np.asarray(np.linalg.cholesky(lower), dtype=np.float64), is_law
    except np.linalg.LinAlgError:
        pass
    factors = np.empty_like(lower)
    for index, matrix in enumerate(lower):
        try:
            factors[index] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            factors[index], is_law[index] = identity, False
    return factors, is_law
