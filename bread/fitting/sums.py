"""How the precision matrix of some coordinates depends on the others, found from gradients alone.

Coordinates in which the log density is exactly quadratic, all together, have a Gaussian law given the others. Where the
others are logarithms of scales, an element of its precision matrix is a sum of exponentials of linear functions of
them. Three values of one of them show an exponent, and the size of the terms that have it; terms of equal size along
two of them are one. What was read so is compared with the density elsewhere before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.paths.precision import Sums

Gradient = Callable[[FloatArray], FloatArray]

ZERO = 1e-7  # of the largest numbers from which a difference is formed, below which it is none
STEP = 0.5  # of a driver, whose exponents are to be seen
POWERS = 4.0  # exponents are multiples of one over this
OFF_POWER = 1e-3  # by which one may be off such a multiple
SAME = 1e-5  # of a term's size, by which it may be off along another driver
NEGLIGIBLE = 1e-8  # of the sum of the sizes of an element's terms, below which what is left is none
AGREES = 1e-5  # of an element, in units of the diagonal, by which it may be off elsewhere


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


def find_sums(quadratic: Quadratic, u: FloatArray, checks: FloatArray, away: FloatArray) -> tuple[Sums, Sums] | None:
    """Return how the precision matrix (its lower triangle) and the linear coefficients depend on u; None if not so.

    Parameters
    ----------
    quadratic : Quadratic
    u : ndarray, shape (k,)
        Where to look. No two terms should be equal there by chance.
    checks : ndarray, shape (c, k)
        Where to compare.
    away : ndarray, shape (c, n)
        Values of the others, there.
    """
    k = len(u)
    places = [quadratic.at(u)]
    for driver in range(k):
        for step in (STEP, -STEP):
            moved = u.copy()
            moved[driver] += step
            places.append(quadratic.at(moved))
    n = len(places[0][1])
    lower = np.tril_indices(n)
    matrices = np.array([matrix for matrix, _ in places])
    if not np.isfinite(matrices).all() or not (np.einsum("cii->ci", matrices) > 0.0).all():
        return None
    scale = np.sqrt(np.einsum("cii->ci", matrices).max(axis=0))
    precision = _terms(matrices[:, lower[0], lower[1]], u, np.outer(scale, scale)[lower])
    vectors = np.array([vector for _, vector in places])
    linear = _terms(vectors, u, np.maximum(np.abs(vectors).max(axis=0), 1e-12 * np.abs(vectors).max()))
    if precision is None or linear is None:
        return None
    found = Sums((lower[0] * n + lower[1])[precision.places], precision.values, precision.exponents), linear
    return found if _agrees(quadratic, found, checks, away) else None


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
    return Sums(np.array(places, dtype=np.int64), np.array(values), np.array(exponents).reshape(shape))


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


def _agrees(quadratic: Quadratic, found: tuple[Sums, Sums], checks: FloatArray, away: FloatArray) -> bool:
    """Return whether the sums are the density's own at other u, and the others' law is a Gaussian one there."""
    for u, y in zip(checks, away, strict=True):
        matrix, linear = quadratic.at(u)
        n = len(linear)
        if not (np.isfinite(matrix).all() and (np.diag(matrix) > 0.0).all()):
            return False
        scale = np.sqrt(np.diag(matrix))
        predicted = found[0].at(u[None], n * n).reshape(n, n)
        if not (np.abs(predicted - np.tril(matrix)) <= AGREES * np.outer(scale, scale)).all():
            return False
        if not (np.abs(found[1].at(u[None], n)[0] - linear) <= AGREES * (np.abs(linear) + scale)).all():
            return False
        if not quadratic.is_quadratic(u, y):
            return False
    return True
