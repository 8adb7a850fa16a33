"""Free variables that draws lack, computed from deterministics that they hold: z from ``theta = mu + tau * z``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors

from bread.backends.pymc.density.compiling import detach, interpret_function, replace

Draws = dict[str, NDArray[Any]]
Array = NDArray[np.float64]
Deterministic = Callable[[Array], Array]  # of values (n, k) of one variable, (n, q), all else being the draws'

EXACT = 1e-6  # by which, relative to its terms, a deterministic may miss what it is if it is affine
WIDTHS = (1.0, 1000.0)  # of the values at which it is tried: beyond those too where functions are bent or cut off
ROUNDING = 0.01  # what rounding may add to a derived value, in standard deviations of the values
MOST_NUMBERS = 20_000_000  # of the matrices of all draws: 160 MB


def derive(
    model: Any,
    deterministics: Sequence[Any],
    shapes: Mapping[str, tuple[int, ...]],
    draws: Draws,
    read: Callable[[str], NDArray[Any]],
) -> tuple[Draws, list[str]]:
    """Return the draws with those missing free variables that a deterministic determines, and a note of each.

    It does where it is an affine function of the variable given the others that can be inverted: element by element,
    or a matrix. That is tried by numbers, at every draw: at values far apart it is that affine function, and of the
    values derived it is what the draws say. Nothing goes by names.

    Parameters
    ----------
    model : pymc.Model
    deterministics : sequence of Variable
        Of those that are functions of free variables alone, the ones that the user gives draws of.
    shapes : mapping of str to tuple of int
        Of all free variables.
    draws : dict of str to ndarray, each (chain, draw, ...)
        Of free variables.
    read : callable
        Returns the draws of a deterministic by its name.
    """
    found, notes = dict(draws), []
    free = {one.name: one for one in model.free_RVs}
    while True:
        for one in deterministics:
            above = [name for name, variable in free.items() if variable in set(ancestors([one]))]
            missing = [name for name in above if name not in found]
            if len(missing) != 1:
                continue
            known = {free[name]: found[name] for name in above if name in found}
            values = _derived(one, free[missing[0]], shapes[missing[0]], known, read(one.name))
            if values is not None:
                found[missing[0]] = values
                notes.append(
                    f"posterior= has no {missing[0]!r}: it was computed from {one.name!r}, which determines it; at "
                    f"every draw {one.name!r} is what the values so found make it."
                )
                break
        else:
            return found, notes


def _derived(
    deterministic: Any, variable: Any, shape: tuple[int, ...], known: Mapping[Any, NDArray[Any]], given: NDArray[Any]
) -> NDArray[Any] | None:
    """Return the draws of a variable; None where the deterministic does not determine it."""
    leading = given.shape[:2]
    wanted = given.reshape(leading[0] * leading[1], -1).astype(np.float64)
    columns = [values.reshape(-1, *values.shape[2:]) for values in known.values()]
    function = _many(deterministic, variable, shape, list(known), columns)
    if function is None or variable.type.dtype != "float64" or not wanted.size or not np.prod(shape, dtype=int):
        return None
    floats = [values.dtype for values in (given, *known.values()) if values.dtype.kind == "f"]
    precision = max(float(np.finfo(dtype).eps) for dtype in (*floats, np.dtype(np.float64)))
    size = int(np.prod(shape, dtype=int))
    for solve in (_by_element, _by_matrix):
        with np.errstate(all="ignore"):
            values = solve(function, wanted, size, precision)
            if values is not None and np.allclose(function(values), wanted, rtol=EXACT, atol=EXACT * wanted.std()):
                return values.reshape(*leading, *shape)
    return None


def _many(
    deterministic: Any, variable: Any, shape: tuple[int, ...], known: Sequence[Any], columns: Sequence[NDArray[Any]]
) -> Deterministic | None:
    """Return the deterministic as a function of one variable at all draws of the others."""
    inputs = {one: one.type() for one in (variable, *known)}
    many = {one: pt.tensor(dtype=one.type.dtype, shape=(None, *one.type.shape)) for one in inputs.values()}
    try:
        outputs = vectorize_graph(detach(replace([deterministic], inputs)).outputs, replace=many)
        function = interpret_function(list(many.values()), outputs)
    except Exception:  # PyTensor cannot vectorise every graph
        return None
    typed = [values.astype(str(one.type.dtype)) for one, values in zip(known, columns, strict=True)]

    def call(values: Array) -> Array:
        n = len(values)
        return np.asarray(function(values.reshape(n, *shape), *typed)[0], dtype=np.float64).reshape(n, -1)

    return call


def _by_element(function: Deterministic, wanted: Array, size: int, precision: float) -> Array | None:
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


def _by_matrix(function: Deterministic, wanted: Array, size: int, precision: float) -> Array | None:
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


def _is_affine(
    function: Deterministic, start: Array, product: Deterministic, magnitude: Deterministic, values: Array
) -> bool:
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
    """Return whether rounding has left the values what they were."""
    return bool((error <= ROUNDING * values.std(axis=0)).all())
