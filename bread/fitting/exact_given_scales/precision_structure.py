"""How the precision matrix of some coordinates depends on the others, found from gradients alone.

Coordinates in which the log density is exactly quadratic, all together, have a Gaussian law given the others. Where the
others are logarithms of scales, an element of its precision matrix is a sum of exponentials of linear functions of
them. Three values of one of them show an exponent, and the size of the terms that have it; terms of equal size along
two of them are one. Where that is not so a grid may show what is
(`bread.fitting.exact_given_scales.separable_functions`). What was read is compared with the density elsewhere before
it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.exact_given_scales.separable_functions import Numbers, grid_sums
from bread.paths.sums import Sums, exponentials

Gradient = Callable[[FloatArray], FloatArray]

ZERO = 1e-7  # of the largest numbers from which a difference is formed, below which it is none
STEP = 0.5  # of a driver, whose exponents are to be seen
POWERS = 4.0  # exponents are multiples of one over this
OFF_POWER = 1e-3  # by which one may be off such a multiple
SAME = 1e-5  # of a term's size, by which it may be off along another driver
NEGLIGIBLE = 1e-8  # of the sum of the sizes of an element's terms, below which what is left is none
AGREES = 1e-5  # of an element, in units of the diagonal, by which it may be off elsewhere
MOST_GRADIENTS = 10_000  # for a grid


def quadratic_coordinates(gradient: Gradient, state: FloatArray, spread: FloatArray) -> NDArray[np.int64]:
    """Return coordinates in which a log density is quadratic, each with all others of them.

    Parameters
    ----------
    gradient : callable
        Of the log density, shape (dim,), at a state.
    state, spread : ndarray, shape (dim,)
        Where to look, and how far along each coordinate.
    """
    dim = len(state)
    middle = gradient(state)
    curved = np.zeros((dim, dim), dtype=bool)  # [j, i]: along j the derivative by i is no straight line
    for j in range(dim):
        step = np.zeros(dim)
        step[j] = spread[j]
        ahead, behind = gradient(state + step), gradient(state - step)
        size = np.abs(ahead) + np.abs(behind) + np.abs(middle)
        second = np.abs(ahead + behind - 2.0 * middle)
        curved[j] = ~(second <= ZERO * (size + size.max() * 1e-6))
    kept = ~np.diag(curved)
    while True:
        conflicts = (curved | curved.T) & kept & kept[:, None]
        counts = conflicts.sum(axis=1)
        if not counts.any():
            return np.flatnonzero(kept)
        kept[int(np.argmax(counts))] = False


class Quadratic:
    """Minus the Hessian of some coordinates, and their gradient at zero, given the others.

    Parameters
    ----------
    gradient : callable
    others : ndarray of int, shape (n,)
        Coordinates in which the log density is quadratic.
    dim : int
    spread : ndarray, shape (dim,)
        How far to go along each.
    """

    def __init__(self, gradient: Gradient, others: NDArray[np.int64], dim: int, spread: FloatArray) -> None:
        self._gradient, self._others, self._dim = gradient, others, dim
        self.drivers = np.delete(np.arange(dim), others)
        self._spread = spread

    @property
    def n(self) -> int:
        """Number of these coordinates."""
        return len(self._others)

    def linear(self, u: FloatArray) -> FloatArray:
        """Return the linear coefficients, shape (n,), at one u."""
        state = np.zeros(self._dim)
        state[self.drivers] = u
        return self._gradient(state)[self._others]

    def at(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the precision matrix, shape (n, n), and the linear coefficients, shape (n,), at one u."""
        state = np.zeros(self._dim)
        state[self.drivers] = u
        linear = self._gradient(state)[self._others]
        rows = []
        for j in self._others:
            moved = state.copy()
            moved[j] = self._spread[j]
            rows.append((linear - self._gradient(moved)[self._others]) / self._spread[j])
        precision = np.array(rows)
        return 0.5 * (precision + precision.T), linear

    def is_quadratic(self, u: FloatArray, away: FloatArray) -> bool:
        """Return whether the gradient is a straight line through zero, along a direction of all of the others."""
        state = np.zeros(self._dim)
        state[self.drivers] = u
        ahead, behind = state.copy(), state.copy()
        ahead[self._others], behind[self._others] = away, -away
        ends = [self._gradient(one)[self._others] for one in (ahead, behind, state)]
        size = np.abs(ends).sum(axis=0)
        return bool((np.abs(ends[0] + ends[1] - 2.0 * ends[2]) <= 10.0 * ZERO * (size + 1e-6 * size.max())).all())


class Where(NamedTuple):
    """Where to look at a density, and where to compare.

    Attributes
    ----------
    u : ndarray, shape (k,)
        No two terms should be equal there by chance.
    bounds : tuple of ndarray, shape (k,)
        Between which nearly all u lie.
    checks : ndarray, shape (c, k)
    away : ndarray, shape (c, n)
        Values of the others at the checks.
    """

    u: FloatArray
    bounds: tuple[FloatArray, FloatArray]
    checks: FloatArray
    away: FloatArray


def find_sums(quadratic: Quadratic, where: Where) -> tuple[Sums, Sums] | None:
    """Return how the precision matrix (its lower triangle) and the linear coefficients depend on u; None if not so.

    Elements that each have exponents of their own are found along each coordinate; others on a grid, in few of them.
    """
    n = quadratic.n
    places = _lower(n)

    def numbers(u: FloatArray) -> FloatArray:
        matrix, linear = quadratic.at(u)
        return np.concatenate([matrix.ravel()[places], linear])

    def scale(rows: FloatArray) -> FloatArray:
        diagonal = np.sqrt(np.maximum(rows[:, : len(places)][:, _on_diagonal(n)], 0.0).max(axis=0))
        linear = np.abs(rows[:, len(places) :]).max(axis=0) + diagonal
        return np.concatenate([np.outer(diagonal, diagonal).ravel()[places], linear])

    def both(sums: Sums | None) -> tuple[Sums, Sums] | None:
        if sums is None:
            return None
        in_matrix = sums.places < len(places)
        matrix, linear = _some(sums, in_matrix), _some(sums, ~in_matrix)
        found = replace(matrix, places=places[matrix.places]), replace(linear, places=linear.places - len(places))
        return found if _agrees(quadratic, found, where) else None

    found = both(axis_sums(numbers, where.u, scale))
    return found or both(grid_sums(numbers, where.u, where.bounds, scale, MOST_GRADIENTS // (n + 1)))


def find_linear(quadratic: Quadratic, precision: Sums, where: Where) -> Sums | None:
    """Return how the linear coefficients depend on u, where the precision matrix is the one of other data.

    None where it is not, or they are no sums.
    """
    n = quadratic.n
    diagonal = precision.at(where.u[None], n * n).reshape(n, n).diagonal()

    def scale(rows: FloatArray) -> FloatArray:
        return np.asarray(np.abs(rows).max(axis=0) + np.sqrt(np.maximum(diagonal, 0.0)))

    def found(sums: Sums | None) -> Sums | None:
        return sums if sums and _agrees(quadratic, (precision, sums), where) else None

    if not _agrees(quadratic, (precision, None), where, 1):
        return None
    return found(axis_sums(quadratic.linear, where.u, scale)) or found(
        grid_sums(quadratic.linear, where.u, where.bounds, scale, MOST_GRADIENTS)
    )


def axis_sums(numbers: Numbers, u: FloatArray, scale: Numbers) -> Sums | None:
    """Return the sums of exponentials that numbers are, seen along each coordinate alone; None if they are not.

    Each number may have one exponent in a coordinate, which goes with one set of the others' exponents.

    Parameters
    ----------
    numbers : callable
        Of u, shape (k,), the numbers, shape (e,).
    u : ndarray, shape (k,)
    scale : callable
        Of numbers at some u, shape (n, e), how large each of them is, shape (e,), for what counts as zero.
    """
    k = len(u)
    places = [numbers(u)]
    for driver in range(k):
        for step in (STEP, -STEP):
            moved = u.copy()
            moved[driver] += step
            places.append(numbers(moved))
    values = np.array(places)
    return _terms(values, u, scale(values)) if np.isfinite(values).all() else None


def _lower(n: int) -> NDArray[np.int64]:
    """Return where the lower triangle of a matrix is, in all of its elements, row by row."""
    rows, columns = np.tril_indices(n)
    return np.asarray(rows * n + columns)


def _on_diagonal(n: int) -> NDArray[np.int64]:
    """Return which of them are on its diagonal."""
    return np.cumsum(np.arange(1, n + 1)) - 1


def _some(sums: Sums, is_kept: NDArray[np.bool_]) -> Sums:
    """Return some of the terms, and the functions of which these are multiples."""
    used, numbers = np.unique(sums.numbers[is_kept], return_inverse=True)
    functions = replace(
        sums.functions, exponents=sums.functions.exponents[used], degrees=sums.functions.degrees[used]
    )  # fmt: skip
    return Sums(sums.places[is_kept], sums.values[is_kept], np.asarray(numbers).ravel(), functions)


def _terms(elements: FloatArray, u: FloatArray, scale: FloatArray) -> Sums | None:
    """Return the terms of elements, shape (1 + 2 k, e), at u and ahead and behind along each driver; None if not so."""
    places: list[int] = []
    values: list[float] = []
    exponents: list[FloatArray] = []
    for place in range(elements.shape[1]):
        found = _of_element(elements[:, place], u, float(scale[place]))
        if found is None:
            return None
        for value, exponent in found:
            places.append(place)
            values.append(value)
            exponents.append(exponent)
    shape = (len(places), len(u))
    return exponentials(np.array(places, dtype=np.int64), np.array(values), np.array(exponents).reshape(shape))


def _of_element(numbers: FloatArray, u: FloatArray, scale: float) -> list[tuple[float, FloatArray]] | None:
    """Return the terms of one element: values at u = 0, and exponents."""
    middle, ahead, behind = numbers[0], numbers[1::2] - numbers[0], numbers[0] - numbers[2::2]
    depends = np.maximum(np.abs(ahead), np.abs(behind)) > ZERO * scale
    groups: list[tuple[float, FloatArray]] = []  # size at u, exponents
    for driver in np.flatnonzero(depends):
        ratio = ahead[driver] / behind[driver] if behind[driver] != 0.0 else np.inf
        if not (np.isfinite(ratio) and ratio > 0.0):
            return None
        raw = np.log(ratio) / STEP
        exponent = np.round(raw * POWERS) / POWERS
        if exponent == 0.0 or abs(raw - exponent) > OFF_POWER:
            return None
        size = ahead[driver] / np.expm1(exponent * STEP)
        for known, powers in groups:
            if abs(known - size) <= SAME * max(abs(known), abs(size)) + 10.0 * ZERO * scale:
                powers[driver] = exponent
                break
        else:
            powers = np.zeros(len(u))
            powers[driver] = exponent
            groups.append((float(size), powers))
    sizes = [size for size, _ in groups]
    left = float(middle - sum(sizes))
    if abs(left) > NEGLIGIBLE * (abs(middle) + sum(map(abs, sizes))) + ZERO * scale:
        groups.append((left, np.zeros(len(u))))
    return [(float(size * np.exp(-powers.dot(u))), powers) for size, powers in groups]


def _agrees(quadratic: Quadratic, found: tuple[Sums, Sums | None], where: Where, n_checks: int | None = None) -> bool:
    """Return whether the sums are the density's own at other u, and the others' law is a Gaussian one there."""
    n = quadratic.n
    for u, y in zip(where.checks[:n_checks], where.away, strict=False):
        matrix, linear = quadratic.at(u)
        if not (np.isfinite(matrix).all() and (np.diag(matrix) > 0.0).all()):
            return False
        scale = np.sqrt(np.diag(matrix))
        predicted = found[0].at(u[None], n * n).reshape(n, n)
        if not (np.abs(predicted - np.tril(matrix)) <= AGREES * np.outer(scale, scale)).all():
            return False
        if found[1] is None:
            continue
        if not (np.abs(found[1].at(u[None], n)[0] - linear) <= AGREES * (np.abs(linear) + scale)).all():
            return False
        if not quadratic.is_quadratic(u, y):
            return False
    return True
