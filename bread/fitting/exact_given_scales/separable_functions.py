"""How numbers depend on some coordinates, as sums of products of functions of one each, from values on a grid.

Along each coordinate alone it is seen which functions there are: exponentials, a polynomial, or, where nothing closed
fits, as many Chebyshev polynomials as interpolate what is there. Values on the grid of all of them give the multiples.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.paths.sums import Functions, Sums, chebyshev

Numbers = Callable[[FloatArray], FloatArray]

OFFSETS = 0.5 * np.arange(-3.0, 4.0)  # along one coordinate, where functions of it are recognised
SPAN = 1.5  # to either side, of the grid
EXPONENTS = [sign * size for size in np.arange(0.25, 4.25, 0.25) for sign in (-1.0, 1.0)]
PAIRED = [power for power in EXPONENTS if power % 0.5 == 0.0]  # of which there may be two
FITS = 1e-8  # of an element's scale, by which functions may be off where they are recognised
TAIL = 1e-8  # of the same, below which coefficients of Chebyshev polynomials are left out
NEGLIGIBLE = 1e-8  # of the same, below which a term is
LARGEST_DEGREE = 40  # of an interpolation
NEAR_ZERO = 5.0  # spreads, within which a polynomial's argument is the coordinate itself


class Axis(NamedTuple):
    """Functions of one coordinate, and where to look at them.

    Attributes
    ----------
    exponents : tuple of float
    degrees : tuple of int
        Of each function, one of the two is 0.
    nodes : ndarray, shape (m,)
        As many as there are functions.
    centre, width : float
        Of the polynomials' argument.
    is_held : bool
    """

    exponents: tuple[float, ...]
    degrees: tuple[int, ...]
    nodes: FloatArray
    centre: float = 0.0
    width: float = 1.0
    is_held: bool = False

    def design(self, u: FloatArray) -> FloatArray:
        """Return the functions at values of the coordinate, shape (n, m)."""
        table = chebyshev((u - self.centre) / self.width, max(self.degrees, default=0))
        return np.asarray(np.exp(np.outer(u, self.exponents)) * table[:, list(self.degrees)])


def grid_sums(
    numbers: Numbers, u: FloatArray, bounds: tuple[FloatArray, FloatArray], scale: Numbers, most: int
) -> Sums | None:
    """Return the sums of products that numbers are; None where that takes too many of their values, or is not so.

    What is returned is right on the grid; elsewhere it should be compared.

    Parameters
    ----------
    numbers : callable
        Of u, shape (k,), the numbers, shape (e,).
    u : ndarray, shape (k,)
        Where to look.
    bounds : tuple of ndarray, shape (k,)
        Between which a coordinate lies, where it is interpolated.
    scale : callable
        Of numbers at some u, shape (n, e), how large each of them is, shape (e,), for what counts as zero.
    most : int
        Values that may be taken.
    """
    axes, n_values, n_nodes = [], 0, 1
    for d in range(len(u)):
        axis = _axis(numbers, u, d, (float(bounds[0][d]), float(bounds[1][d])), scale)
        if axis is None:
            return None
        n_values += len(OFFSETS) + (LARGEST_DEGREE + 1) * axis.is_held
        n_nodes *= len(axis.nodes)
        if n_values + n_nodes > most:
            return None
        axes.append(axis)
    shape = tuple(len(axis.nodes) for axis in axes)
    values = np.array([numbers(np.array(node)) for node in product(*(axis.nodes for axis in axes))])
    if not np.isfinite(values).all():
        return None
    sizes = scale(values)
    values = values.reshape(*shape, -1)
    largest = np.ones(shape)
    for d, axis in enumerate(axes):
        design = axis.design(axis.nodes)
        values = np.moveaxis(np.tensordot(np.linalg.inv(design), values, axes=(1, d)), 0, d)
        largest = largest * np.abs(design).max(axis=0).reshape([-1 if i == d else 1 for i in range(len(axes))])
    is_kept = np.abs(values) * largest[..., None] > NEGLIGIBLE * sizes
    return _collected(axes, values, is_kept)


def _collected(axes: list[Axis], multiples: FloatArray, is_kept: NDArray[np.bool_]) -> Sums:
    """Return the terms that are kept, of those functions that any of them has."""
    at = np.argwhere(is_kept)
    used, functions = np.unique(at[:, :-1], axis=0, return_inverse=True)
    exponents = np.array([[axis.exponents[i] for axis, i in zip(axes, row, strict=True)] for row in used])
    degrees = np.array([[axis.degrees[i] for axis, i in zip(axes, row, strict=True)] for row in used])
    shape = (len(used), len(axes))
    return Sums(
        at[:, -1], multiples[is_kept], np.asarray(functions, dtype=np.int64).ravel(),
        Functions(
            exponents.reshape(shape).astype(np.float64), degrees.reshape(shape).astype(np.int64),
            np.array([axis.centre for axis in axes]), np.array([axis.width for axis in axes]),
            np.array([axis.is_held for axis in axes]),
        ),
    )  # fmt: skip


def _axis(
    numbers: Numbers, u: FloatArray, d: int, bounds: tuple[float, float], scale: Numbers
) -> Axis | None:  # fmt: skip
    """Return the functions of one coordinate that numbers are sums of, the others as they are; None without any."""

    def along(nodes: FloatArray) -> FloatArray:
        return np.array([numbers(np.where(np.arange(len(u)) == d, node, u)) for node in nodes])

    at = u[d] + OFFSETS
    values = along(at)
    if not np.isfinite(values).all():
        return None
    sizes = scale(values)
    centre = 0.0 if abs(u[d]) < NEAR_ZERO * (bounds[1] - bounds[0]) else u[d]
    width = abs(u[d] - centre) + bounds[1] - bounds[0]
    for exponents, degrees in _candidates():
        nodes = u[d] + np.linspace(-SPAN, SPAN, len(exponents)) if len(exponents) > 1 else u[d : d + 1]
        axis = Axis(exponents, degrees, nodes, centre, width)
        design = axis.design(at)
        design = design / np.abs(design).max(axis=0)
        off = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
        if (np.abs(off) <= FITS * sizes).all():
            return axis
    return _interpolated(along, bounds, scale)


def _candidates() -> list[tuple[tuple[float, ...], tuple[int, ...]]]:
    """Return sets of functions, exponents and degrees of each, the smallest first."""
    found: list[tuple[tuple[float, ...], tuple[int, ...]]] = [((0.0,), (0,))]
    found += [((0.0, power), (0, 0)) for power in EXPONENTS]
    found += [((0.0,) * (degree + 1), tuple(range(degree + 1))) for degree in (1, 2)]
    return found + [((0.0, *pair), (0, 0, 0)) for pair in combinations(PAIRED, 2)]


def _interpolated(along: Numbers, bounds: tuple[float, float], scale: Numbers) -> Axis | None:
    """Return as many Chebyshev polynomials as interpolate what is between the bounds; None where too many do not."""
    centre, width = 0.5 * (bounds[0] + bounds[1]), 0.5 * (bounds[1] - bounds[0])
    nodes = _chebyshev_nodes(LARGEST_DEGREE + 1)
    values = along(centre + width * nodes)
    if not np.isfinite(values).all():
        return None
    coefficients = np.linalg.solve(chebyshev(nodes, LARGEST_DEGREE), values)
    is_large = (np.abs(coefficients) > TAIL * scale(values)).any(axis=1)
    degree = int(np.flatnonzero(is_large).max(initial=0))
    if degree > LARGEST_DEGREE - 2:
        return None
    degrees = tuple(range(degree + 1))
    return Axis((0.0,) * len(degrees), degrees, centre + width * _chebyshev_nodes(len(degrees)), centre, width, True)


def _chebyshev_nodes(n: int) -> FloatArray:
    """Return the zeros of the Chebyshev polynomial of degree n."""
    return np.asarray(np.cos(np.pi * (np.arange(n) + 0.5) / n))
