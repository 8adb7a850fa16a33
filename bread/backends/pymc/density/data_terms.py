"""What a density computes of data alone, computed once a data set.

In the user's model data are constants, and PyTensor computes once what depends on nothing else: the logarithms of
factorials of counts, say. Here data can be set, and a gradient would compute all of that anew: of 4,000 counts half of
its time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise

from bread.backends.pymc.density.compiling import InterpretedFunction, interpret_function, replace

ARITHMETIC = (Elemwise, CAReduce, DimShuffle)


class DataTerms:
    """Shared variables that hold functions of others, brought up to date by `update`.

    Parameters
    ----------
    function : callable
        Of the values of ``sources``; returns those of ``terms``.
    sources, terms : sequence of SharedVariable
    """

    def __init__(self, function: InterpretedFunction, sources: Sequence[Any], terms: Sequence[Any]) -> None:
        self._function, self._sources, self._terms = function, list(sources), list(terms)

    def update(self) -> None:
        """Compute the terms of the present data."""
        found = self._function(*(source.get_value(borrow=True) for source in self._sources))
        for shared, value in zip(self._terms, found, strict=True):
            shared.set_value(np.asarray(value, dtype=shared.type.dtype), borrow=True)


def of_data_alone(graphs: Sequence[Any], data: Collection[SharedVariable]) -> tuple[list[Any], DataTerms | None]:
    """Return copies of graphs that read from shared variables what they computed of data alone.

    What is larger than the data that it is made of is left where it is: it would be kept, and copied to workers.

    Parameters
    ----------
    graphs : sequence of Variable
    data : collection of SharedVariable
        What is data; other shared variables are not.

    Returns
    -------
    graphs : list of Variable
    terms : DataTerms or None
        None where nothing is computed of data alone.
    """
    found = _largest_parts(graphs, data)
    if not found:
        return list(graphs), None
    function = _function(data, found)
    values = function(*(source.get_value(borrow=True) for source in data))
    size = max(source.get_value(borrow=True).size for source in data)
    kept = {
        variable: pytensor.shared(np.asarray(value, variable.type.dtype), shape=variable.type.shape)
        for variable, value in zip(found, values, strict=True)
        if np.size(value) <= size
    }
    if not kept:
        return list(graphs), None
    if len(kept) < len(found):
        function = _function(data, list(kept))
    return replace(graphs, kept), DataTerms(function, list(data), list(kept.values()))


def _function(data: Collection[SharedVariable], terms: Sequence[Any]) -> InterpretedFunction:
    inputs = {source: source.type() for source in data}
    return interpret_function(list(inputs.values()), replace(terms, inputs))


def _largest_parts(graphs: Sequence[Any], data: Collection[SharedVariable]) -> list[Any]:
    """Return what arithmetic makes of data alone, and what is no such thing uses. Other operations may raise."""
    alone, parts = set(data), dict[Any, None]()
    for node in io_toposort([], list(graphs)):
        inner = [one for one in node.inputs if one in alone]
        others = [one for one in node.inputs if one not in alone and not isinstance(one, Constant)]
        if inner and not others and isinstance(node.op, ARITHMETIC):
            alone.update(node.outputs)
        else:
            parts.update(dict.fromkeys(one for one in inner if one.owner is not None))
    parts.update(dict.fromkeys(one for one in graphs if one in alone and one.owner is not None))
    return list(parts)
