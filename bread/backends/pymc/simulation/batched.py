"""Functions of one point, called with many points at once where that gives the same bits.

PyTensor vectorises most graphs; not all of them round alike: a product of matrices, or a sum, may add in another
order. So only graphs of elementwise operations, and of those that move elements, are vectorised; others are called
point by point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import graph_inputs, io_toposort

from bread.backends.pymc.density.compiling import interpret_function, is_generator

MOST_NUMBERS = 2_000_000  # of all outputs of one call
_ELEMENTWISE = (
    "Elemwise", "DimShuffle", "Subtensor", "Reshape", "SpecifyShape", "Shape", "Shape_i", "MakeVector", "Alloc",
    "ScalarFromTensor", "TensorFromScalar", "Join", "Cast", "Second",
)  # fmt: skip

Function = Callable[..., list[Any]]


def vectorised(inputs: Sequence[Any], outputs: Sequence[Any]) -> Function | None:
    """Return outputs as a function of inputs that have one more leading axis; None where rounding may differ.

    Parameters
    ----------
    inputs, outputs : sequence of Variable
        The outputs depend on the inputs and constants alone, or on shared variables.

    Returns
    -------
    callable or None
        Takes arrays (n, ...) and returns arrays (n, ...), equal bit by bit to those of single calls.
    """
    nodes = list(io_toposort(list(inputs), list(outputs)))
    if any(type(node.op).__name__ not in _ELEMENTWISE for node in nodes):
        return None
    if any(is_generator(one) for one in graph_inputs(list(outputs), list(inputs)) if one not in inputs):
        return None
    many = [pt.tensor(dtype=one.type.dtype, shape=(None, *one.type.shape)) for one in inputs]
    try:
        results = vectorize_graph(list(outputs), replace=dict(zip(inputs, many, strict=True)))
        function = interpret_function(many, results)
    except Exception:  # PyTensor cannot vectorise every graph
        return None

    def call(*arguments: NDArray[Any]) -> list[Any]:
        n = len(arguments[0])
        return [
            np.asarray(found) if one is not result else np.broadcast_to(found, (n, *np.shape(found)))
            for found, one, result in zip(function(*arguments), outputs, results, strict=True)
        ]

    return call


def in_batches(function: Function, columns: Sequence[NDArray[Any]], n: int, size: int) -> list[NDArray[Any]]:
    """Call a vectorised function on so few rows at once that outputs of ``size`` numbers a row fit in memory."""
    rows = max(1, MOST_NUMBERS // max(size, 1))
    parts = [function(*(column[low : low + rows] for column in columns)) for low in range(0, n, rows)]
    return [np.concatenate(found) for found in zip(*parts, strict=True)]
