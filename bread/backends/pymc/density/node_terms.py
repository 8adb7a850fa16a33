"""The log density of a free variable given its parents, at many states at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph

from bread.backends.base import FloatArray
from bread.backends.pymc.density.compiling import detach, interpret_function, replace
from bread.backends.pymc.model.layout import StateLayout

Function = Callable[[FloatArray], FloatArray]
# Of a matrix of a batch it makes an output of another type, an error of PyTensor 2.
BROKEN_REWRITES = ("slogdet_specialization",)


def parts_of(states: Any, batch: tuple[Any, ...], values: Sequence[Any], layout: StateLayout) -> dict[Any, Any]:
    """Return the part of each of ``values``, in the order of the layout, in states of shape (*batch, dim)."""
    parts, offset = {}, 0
    for value, shape, size in zip(values, layout.shapes, layout.sizes, strict=True):
        parts[value] = states[..., offset : offset + size].reshape((*batch, *shape)).astype(value.type.dtype)
        offset += size
    return parts


@dataclass
class NodeTerms:
    """Log densities as the model has them, transforms and Jacobians included; a function is built when first used.

    Attributes
    ----------
    model : pymc.Model
        Only read.
    layout : StateLayout
    """

    model: Any
    layout: StateLayout
    _functions: dict[tuple[str, bool], Function] = field(default_factory=dict)

    def __call__(self, name: str, states: FloatArray, *, jacobian: bool = True) -> FloatArray:
        """Return the terms of a variable at states (n, dim), shape (n, part), in nats; -inf where one raises.

        Without ``jacobian`` they are the log density in the model's own coordinates.

        A graph that cannot be vectorised, and a batch in which one state raises, are evaluated state by state.
        """
        key = name, jacobian
        if key not in self._functions:
            try:
                self._functions[key] = self._vectorised(*key)
            except Exception:  # PyTensor cannot vectorise, or not rewrite, some graphs of matrices
                self._functions[key] = self._one_by_one(*key)
        function = self._functions[key]
        states = np.asarray(states, dtype=np.float64)
        with np.errstate(all="ignore"):
            try:
                return function(states)
            except Exception:
                return _raising_is_zero(function, states)

    def _terms(self, name: str, jacobian: bool) -> list[Any]:
        terms: list[Any] = self.model.logp(vars=[self.model[name]], jacobian=jacobian, sum=False)
        return detach(terms).outputs

    def _parts(self, states: Any, batch: tuple[Any, ...]) -> dict[Any, Any]:
        """Return the part of each value variable in states, whose last axis is that of the coordinates."""
        by_name = {variable.name: variable for variable in self.model.value_vars}
        return parts_of(states, batch, [by_name[name] for name in self.layout.names], self.layout)

    def _vectorised(self, name: str, jacobian: bool) -> Function:
        states = pt.matrix("states", dtype="float64")
        parts = self._parts(states, (states.shape[0],))
        with pm.Model(check_bounds=self.model.check_bounds):
            outputs = vectorize_graph(self._terms(name, jacobian), parts)
            function = interpret_function([states], list(outputs), without=BROKEN_REWRITES)
        return lambda rows: np.asarray(function(rows)[0], dtype=np.float64).reshape(len(rows), -1)

    def _one_by_one(self, name: str, jacobian: bool) -> Function:
        vector = pt.vector("state", dtype="float64")
        parts = {value: value.type.filter_variable(part) for value, part in self._parts(vector, ()).items()}
        with pm.Model(check_bounds=self.model.check_bounds):
            outputs = replace(self._terms(name, jacobian), parts)
            function = interpret_function([vector], outputs, without=BROKEN_REWRITES)
        return lambda rows: np.array([np.ravel(function(row)[0]) for row in rows], dtype=np.float64)


def _raising_is_zero(function: Function, states: FloatArray) -> FloatArray:
    """Evaluate row by row. A state that raises has density zero; if all do, the error is no matter of the state.

    Raises
    ------
    Exception
        What the last one raised.
    """
    rows: list[FloatArray | None] = []
    last: Exception | None = None
    for state in states:
        try:
            rows.append(function(state[None])[0])
        except Exception as error:
            last = error
            rows.append(None)
    shape = next((row.shape for row in rows if row is not None), None)
    if shape is None:
        assert last is not None
        raise last
    return np.array([np.full(shape, -np.inf) if row is None else row for row in rows])
