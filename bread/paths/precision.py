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

from bread.paths.mixture import FloatArray
from bread.paths.product import ProductReference

LARGEST_EXPONENT = 300.0
SMALLEST_PRECISION = 1e-300
_MOMENT_DRAWS = 2000


@dataclass(frozen=True)
class Sums:
    """Numbers that are sums of exponentials: ``values * exp(exponents u)``, added up by place.

    Attributes
    ----------
    places : ndarray of int, shape (t,)
    values : ndarray, shape (t,)
    exponents : ndarray, shape (t, k)
    """

    places: NDArray[np.int64]
    values: FloatArray
    exponents: FloatArray

    def terms(self, u: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the terms at one u, shape (t,), and which of them change with it: none does that is far too large."""
        power = self.exponents.dot(u)
        with np.errstate(invalid="ignore"):
            changes = np.abs(power) < LARGEST_EXPONENT
            return self.values * np.exp(np.clip(power, -LARGEST_EXPONENT, LARGEST_EXPONENT)), changes

    def at(self, u: FloatArray, n: int) -> FloatArray:
        """Return the n sums at rows of u, shape (rows, n)."""
        power = np.clip(u @ self.exponents.T, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        terms = self.values * np.exp(power)
        sums = np.zeros((len(u), n))
        order = np.argsort(self.places, kind="stable")
        if len(order):
            ends, starts = np.unique(self.places[order], return_index=True)
            sums[:, ends] = np.add.reduceat(terms[:, order], starts, axis=1)
        return sums


class Given(NamedTuple):
    """The law of the others at one u.

    Attributes
    ----------
    factor : ndarray, shape (n, n)
        Lower triangular L, of the precision matrix ``L L'``.
    mean : ndarray, shape (n,)
    terms, linear_terms : ndarray
        Of the precision matrix and of the linear coefficients.
    changes, linear_changes : ndarray of bool
        Which of them change with u.
    """

    factor: FloatArray
    mean: FloatArray
    terms: FloatArray
    linear_terms: FloatArray
    changes: NDArray[np.bool_]
    linear_changes: NDArray[np.bool_]


@dataclass(frozen=True)
class PrecisionReference:
    """A law of coordinates u, and of the others y given u, with log density ``b(u)' y - y' P(u) y / 2 + constant``.

    Where P(u), far out, is numerically not positive definite, the law is the one of its diagonal: a normalised law at
    every u.

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
        terms, changes = self.precision.terms(u)
        linear_terms, linear_changes = self.linear.terms(u)
        linear = np.bincount(self.linear.places, linear_terms, n)
        matrix = np.bincount(self.precision.places, terms, n * n).reshape(n, n)
        try:
            factor = np.linalg.cholesky(matrix)
            mean = np.linalg.solve(factor.T, np.linalg.solve(factor, linear))
            if not np.isfinite(mean).all():
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            diagonal = np.maximum(np.diag(matrix), SMALLEST_PRECISION)
            is_kept = np.diag(matrix) > SMALLEST_PRECISION
            changes = changes & (self.rows == self.columns) & is_kept[self.rows]
            factor, mean = np.diag(np.sqrt(diagonal)), linear / diagonal
        return Given(factor, mean, terms, linear_terms, changes, linear_changes)

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        draws = np.empty((n, self.dim))
        draws[:, self.at] = self.marginal.sample(n, rng)
        noise = rng.standard_normal((n, self.n_others))
        for row, one in zip(draws, noise, strict=True):
            law = self.given(row[self.at])
            row[self.others] = law.mean + np.linalg.solve(law.factor.T, one)
        return draws

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        rows = np.ascontiguousarray(states, dtype=np.float64).reshape(-1, self.dim)
        return np.array([self.value_and_gradient(row)[0] for row in rows]).reshape(np.shape(states)[:-1])

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        rows = np.ascontiguousarray(states, dtype=np.float64).reshape(-1, self.dim)
        return np.array([self.value_and_gradient(row)[1] for row in rows]).reshape(np.shape(states))

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        u, y = state[self.at], state[self.others]
        law = self.given(u)
        away = y - law.mean
        residual = law.factor.T.dot(away)
        pull = law.factor.dot(residual)
        inverse = np.linalg.inv(law.factor)
        by_matrix = 0.5 * (inverse.T.dot(inverse) - np.outer(y, y) + np.outer(law.mean, law.mean))
        twice = np.where(self.rows == self.columns, 1.0, 2.0)
        by_term = law.terms * by_matrix[self.rows, self.columns] * twice * law.changes
        by_linear = law.linear_terms * away[self.linear.places] * law.linear_changes
        own, own_gradient = self.marginal.value_and_gradient(u)
        gradient = np.empty(self.dim)
        gradient[self.others] = -pull
        gradient[self.at] = own_gradient + by_term.dot(self.precision.exponents) + by_linear.dot(self.linear.exponents)
        value = own - 0.5 * float(residual.dot(residual)) + float(np.log(np.diag(law.factor)).sum())
        return value - 0.5 * self.n_others * float(np.log(2.0 * np.pi)), gradient

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,), of some draws, always the same."""
        draws = self.sample(_MOMENT_DRAWS, np.random.default_rng(0))
        return draws.mean(axis=0), draws.std(axis=0)
