"""Standardised effects: what a scale multiplies, the z of a non-centred hierarchy or of a Gaussian process.

They are drawn anew while hyperparameters are held, as the effects of a centred hierarchy are.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

_CENTRED = {"NormalRV": 0, "StudentTRV": 1, "LaplaceRV": 0}  # where the location stands among the parameters
_SEEN_THROUGH = (
    "DimShuffle", "Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "Reshape", "SpecifyShape", "Sum", "Cast",
    "Neg", "Identity", "Second", "ExpandDims", "Squeeze",
)  # fmt: skip
_PRODUCTS = ("Mul", "Dot", "TrueDiv", "MatMul", "Dot22", "BatchedDot", "VecMat", "MatVec", "VecDot", "Gemv")


def latents(model: Any) -> set[str]:
    """Return the names of free variables that are standardised effects.

    A vector (or more) whose prior is normal, Student t or Laplace around 0 with constant parameters, and that enters
    the likelihood only as a factor of a product, elementwise or of matrices, with an expression of other free
    variables. Constant factors, sums, indices and reshapes are looked through. None where a `scan` stands between:
    such a graph cannot be read.
    """
    graph = _Graph(model)
    if graph.has_scan:
        return set()
    return {
        variable.name
        for variable in model.free_RVs
        if variable.type.ndim > 0 and _is_centred(variable, graph) and graph.is_factor(variable)
    }


class _Graph:
    """What the observed variables are computed from, with the users of every value."""

    def __init__(self, model: Any) -> None:
        self._free = set(model.free_RVs)
        self._clients: dict[Any, list[Any]] = defaultdict(list)
        self._parents: dict[Any, frozenset[Any]] = {}
        self.has_scan = False
        seen: set[Any] = set()
        for variable in ancestors(model.observed_RVs):
            node = variable.owner
            if node is None or node in seen:
                continue
            seen.add(node)
            self.has_scan = self.has_scan or type(node.op).__name__ == "Scan"
            for value in node.inputs:
                self._clients[value].append(node)

    def free_parents(self, value: Any) -> frozenset[Any]:
        """Return the free variables that a value depends on, itself included."""
        if value not in self._parents:
            self._parents[value] = frozenset(self._free.intersection(ancestors([value])))
        return self._parents[value]

    def is_factor(self, variable: Any) -> bool:
        """Return whether every use of a variable is a factor beside an expression of other free variables."""
        waiting, n_products = [variable], 0
        while waiting:
            value = waiting.pop()
            for node in self._clients[value]:
                kind = _kind(node.op)
                others = [given for given in node.inputs if given is not value]
                if kind in _PRODUCTS and not (kind == "TrueDiv" and node.inputs[0] is not value):
                    if len(others) < len(node.inputs) - 1:  # its own square
                        return False
                    if any(self.free_parents(other) - {variable} for other in others):
                        n_products += 1
                        continue
                elif kind not in _SEEN_THROUGH or node.inputs[0] is not value:
                    return False
                waiting += node.outputs
        return n_products > 0


def _kind(op: Any) -> str:
    """Return what an operation does, whatever it is wrapped in."""
    for name in ("core_op", "scalar_op"):
        op = getattr(op, name, op)
    return type(op).__name__


def _is_centred(variable: Any, graph: _Graph) -> bool:
    op = variable.owner.op
    place = _CENTRED.get(type(op).__name__)
    if place is None:
        return False
    parameters = op.dist_params(variable.owner)
    if graph.free_parents(variable) - {variable}:
        return False
    return _is_zero(parameters[place])


def _is_zero(value: Any) -> bool:
    while value.owner is not None and _kind(value.owner.op) in _SEEN_THROUGH:
        value = value.owner.inputs[0]
    return isinstance(value, Constant) and not np.any(value.data)
