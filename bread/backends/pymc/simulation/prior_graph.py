"""The prior of a PyMC model as a graph: draws of the free variables, and their unconstrained values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph

from bread.backends.pymc.density.compiling import detach, interpret_function, replace
from bread.backends.pymc.simulation.batched import Function, vectorised
from bread.backends.pymc.simulation.predicting import Draws, require_own_draws, with_number
from bread.backends.pymc.simulation.restricted import Restrictions


@dataclass(frozen=True)
class PriorGraph:
    """Graph of the prior: free variables and their unconstrained values as functions of random generators."""

    generators: list[Any]
    draws: list[Any]
    values: list[Any]

    def compile(self, names: Sequence[str], fixed: frozenset[str]) -> Callable[..., list[Any]]:
        """Compile draws and values as a function of the fixed variables (in order) and the generators."""
        outputs = [*self.draws, *self.values]
        inputs = {draw: draw.type(name=name) for name, draw in zip(names, self.draws, strict=True) if name in fixed}
        return interpret_function([*inputs.values(), *self.generators], replace(outputs, inputs))

    def draw_many(self) -> Draws | None:
        """Return the unconstrained values of a number of draws, (n, ...) each, as a function of the number."""
        number = pt.lscalar("n")
        many: dict[Any, Any] = {}
        try:
            for draw in self.draws:  # PyMC lists a variable after those that it depends on
                many[draw] = with_number(draw, number, many)
            values = vectorize_graph(self.values, replace=many)
            require_own_draws(values, number)
            graph = detach(values)
            streams = [*self.generators, *graph.generators]
            return Draws(interpret_function([number, *streams], graph.outputs), len(streams))
        except Exception:  # PyTensor cannot vectorise every graph
            return None

    def unconstrain_many(self) -> Function | None:
        """Return the unconstrained values of many draws as a function of these; see `vectorised`."""
        inputs = {draw: draw.type() for draw in self.draws}
        return vectorised(list(inputs.values()), replace(self.values, inputs))


def prior_graph(model: Any, restrictions: Restrictions) -> PriorGraph:
    """Return the graph of a model's prior; variables whose transform orders them are sorted, where that is exact."""
    free = list(model.free_RVs)
    draws = [_sorted(variable, restrictions) for variable in free]
    values = [
        draw if model.rvs_to_transforms[variable] is None else _forward(model, variable, draw)
        for variable, draw in zip(free, draws, strict=True)
    ]
    prior = detach([*draws, *values])
    return PriorGraph(prior.generators, prior.outputs[: len(free)], prior.outputs[len(free) :])


def _sorted(variable: Any, restrictions: Restrictions) -> Any:
    ascending = restrictions.ascending.get(variable.name)
    if ascending is None:
        return variable
    result = pt.sort(variable, axis=-1)
    return result if ascending else result[..., ::-1]


def _forward(model: Any, variable: Any, draw: Any) -> Any:
    return model.rvs_to_transforms[variable].forward(draw, *variable.owner.inputs)
