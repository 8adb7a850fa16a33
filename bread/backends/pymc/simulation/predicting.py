"""Functions that draw many replicates of parts of a PyMC model in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors, io_toposort
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type_other import NoneTypeT

from bread.backends.pymc.density.compiling import detach, interpret_function, replace
from bread.backends.pymc.density.pytensor_fixes.number_by_number import COMPARISONS

_RANDOM = (RandomVariable, SymbolicRandomVariable)


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
        call = interpret_function([*inputs, *graph.generators], graph.outputs, rewrites=[COMPARISONS])
        return cls(call, len(graph.generators))


def with_number(variable: Any, number: Any, many: Mapping[Any, Any], given: Sequence[Any] = ()) -> Any:
    """Return a random variable with one more leading axis, of length ``number``.

    Whether draws along it are independent is for `require_own_draws` to say.

    Parameters
    ----------
    variable, number : Variable
    many : dict of Variable to Variable
        Variables that it may depend on, and what they are with that axis.
    given : sequence of Variable
        Variables that stay as they are.
    """
    above = {one: many[one] for one in ancestors([variable], blockers=given) if one in many}
    if not above:
        return change_dist_size(variable, (number,), expand=True)
    # Node by node: what is random without a name (a censored law's own draw) is drawn anew as well. PyTensor's own walk
    # leaves it as it is, so that all rows share it; and of a random variable's parameters that looks at the first
    # alone, and refuses where another one has the new axis (a centred hierarchy).
    new = dict(above)
    for node in io_toposort([*above, *given], [variable]):
        inputs = [new.get(one, one) for one in node.inputs]
        is_same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        if is_same and isinstance(node.op, _RANDOM):
            drawn = node.default_output()
            new[drawn] = change_dist_size(drawn, (number,), expand=True)
        elif not is_same:
            is_plain = isinstance(node.op, RandomVariable)
            copies = _drawn_in_rows(node, inputs, number) if is_plain else _node_vectorised(node, inputs)
            new.update(zip(node.outputs, copies, strict=True))
    return new[variable]


def _node_vectorised(node: Any, inputs: Sequence[Any]) -> list[Any]:
    pairs = zip(node.inputs, inputs, strict=True)
    copies: list[Any] = vectorize_graph(list(node.outputs), replace={one: new for one, new in pairs if new is not one})
    return copies


def _drawn_in_rows(node: Any, inputs: Sequence[Any], number: Any) -> list[Any]:
    """Return outputs of a random variable whose parameters and size have the new axis, all of them."""
    new = dict(zip(node.inputs, inputs, strict=True))
    parameters = [one[None] if new[one] is one else new[one] for one in node.op.dist_params(node)]
    size = node.op.size_param(node)
    if not isinstance(size.type, NoneTypeT):
        size = pt.concatenate([pt.as_tensor(number)[None], size])
    copies: list[Any] = node.op.make_node(node.inputs[0], size, *parameters).outputs
    return copies


def require_own_draws(outputs: Sequence[Any], number: Any) -> None:
    """Refuse what is random and does not depend on the number of draws, unless its shape alone is used.

    Raises
    ------
    ValueError
        All draws would share it.
    """
    depends = {number}
    for node in io_toposort([], list(outputs)):
        if not depends.isdisjoint(node.inputs):
            depends.update(node.outputs)
    left, seen = list(outputs), set()
    while left:
        node = left.pop().owner
        if node is None or node in seen or isinstance(node.op, Shape | Shape_i):
            continue
        if isinstance(node.op, _RANDOM) and depends.isdisjoint(node.inputs):
            raise ValueError(f"all draws would share {node.default_output()}")
        seen.add(node)
        left += node.inputs


def predictor(model: Any, given: Sequence[str]) -> Draws:
    """Return draws of all observed variables, (n, ...) each, as a function of all variables and a number n.

    Free variables that are not ``given`` are drawn anew for every replicate, from their own distributions: the values
    that are passed for them do not count. Those given are the same for all.
    """
    variables = (*model.free_RVs, *model.observed_RVs)
    number = pt.lscalar("n")
    values = {one: one.type(name=one.name) for one in variables}
    held = {one: value for one, value in values.items() if one.name in given}
    many: dict[Any, Any] = {}
    for variable in variables:  # PyMC lists a variable after those that it depends on
        if variable not in held:
            many[variable] = with_number(variable, number, many, list(held))
    outputs = replace([many[one] for one in model.observed_RVs], held)
    require_own_draws(outputs, number)
    return Draws.of([*values.values(), number], outputs)
