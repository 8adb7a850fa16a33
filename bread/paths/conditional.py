"""A reference for several group scales: some coordinates, and a Gaussian law of the others that follows all of them.

A hierarchy with a scale for each of its effects, and a scale of its noise, is near to Gaussian given the scales, and
nowhere near it jointly. `bread.paths.nested` has the law given one coordinate, by splines; here it is given a few, by
polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.paths.mixture import FittedReference, FloatArray, MixtureReference

_AT_ONCE = 256  # rows
ADDITIVE = 30.0  # weight of a spline's parts that depend on one coordinate each: tails of scales do


@dataclass(frozen=True)
class ConditionalReference(FittedReference):
    """A law of coordinates u, and of the others given u, which is normal.

    ``y = W (theta - centre) - m(u)`` is nearly independent: ``(1 + T(u)) y`` is, with standard deviations s(u) and T
    strictly lower triangular. All m, log s and elements of T are splines of ``x = (u - origin) / spread``: cubes of the
    distances from knots and of those along each coordinate, plus a linear function (Duchon 1977); in one dimension
    natural cubic splines.

    Attributes
    ----------
    drivers : tuple of int
        Which coordinates u are, k of them.
    marginal : MixtureReference
        Law of u.
    centre : ndarray, shape (dim - k,)
        Of the others, in their order.
    matrix : ndarray, shape (dim - k, dim - k)
        W.
    origin, spread : ndarray, shape (k,)
    knots : ndarray, shape (m, k)
        Values of x.
    coefficients : ndarray, shape (m + 1 + k, f)
        Of the cubes, of 1 and of x, for the elements of m, of log s, and of T by rows; those of T may be missing, where
        it is zero.
    """

    is_given = True

    drivers: tuple[int, ...]
    marginal: MixtureReference
    centre: FloatArray
    matrix: FloatArray
    origin: FloatArray
    spread: FloatArray
    knots: FloatArray
    coefficients: FloatArray

    @property
    def label(self) -> str:
        """What it is, for the report."""
        return f"Gaussian given {len(self.drivers)} coordinates"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.centre) + len(self.drivers)

    @cached_property
    def log_normaliser(self) -> float:
        """Log of the constant factor of the law of the others given u."""
        return float(np.linalg.slogdet(self.matrix)[1] - 0.5 * len(self.centre) * np.log(2 * np.pi))

    @cached_property
    def _at(self) -> NDArray[np.int64]:
        return np.array(self.drivers)

    @cached_property
    def _others(self) -> NDArray[np.int64]:
        return np.delete(np.arange(self.dim), self._at)

    @cached_property
    def _lower(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows, columns = np.tril_indices(len(self.centre), -1)
        n = self.coefficients.shape[1] - 2 * len(self.centre)
        return rows[:n], columns[:n]

    def functions(self, u: FloatArray) -> FloatArray:
        """Return m, log s and T at rows of u, shape (n, f)."""
        x = (u - self.origin) / self.spread
        parts = (spline_values(x[first : first + _AT_ONCE], self.knots) for first in range(0, len(x), _AT_ONCE))
        rows = (row for part in parts for row in part)
        return np.array([row.dot(self.coefficients) for row in rows])  # one by one: the same bits for any n

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        u = self.marginal.sample(n, rng)
        mean, log_scale, mixing = self._parts(self.functions(u))
        noise = np.exp(log_scale) * rng.standard_normal(mean.shape)
        y = noise if mixing is None else np.linalg.solve(mixing + np.eye(len(self.centre)), noise[..., None])[..., 0]
        draws = np.empty((n, self.dim))
        draws[:, self._at] = u
        draws[:, self._others] = self.centre + np.linalg.solve(self.matrix, (mean + y).T).T
        return draws

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        n, u = len(self.centre), state[self._at]
        with np.errstate(over="ignore", invalid="ignore"):
            functions = self._terms(u).dot(self.coefficients)
            values, by_u = functions[0], functions[1:]
            y = self.matrix.dot(state[self._others] - self.centre) - values[:n]
            rate = np.exp(-values[n : 2 * n])
            if len(self._lower[0]):
                mixing = np.zeros((n, n))
                mixing[self._lower] = values[2 * n :]
                residual = (y + mixing.dot(y)) * rate
                pull = residual * rate
                along = -by_u[:, 2 * n :].dot(pull[self._lower[0]] * y[self._lower[1]])
                across = pull + pull.dot(mixing)
            else:
                residual = y * rate
                across = residual * rate
                along = np.zeros(len(u))
            own, own_gradient = self.marginal.value_and_gradient(u)
            gradient = np.empty(self.dim)
            gradient[self._others] = -across.dot(self.matrix)
            along += by_u[:, :n].dot(across) + by_u[:, n : 2 * n].dot(residual**2 - 1.0)
            gradient[self._at] = own_gradient + along
            value = own + self.log_normaliser - 0.5 * residual.dot(residual) - values[n : 2 * n].sum()
        return float(value), gradient

    def _parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return m, log s and T of rows of functions; None for a T of zeros."""
        n, mixing = len(self.centre), None
        if len(self._lower[0]):
            mixing = np.zeros((len(values), n, n))
            mixing[:, self._lower[0], self._lower[1]] = values[:, 2 * n :]
        return values[:, :n], values[:, n : 2 * n], mixing

    def _terms(self, u: FloatArray) -> FloatArray:
        """Return what coefficients multiply at one u, and its derivatives by u, shape (1 + k, m + 1 + k)."""
        terms = spline_terms((u - self.origin) / self.spread, self.knots)
        terms[1:] /= self.spread[:, None]
        return terms


def spline_terms(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Return cubes of the distances from knots and along coordinates, summed; 1; x; and their derivatives by x.

    Parameters
    ----------
    x : ndarray, shape (k,)
    knots : ndarray, shape (m, k)

    Returns
    -------
    ndarray, shape (1 + k, m + 1 + k)
    """
    m, k = knots.shape
    away = x[:, None] - knots.T
    along, squared = np.abs(away), away * away
    summed = squared.sum(axis=0)
    distance = np.sqrt(summed)
    terms = np.zeros((1 + k, m + 1 + k))
    terms[0, :m] = summed * distance + ADDITIVE * (squared * along).sum(axis=0)
    terms[0, m], terms[0, m + 1 :] = 1.0, x
    terms[1:, :m] = 3.0 * (distance + ADDITIVE * along) * away
    terms[1:, m + 1 :].flat[:: k + 1] = 1.0
    return terms


def spline_values(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the first row of `spline_terms` at each row of x, shape (n, m + 1 + k)."""
    m, k = knots.shape
    away = x[:, :, None] - knots.T
    along, squared = np.abs(away), away * away
    summed = squared.sum(axis=1)
    terms = np.empty((len(x), m + 1 + k))
    terms[:, :m] = summed * np.sqrt(summed) + ADDITIVE * (squared * along).sum(axis=1)
    terms[:, m], terms[:, m + 1 :] = 1.0, x
    return terms


def spline_through(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the coefficients of the splines through values at knots.

    Parameters
    ----------
    knots : ndarray, shape (m, k)
    values : ndarray, shape (m, f)

    Returns
    -------
    ndarray, shape (m + 1 + k, f)

    Raises
    ------
    numpy.linalg.LinAlgError
        Knots coincide, or lie on a line or plane.
    """
    m = len(knots)
    terms = spline_values(knots, knots)
    system = np.zeros((terms.shape[1], terms.shape[1]))
    system[:m] = terms
    system[m:, :m] = terms[:, m:].T
    return np.linalg.solve(system, np.concatenate([values, np.zeros((terms.shape[1] - m, values.shape[1]))]))
