"""What a PyMC model is, apart from its data: its graph, as values that are the same in every process."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.graph.type import Type

from bread.backends.pymc.density.compiling import is_generator
from bread.backends.pymc.model.reading import read_initial_point

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_NOT_MEANT = {"profile", "mode", "mode_instance", "name", "fgraph", "inplace", "destroy_map"}  # how an op is run
_LIBRARIES = {"pymc", "pytensor"}


def fingerprint(model: Any) -> dict[str, Any]:
    """Return the graph of a model with its names, dimensions, transforms and initial values.

    Observed values and ``pm.Data`` count by name alone; random generators do not count.
    """
    variables = [*model.basic_RVs, *model.potentials, *model.deterministics]
    return {
        "names": [variable.name for variable in variables],
        "observed": [variable.name for variable in model.observed_RVs],
        "dimensions": {name: tuple(dims or ()) for name, dims in model.named_vars_to_dims.items()},
        "transforms": {variable.name: _value(transform) for variable, transform in model.rvs_to_transforms.items()},
        "initial point": read_initial_point(model),
        "graph": _graph(variables, {id(variable) for variable in model.data_vars}),
    }


def _graph(outputs: Sequence[Any], data: set[int], inputs: Sequence[Any] = ()) -> list[Any]:
    """Return every variable of a graph: what it is, and which others it is made of, by their place."""
    found = list(dict.fromkeys([*inputs, *ancestors(outputs, blockers=list(inputs))]))
    places = {variable: place for place, variable in enumerate(found)}
    described = [_variable(variable, places, data, variable in inputs) for variable in found]
    return [*described, [places[output] for output in outputs]]


def _variable(variable: Any, places: Mapping[Any, int], data: set[int], is_input: bool) -> tuple[Any, ...]:
    kind = str(variable.type)
    if variable.owner is not None and not is_input:
        made_of = [places[one] for one in variable.owner.inputs]
        return "made", _op(variable.owner.op), made_of, variable.owner.outputs.index(variable), kind
    if is_generator(variable):
        return ("generator",)
    if id(variable) in data:
        return "data", variable.name, kind
    if isinstance(variable, Constant):
        return "constant", _value(variable.data), kind
    if isinstance(variable, SharedVariable):
        return "shared", _value(variable.get_value(borrow=True)), kind
    return "input", kind


def _op(op: Any) -> tuple[Any, ...]:
    names = [name for name in getattr(op, "__props__", None) or () if name not in _NOT_MEANT]
    properties = {name: _value(getattr(op, name, None)) for name in names}
    inner = getattr(op, "fgraph", None)
    graph = None if inner is None else _graph(inner.outputs, set(), inner.inputs)
    return f"{type(op).__module__}.{type(op).__qualname__}", properties, graph, _own_code(type(op))


def _own_code(kind: type) -> list[Any]:
    """Return functions of classes that the user wrote, or PyMC made for functions of the user's."""
    return [
        {name: member for name, member in vars(one).items() if isinstance(_plain_function(member), FunctionType)}
        for one in kind.__mro__
        if _is_own(one)
    ]


def _is_own(kind: type) -> bool:
    is_named = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    return kind is not object and not (is_named and kind.__module__.split(".")[0] in {*_LIBRARIES, "abc", "typing"})


def _plain_function(member: Any) -> Any:
    return getattr(member, "__func__", member)


def _value(value: Any) -> Any:
    """Return a value as digests can take it."""
    if value is None or isinstance(
        value, (bool, int, float, complex, str, bytes, np.ndarray, np.generic, FunctionType)
    ):
        return value
    if isinstance(value, (tuple, list)):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in value.items()}
    if isinstance(value, Op):
        return _op(value)
    if isinstance(value, Type | Variable):
        return str(value)
    return f"{type(value).__module__}.{type(value).__qualname__} {_ADDRESS.sub('', str(value))}"
