"""What a PyMC model is, apart from its data: its graph, as values that are the same in every process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.graph.type import Type
from pytensor.misc.frozendict import frozendict

from bread.backends.pymc.density.compiling import is_generator
from bread.backends.pymc.internals import registered_for
from bread.backends.pymc.model.reading import read_initial_point
from bread.backends.pymc.versions import FUNCTION
from bread.digests import described
from bread.own_code import is_own

_NOT_MEANT = {"profile", "mode", "mode_instance", "name", "fgraph", "inplace", "destroy_map"}  # how an op is run


def fingerprint(model: Any) -> dict[str, Any]:
    """Return the graph of a model with its names, dimensions, transforms and initial values.

    Observed values and ``pm.Data`` count by name alone; random generators do not count.
    """
    variables = [*model.basic_RVs, *model.potentials, *model.deterministics]
    return {
        "names": [variable.name for variable in variables],
        "observed": [variable.name for variable in model.observed_RVs],
        "dimensions": {name: tuple(dims or ()) for name, dims in model.named_vars_to_dims.items()},
        "transforms": {variable.name: transform for variable, transform in model.rvs_to_transforms.items()},
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
        return "constant", variable.data, kind
    if isinstance(variable, SharedVariable):
        return "shared", variable.get_value(borrow=True), kind
    return "input", kind


def _op(op: Any) -> tuple[Any, ...]:
    """Return an operation: its properties, its inner graph, and if it is the user's what it holds, and its code."""
    kind = type(op)
    names = getattr(op, "__props__", None)
    held = vars(op) if names is None or is_own(kind) else {}
    properties = {**{name: getattr(op, name, None) for name in names or ()}, **held}
    inner = getattr(op, "fgraph", None)
    graph = None if inner is None else _graph(inner.outputs, set(), inner.inputs)
    left_out = _NOT_MEANT if inner is None else {*_NOT_MEANT, *(name for name in properties if name[:1] == "_")}
    meant = {
        name: value for name, value in properties.items() if name not in left_out
    }  # "_": made from the inner graph
    return kind, meant, graph, [registered_for(one) for one in kind.__mro__ if is_own(one)]


@described.register
def _described_op(op: Op) -> Any:
    return _op(op)


@described.register
def _described_variable(variable: Variable) -> Any:
    return _graph([variable], set())


@described.register
def _described_type(kind: Type) -> Any:
    return type(kind), str(kind)


@described.register
def _described_dict(value: frozendict) -> Any:
    return dict(value)  # it keeps its hash


@described.register
def _described_model(model: pm.Model) -> Any:
    """Return a model that code of the user's refers to, its data included."""
    data = {variable.name: variable.get_value() for variable in model.data_vars}
    return fingerprint(model), data, [model.rvs_to_values[variable] for variable in model.observed_RVs]


@described.register(FUNCTION)
def _described_function(function: Any) -> Any:
    raise TypeError("it is compiled")
