"""Functions that draw many replicates of parts of a PyMC model in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type_other import NoneTypeT

from bread.backends.pymc.density.compiling import detach, interpret_function, replace


@dataclass(frozen=True)
class Draws:
    """A function of arguments and then random generators.

    Attributes
    ----------
    call : callable
    n_generators : int
    """

    call: Callable[..., list[Any]]
    n_generators: int

    @classmethod
    def of(cls, inputs: Sequence[Any], outputs: Sequence[Any]) -> Draws:
        """Build it."""
        graph = detach(outputs)
        return cls(interpret_function([*inputs, *graph.generators], graph.outputs), len(graph.generators))


def with_number(variable: Any, number: Any, many: Mapping[Any, Any]) -> Any:
    """Return a random variable with one more leading axis, of length ``number``.

    Parameters
    ----------
    variable, number : Variable
    many : dict of Variable to Variable
        Variables that it may depend on, and what they are with that axis.
    """
    above = {one: many[one] for one in ancestors([variable]) if one in many}
    if not above:
        return change_dist_size(variable, (number,), expand=True)
    node = variable.owner
    if not isinstance(node.op, RandomVariable):
        return vectorize_graph(variable, replace=above)
    # PyTensor looks at the first parameter alone, and refuses where another one has the new axis (a centred hierarchy)
    parameters = [
        vectorize_graph(one, replace=above) if not above.keys().isdisjoint(ancestors([one])) else one[None]
        for one in node.op.dist_params(node)
    ]
    size = node.op.size_param(node)
    if not isinstance(size.type, NoneTypeT):
        size = pt.concatenate([pt.as_tensor(number)[None], size])
    copy = node.op.make_node(node.inputs[0], size, *parameters)
    return copy.outputs[node.outputs.index(variable)]


def predictor(model: Any, given: Sequence[str]) -> Draws:
    """Return draws of all observed variables, (n, ...) each, as a function of all variables and a number n.

    Free variables that are not ``given`` are drawn anew for every replicate, from their own distributions: the values
    that are passed for them do not count. Those given are the same for all.
    """
    variables = (*model.free_RVs, *model.observed_RVs)
    number = pt.lscalar("n")
    many: dict[Any, Any] = {}
    for variable in variables:  # PyMC lists a variable after those that it depends on
        if variable.name in given:
            continue
        many[variable] = with_number(variable, number, many)
    values = {one: one.type(name=one.name) for one in variables}
    held = {one: value for one, value in values.items() if one.name in given}
    outputs = replace([many[one] for one in model.observed_RVs], held)
    return Draws.of([*values.values(), number], outputs)
