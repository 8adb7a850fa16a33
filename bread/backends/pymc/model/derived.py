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
from bread.backends.support.affine import Array, Function, note_on, precision_of, solve

Draws = dict[str, NDArray[Any]]


def derive(
    model: Any,
    deterministics: Sequence[Any],
    shapes: Mapping[str, tuple[int, ...]],
    draws: Draws,
    read: Callable[[str], NDArray[Any]],
) -> tuple[Draws, list[str]]:
    """Return the draws with those missing free variables that a deterministic determines, and a note of each.

    It does where it is an affine function of the variable given the others that can be inverted
    (`bread.backends.support.affine`). Nothing goes by names.

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
                notes.append(note_on(missing[0], one.name))
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
    size = int(np.prod(shape, dtype=int))
    values = solve(function, wanted, size, precision_of((given, *known.values())))
    return None if values is None else values.reshape(*leading, *shape)


def _many(
    deterministic: Any, variable: Any, shape: tuple[int, ...], known: Sequence[Any], columns: Sequence[NDArray[Any]]
) -> Function | None:
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
