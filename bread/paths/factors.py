"""A reference for factor models: a law of one side's factors, and the other side's exact Gaussian law given them.

Ratings of films by users are normal about inner products of a user's factors and a film's. Given the films' factors,
and the scales, each user's are Gaussian, independently of those of all others: half of what has to be approximated
jointly is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.paths.mixture import FittedReference, FloatArray
from bread.paths.rotated import RotatedReference
from bread.paths.small_matrices import CholeskyFactors, cholesky_of
from bread.paths.sums import LARGEST_EXPONENT

_AT_ONCE = 128  # rows
_LOG_2_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Powers:
    """Numbers that are sums of multiples of exponentials: ``sum_f values[f] exp(exponents[f] rest)``.

    Attributes
    ----------
    exponents : ndarray, shape (f, r)
        An exponent whose size is beyond `bread.paths.sums.LARGEST_EXPONENT` is held there.
    values : ndarray, shape (f, ...)
    """

    exponents: FloatArray
    values: FloatArray

    def factors(self, rest: FloatArray) -> FloatArray:
        """Return the exponentials at rows of rest, shape (..., f)."""
        return np.asarray(np.exp(np.clip(rest @ self.exponents.T, -LARGEST_EXPONENT, LARGEST_EXPONENT)))

    def at(self, factors: FloatArray) -> FloatArray:
        """Return the numbers, of the shape of ``values[0]`` after that of the rows."""
        return np.asarray(np.tensordot(factors, self.values, 1))

    def slope(self, rest: FloatArray, factors: FloatArray, by: FloatArray) -> FloatArray:
        """Return the derivative by rest, shape (r,), of what has the derivatives ``by`` by the numbers."""
        changes = np.abs(self.exponents.dot(rest)) < LARGEST_EXPONENT
        each = self.values.reshape(len(factors), -1).dot(by.ravel()) * factors * changes
        return np.asarray(each.dot(self.exponents))


class Form(NamedTuple):
    """The quadratic form of the inner factors at some outer ones.

    Attributes
    ----------
    matrix : ndarray, shape (K, K, m)
        Precision matrix P of each.
    linear : ndarray, shape (K, m)
        Linear coefficients b of each.
    curvature, slopes : ndarray, shape (m, n)
        What `Couplings` are there.
    exponentials : tuple of ndarray
        Of which these, and ``own``, are sums.
    """

    matrix: FloatArray
    linear: FloatArray
    curvature: FloatArray
    slopes: FloatArray
    exponentials: tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Couplings:
    """How a log density depends on two sides of factors, vectors u_i and v_j of K coordinates.

    It is one of all v_j and the rest (at all u_i = 0) plus ``sum_ij [e_ij u_i'v_j - c_ij (u_i'v_j)^2 / 2] - sum_i a_i
    u_i'u_i / 2``, with a, c and e functions of the rest, such as of scales.

    Attributes
    ----------
    dim : int
        Coordinates of a state.
    inner : ndarray of int, shape (K, m)
        Which of them are u.
    outer : ndarray of int, shape (K, n)
        Which are v.
    own, curvature, slopes : Powers
        a, shape (m,), c and e, shapes (m, n).
    outer_units : ndarray, shape (r,), optional
        Logarithm of the unit in which v is measured, as a linear function of the rest; None: that of u.
    """

    dim: int
    inner: NDArray[np.int64]
    outer: NDArray[np.int64]
    own: Powers
    curvature: Powers
    slopes: Powers
    outer_units: FloatArray | None = None

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Coordinates of both sides, u first, shape (K, m + n)."""
        return np.concatenate([self.inner, self.outer], axis=1)

    @cached_property
    def drivers(self) -> NDArray[np.int64]:
        """Coordinates that are not u."""
        return np.setdiff1d(np.arange(self.dim), self.inner)

    @cached_property
    def rest(self) -> NDArray[np.int64]:
        """Coordinates that are neither u nor v."""
        return np.setdiff1d(self.drivers, self.outer)

    @cached_property
    def outer_in_drivers(self) -> NDArray[np.int64]:
        """Where v is among the drivers, shape (K, n)."""
        return np.searchsorted(self.drivers, self.outer)

    @cached_property
    def rest_in_drivers(self) -> NDArray[np.int64]:
        """Where the rest is among the drivers."""
        return np.searchsorted(self.drivers, self.rest)

    @cached_property
    def units(self) -> FloatArray:
        """Logarithm of v over what it is measured in, as a linear function of the rest, shape (r,).

        In ``outer_units`` where these are given, so that where scales are does not say how wide v is. Else in the unit
        of u, in which ``own`` is 1: of scales of both sides the data then say one, the product.
        """
        if self.outer_units is not None:
            return -self.outer_units
        return -0.5 * self.own.exponents[0] if len(self.own.exponents) == 1 else np.zeros(len(self.rest))

    def in_units(self, w: FloatArray) -> FloatArray:
        """Return rows of drivers with v in its units, shape (..., n_drivers)."""
        return self._scaled(w, self.units)

    def from_units(self, w: FloatArray) -> FloatArray:
        """Return rows of drivers whose v was in its units."""
        return self._scaled(w, -self.units)

    def log_unit_volume(self, w: FloatArray) -> FloatArray:
        """Return the log volume, with v in its units, of a unit of drivers at rows of these, shape (...)."""
        return np.asarray(self.outer.size * (w[..., self.rest_in_drivers] @ self.units))

    def pull_units(self, w: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient by drivers of a log density with v in its units, made one of drivers, at one w."""
        result = gradient.copy()
        scale = np.exp(w[self.rest_in_drivers].dot(self.units))
        at = self.outer_in_drivers
        result[at] *= scale
        stretch = float((w[at] * result[at]).sum()) + self.outer.size
        result[self.rest_in_drivers] += stretch * self.units
        return result

    def push_units(self, w: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient, with v in its units, of a log density of drivers, made one of these, at one w."""
        result = gradient.copy()
        at = self.outer_in_drivers
        stretch = float((w[at] * gradient[at]).sum()) + self.outer.size
        result[at] *= np.exp(-w[self.rest_in_drivers].dot(self.units))
        result[self.rest_in_drivers] -= stretch * self.units
        return result

    def _scaled(self, w: FloatArray, units: FloatArray) -> FloatArray:
        result = w.copy()
        with np.errstate(over="ignore"):
            result[..., self.outer_in_drivers] *= np.exp(w[..., self.rest_in_drivers] @ units)[..., None, None]
        return result

    def form(self, w: FloatArray) -> Form:
        """Return the quadratic form of u at w, the drivers; at rows of them that of the u of all rows, row by row."""
        v, rest = w[..., self.outer_in_drivers], w[..., self.rest_in_drivers]
        parts = (self.own, self.curvature, self.slopes)
        exponentials = tuple(part.factors(rest) for part in parts)
        own, curvature, slopes = (part.at(factors) for part, factors in zip(parts, exponentials, strict=True))
        k = v.shape[-2]
        matrix = np.moveaxis(_squares(v) @ np.swapaxes(curvature, -1, -2), -2, 0).reshape(k, k, -1)
        matrix[np.arange(k), np.arange(k)] += own.ravel()
        linear = np.moveaxis(v @ np.swapaxes(slopes, -1, -2), -2, 0).reshape(k, -1)
        return Form(matrix, linear, curvature, slopes, exponentials)  # type: ignore[arg-type]

    def pull(self, w: FloatArray, form: Form, by_matrix: FloatArray, by_linear: FloatArray) -> FloatArray:
        """Return the gradient by the drivers of what has these derivatives by matrix and linear coefficients."""
        v, rest = w[self.outer_in_drivers], w[self.rest_in_drivers]
        k, n = v.shape
        flat = by_matrix.reshape(k * k, -1)
        by_squares = flat.dot(form.curvature).reshape(k, k, n)
        gradient = np.zeros(len(w))
        gradient[self.outer_in_drivers] = 2.0 * np.einsum("klj,lj->kj", by_squares, v) + by_linear.dot(form.slopes)
        if len(rest):
            of_own, of_curvature, of_slopes = form.exponentials
            gradient[self.rest_in_drivers] = (
                self.own.slope(rest, of_own, np.trace(by_matrix))
                + self.curvature.slope(rest, of_curvature, flat.T.dot(_squares(v)))
                + self.slopes.slope(rest, of_slopes, by_linear.T.dot(v))
            )
        return gradient


class Given(NamedTuple):
    """The law of each u_i at one w.

    Attributes
    ----------
    factors : CholeskyFactors
        Of the precision matrices; the law is standard normal where they are not positive definite.
    mean : ndarray, shape (K, m)
    """

    factors: CholeskyFactors
    mean: FloatArray

    @property
    def is_law(self) -> NDArray[np.bool_]:
        """Whether each is the law that the form says, shape (m,)."""
        return self.factors.is_positive


def gaussian_laws(form: Form) -> Given:
    """Return the Gaussian laws of a quadratic form: normalised ones, whatever it is."""
    factors = cholesky_of(form.matrix)
    mean = factors.solve(form.linear)
    is_law = factors.is_positive & np.isfinite(mean).all(axis=0)
    if is_law.all():
        return Given(factors, mean)
    return Given(factors.where(is_law), np.where(is_law, mean, 0.0))


@dataclass(frozen=True)
class FactorReference(FittedReference):
    """A law of all coordinates but the factors of one side, and of these the exact Gaussian law given them.

    Attributes
    ----------
    couplings : Couplings
    marginal : RotatedReference
        Law of the drivers, in the order of the state, with v in its units (`Couplings.units`).
    """

    goes_round = True

    couplings: Couplings
    marginal: RotatedReference

    @property
    def label(self) -> str:
        """What it is, for the report."""
        return f"{self.marginal.label}; {self.couplings.inner.shape[1]} factors by their law given the others"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.couplings.dim

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        couplings = self.couplings
        draws = np.empty((n, self.dim))
        draws[:, couplings.drivers] = couplings.from_units(self.marginal.sample(n, rng))
        k, m = couplings.inner.shape
        noise = rng.standard_normal((n, m, k))
        for first in range(0, n, _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            law = gaussian_laws(couplings.form(draws[rows, couplings.drivers]))
            u = law.mean + law.factors.solve_transposed(noise[rows].reshape(-1, k).T)
            draws[rows, couplings.inner] = np.swapaxes(u.reshape(k, -1, m), 0, 1)
        return draws

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        rows = np.ascontiguousarray(states, dtype=np.float64).reshape(-1, self.dim)
        (k, m), values = self.couplings.inner.shape, np.empty(len(rows))
        with np.errstate(over="ignore", invalid="ignore"):
            w = rows[:, self.couplings.drivers]
            own = self.marginal.log_density(self.couplings.in_units(w)) + self.couplings.log_unit_volume(w)
            for first in range(0, len(rows), _AT_ONCE):
                some = slice(first, first + _AT_ONCE)
                u = np.swapaxes(rows[some, self.couplings.inner], 0, 1).reshape(k, -1)
                law = gaussian_laws(self.couplings.form(w[some]))
                values[some] = _log_densities(law, u).reshape(-1, m).sum(axis=1)
        values += own
        return np.where(np.isfinite(values), values, -np.inf).reshape(np.shape(states)[:-1])

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,)."""
        couplings = self.couplings
        w, u = state[couplings.drivers], state[couplings.inner]
        with np.errstate(over="ignore", invalid="ignore"):
            form = couplings.form(w)
            law = gaussian_laws(form)
            away = u - law.mean
            by_matrix = law.factors.inverses() + law.mean[:, None] * law.mean - u[:, None] * u
            by_matrix, by_linear = np.where(law.is_law, by_matrix, 0.0), np.where(law.is_law, away, 0.0)
            own, by_w = self.marginal.value_and_gradient(couplings.in_units(w))
            own += float(couplings.log_unit_volume(w))
            gradient = np.empty(self.dim)
            gradient[couplings.drivers] = couplings.pull_units(w, by_w) + couplings.pull(
                w, form, 0.5 * by_matrix, by_linear
            )
            gradient[couplings.inner] = -law.factors.times(law.factors.transposed_times(away))
            value = own + float(_log_densities(law, u).sum())
        return value if np.isfinite(value) else -np.inf, gradient


def _log_densities(law: Given, u: FloatArray) -> FloatArray:
    """Return the log density (nats) of each u, shape (m,)."""
    along = law.factors.transposed_times(u - law.mean)
    return np.asarray(law.factors.log_volumes - 0.5 * (along * along).sum(axis=0) - 0.5 * len(u) * _LOG_2_PI)


def _squares(v: FloatArray) -> FloatArray:
    """Return the products of any two elements of each column, shape (..., K * K, n)."""
    products = v[..., :, None, :] * v[..., None, :, :]
    return np.asarray(products.reshape(*v.shape[:-2], v.shape[-2] ** 2, v.shape[-1]))
