"""Values of a variable at which an affine function of it is what is given: solved by numbers, and tried far off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], Array]  # of values (n, k), (n, q); row i belongs to draw i

EXACT = 1e-6  # by which, relative to its terms, a function may miss what it is if it is affine
WIDTHS = (1.0, 1000.0)  # of the values at which it is tried: beyond those too where functions are bent or cut off
ROUNDING = 0.01  # what rounding may add to a derived value, in standard deviations of the values (root mean square)
LOOKED_AT = 200  # values of a variable whose decimals are counted
DECIMALS = 16  # from which a number in double precision is whole
MOST_NUMBERS = 20_000_000  # of the matrices of all draws: 160 MB


def solve(function: Function, wanted: Array, size: int, precision: float) -> Array | None:
    """Return the values (n, size) at which ``function`` is ``wanted``; None where it does not determine them.

    It does where it is an affine function that can be inverted: element by element, or a matrix. That is tried by
    numbers, at every draw: at values far apart it is that affine function, and of the values found it is ``wanted``.

    Parameters
    ----------
    function : callable
    wanted : ndarray, shape (n, q)
    size : int
    precision : float
        Relative precision of what was given.
    """
    for way in (_by_element, _by_matrix):
        with np.errstate(all="ignore"):
            values = way(function, wanted, size, precision)
            if values is not None and np.allclose(function(values), wanted, rtol=EXACT, atol=EXACT * wanted.std()):
                return values
    return None


def note_on(variable: str, source: str) -> str:
    """Return what to say of draws that were computed."""
    return (
        f"posterior= has no {variable!r}: it was computed from {source!r}, which determines it; at every draw "
        f"{source!r} is what the values so found make it."
    )


def precision_of(given: Iterable[NDArray[Any]]) -> float:
    """Return the largest relative rounding of draws: that of their type, or of the decimals that a file kept."""
    return max((_precision(values) for values in given if values.dtype.kind == "f"), default=float(np.finfo(float).eps))


def _precision(values: NDArray[Any]) -> float:
    some = values.ravel()[:: max(1, values.size // LOOKED_AT)]
    written = [float(one) for one in some]
    digits = next((n for n in range(1, DECIMALS) if all(float(f"{one:.{n}g}") == one for one in written)), DECIMALS)
    return max(float(np.finfo(values.dtype).eps), 0.0 if digits == DECIMALS else 0.5 * 10.0 ** (1 - digits))


def _by_element(function: Function, wanted: Array, size: int, precision: float) -> Array | None:
    """Solve ``wanted = a + b * values``, element by element."""
    if wanted.shape[1] != size:
        return None
    zeros = np.zeros((len(wanted), size))
    start = function(zeros)
    slope = function(zeros + 1.0) - start
    values = (wanted - start) / slope
    error = precision * (np.abs(wanted) + np.abs(start)) / np.abs(slope)
    is_right = _is_affine(function, start, lambda one: slope * one, lambda one: np.abs(slope * one), values)
    return values if is_right and _is_exact(values, error) else None


def _by_matrix(function: Function, wanted: Array, size: int, precision: float) -> Array | None:
    """Solve ``wanted = a + A @ values``."""
    n = len(wanted)
    if wanted.shape[1] != size or n * size * size > MOST_NUMBERS:
        return None
    zeros = np.zeros((n, size))
    start = function(zeros)
    matrix = np.stack([function(zeros + unit) - start for unit in np.eye(size)], axis=2)
    try:
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None

    def times(left: Array, right: Array) -> Array:
        return np.asarray(np.einsum("nij,nj->ni", left, right), dtype=np.float64)

    values = times(inverse, wanted - start)
    error = precision * times(np.abs(inverse), np.abs(wanted) + np.abs(start))
    is_right = _is_affine(
        function, start, lambda one: times(matrix, one), lambda one: times(np.abs(matrix), np.abs(one)), values
    )
    return values if is_right and _is_exact(values, error) else None


def _is_affine(function: Function, start: Array, product: Function, magnitude: Function, values: Array) -> bool:
    """Return whether the function is ``start`` + ``product``: at the values derived, turned round, and far off."""
    if not np.isfinite(values).all():
        return False
    rng = np.random.default_rng(0)
    for tried in (values, -values, *(width * rng.standard_normal(values.shape) for width in WIDTHS)):
        miss = np.abs(function(tried) - start - product(tried))
        if not (miss <= EXACT * (np.abs(start) + magnitude(tried))).all():
            return False
    return True


def _is_exact(values: Array, error: Array) -> bool:
    """Return whether rounding has left the values what they were, but at few draws."""
    return bool((np.sqrt((error**2).mean(axis=0)) <= ROUNDING * values.std(axis=0)).all())
