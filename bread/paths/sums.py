"""Numbers that are sums of products of functions of single coordinates: exponentials, and Chebyshev polynomials.

Of a matrix given scales each element is a sum of exponentials of their logarithms; of one given correlations a
polynomial; and what has no such form, such as one given an autoregression's coefficient, is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bread.paths.mixture import FloatArray

LARGEST_EXPONENT = 300.0


class Factors(NamedTuple):
    """Functions at one u.

    Attributes
    ----------
    values : ndarray, shape (f,)
    slopes : ndarray, shape (f, k)
        Their derivatives by u.
    """

    values: FloatArray
    slopes: FloatArray


@dataclass(frozen=True)
class Functions:
    """Functions of u, shape (k,): ``exp(exponents u)`` times a Chebyshev polynomial T of ``(u - centre) / width`` each.

    Attributes
    ----------
    exponents : ndarray, shape (f, k)
        An exponent whose size is beyond `LARGEST_EXPONENT` is held there.
    degrees : ndarray of int, shape (f, k)
        Of the polynomials; T of degree 0 is 1, of degree 1 its argument.
    centres, widths : ndarray, shape (k,)
    is_held : ndarray of bool, shape (k,)
        Whether a polynomial's argument is held within -1 and 1: an interpolation says nothing beyond.
    """

    exponents: FloatArray
    degrees: NDArray[np.int64]
    centres: FloatArray
    widths: FloatArray
    is_held: NDArray[np.bool_]

    @cached_property
    def polynomial_at(self) -> NDArray[np.int64]:
        """Coordinates with polynomials."""
        return np.flatnonzero(self.degrees.any(axis=0)) if len(self.degrees) else np.empty(0, dtype=np.int64)

    @cached_property
    def largest_degree(self) -> int:
        """Of any polynomial."""
        return int(self.degrees.max(initial=0))

    def at(self, u: FloatArray) -> FloatArray:
        """Return the functions at rows of u, shape (rows, f)."""
        values = np.exp(np.clip(u @ self.exponents.T, -LARGEST_EXPONENT, LARGEST_EXPONENT))
        for d in self.polynomial_at:
            values *= chebyshev(self._argument(u[:, d], d), self.largest_degree)[:, self.degrees[:, d]]
        return np.asarray(values)

    def at_one(self, u: FloatArray) -> Factors:
        """Return the functions at one u, and their derivatives: 0 where an exponent or an argument is held."""
        power = self.exponents.dot(u)
        with np.errstate(invalid="ignore"):
            changes = np.abs(power) < LARGEST_EXPONENT
            values = np.exp(np.clip(power, -LARGEST_EXPONENT, LARGEST_EXPONENT))
        slopes = (values * changes)[:, None] * self.exponents
        for d in self.polynomial_at:
            argument = self._argument(u[d], d)
            table = chebyshev(argument, self.largest_degree)[self.degrees[:, d]]
            rate = chebyshev_slopes(argument, self.largest_degree)[self.degrees[:, d]] / self.widths[d]
            by_d = values * rate * (not self.is_held[d] or abs(u[d] - self.centres[d]) < self.widths[d])
            slopes *= table[:, None]
            slopes[:, d] += by_d
            values = values * table
        return Factors(values, slopes)

    def _argument(self, u: FloatArray, d: int) -> FloatArray:
        """Return the argument of polynomials of coordinate d."""
        x = (u - self.centres[d]) / self.widths[d]
        return np.asarray(np.clip(x, -1.0, 1.0) if self.is_held[d] else x)


@dataclass(frozen=True)
class Sums:
    """Numbers that are sums of multiples of functions of u, added up by place.

    Attributes
    ----------
    places : ndarray of int, shape (t,)
        Of the terms.
    values : ndarray, shape (t,)
    numbers : ndarray of int, shape (t,)
        Which function each term is a multiple of.
    functions : Functions
    """

    places: NDArray[np.int64]
    values: FloatArray
    numbers: NDArray[np.int64]
    functions: Functions

    def at(self, u: FloatArray, n: int) -> FloatArray:
        """Return the n sums at rows of u, shape (rows, n)."""
        terms = csr_array((self.values, (self.places, self.numbers)), shape=(n, len(self.functions.exponents)))
        return np.asarray((terms @ self.functions.at(u).T).T)

    def of(self, factors: Factors, n: int) -> FloatArray:
        """Return the n sums where the functions have these values, shape (n,)."""
        return np.asarray(np.bincount(self.places, self.values * factors.values[self.numbers], n), dtype=np.float64)

    def gradient(self, factors: Factors, by_place: FloatArray) -> FloatArray:
        """Return the derivative by u, shape (k,), of what has the derivative ``by_place`` by each sum, shape (n,)."""
        weights = np.bincount(self.numbers, self.values * by_place[self.places], len(factors.values))
        return np.asarray(weights.dot(factors.slopes))


def exponentials(places: NDArray[np.int64], values: FloatArray, exponents: FloatArray) -> Sums:
    """Return the sums of ``values * exp(exponents u)``, shapes (t,) and (t, k), by place."""
    k = exponents.shape[1]
    unique, numbers = np.unique(exponents, axis=0, return_inverse=True)
    functions = Functions(
        unique, np.zeros(unique.shape, dtype=np.int64), np.zeros(k), np.ones(k), np.zeros(k, dtype=bool)
    )
    return Sums(places, values, np.asarray(numbers, dtype=np.int64).ravel(), functions)


def chebyshev(x: FloatArray, degree: int) -> FloatArray:
    """Return Chebyshev polynomials of degrees 0 to ``degree`` at x, shape ``(*x.shape, degree + 1)``."""
    x = np.asarray(x, dtype=np.float64)
    table = [np.ones_like(x), x]
    for _ in range(2, degree + 1):
        table.append(2.0 * x * table[-1] - table[-2])
    return np.stack(table[: degree + 1], axis=-1)


def chebyshev_slopes(x: FloatArray, degree: int) -> FloatArray:
    """Return the derivatives of these: n times a polynomial of the second kind, shape ``(*x.shape, degree + 1)``."""
    x = np.asarray(x, dtype=np.float64)
    second = [np.zeros_like(x), np.ones_like(x)]
    for _ in range(2, degree + 1):
        second.append(2.0 * x * second[-1] - second[-2])
    return np.stack(second[: degree + 1], axis=-1) * np.arange(degree + 1)
