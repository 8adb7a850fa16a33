"""Functions that draw many replicates of parts of a PyMC model in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors

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
        above = {one: many[one] for one in ancestors([variable]) if one in many}
        if above:
            many[variable] = vectorize_graph(variable, replace=above)
        else:
            many[variable] = change_dist_size(variable, (number,), expand=True)
    values = {one: one.type(name=one.name) for one in variables}
    held = {one: value for one, value in values.items() if one.name in given}
    outputs = replace([many[one] for one in model.observed_RVs], held)
    return Draws.of([*values.values(), number], outputs)
