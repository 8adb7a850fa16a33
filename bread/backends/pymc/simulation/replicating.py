"""Replicates of a node of a PyMC model: its own random variable, drawn many times given its parents in one state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.random import SeedSequence
from numpy.typing import NDArray
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.traversal import ancestors

from bread.backends.base import FloatArray, Node, Replicates
from bread.backends.nodes import Kind
from bread.backends.pymc.density.compiling import detach, first_line, interpret_function, replace
from bread.backends.pymc.simulation.simulation import Simulator
from bread.backends.pymc.simulation.streams import Part, generators
from bread.errors import UnsupportedModelError


@dataclass
class Replicator:
    """Replicates nodes; functions are built when a node is first asked for.

    Attributes
    ----------
    model : pymc.Model
        Only read.
    simulator : Simulator
    localised : tuple of str
        Free variables whose prior is replaced by a fit to the data.
    """

    model: Any
    simulator: Simulator
    localised: tuple[str, ...] = ()
    _functions: dict[str, tuple[_Function, _Function | None]] = field(default_factory=dict)

    def nodes(self) -> tuple[Node, ...]:
        """Return every observed and every free variable as a node."""
        observed = [
            self._node(variable, "data", shape)
            for variable, (shape, _) in zip(self.model.observed_RVs, self.simulator.observed.values(), strict=True)
        ]
        free = [
            self._node(variable, "latent" if self.simulator.parents[variable.name] else "parameter", shape)
            for variable, shape in zip(self.model.free_RVs, self.simulator.shapes.values(), strict=True)
        ]
        return (*observed, *free)

    def _node(self, variable: Any, kind: Kind, shape: tuple[int, ...]) -> Node:
        return Node(variable.name, kind, {variable.name: shape}, self._refusal(variable, kind))

    def _refusal(self, variable: Any, kind: Kind) -> str:
        """Return why a variable's own distribution is not its law given its parents; "" where it is."""
        name = variable.name
        if name in self.localised:
            return "its law here is a fit to the data, so that it is in agreement with them."
        above = set(ancestors(self.model.potentials))
        if above and (kind != "data" or variable in above):
            return "pm.Potential adds to its density what its distribution cannot draw."
        if name in self.simulator.restrictions.tested:
            return "its transform restricts its support, which its distribution does not know when it draws."
        return ""

    def replicate(
        self, state: FloatArray, name: str, n: int, seed: SeedSequence, data: Mapping[str, NDArray[Any]]
    ) -> Replicates:
        """Draw replicates; see `bread.backends.base.Model.replicate`.

        Raises
        ------
        UnsupportedModelError
            There is no such node, its distribution cannot be drawn or evaluated many times at once, or fails here.
        """
        node = next((one for one in self.nodes() if one.name == name), None)
        if node is None or node.refusal:
            raise UnsupportedModelError(
                f"{name!r} cannot be replicated: {'there is no such node.' if node is None else node.refusal}"
            )
        free = {key: values[0] for key, values in self.simulator.constrain(state[None]).items()}
        values = [np.asarray({**free, **data}[one.name], dtype=str(one.type.dtype)) for one in self._variables()]
        real = np.asarray(data[name] if node.kind == "data" else free[name])
        try:
            draw, log_density = self._compiled(name)
            with np.errstate(all="ignore"):
                streams = generators(seed, Part.REPLICATES, 0, draw.n_generators)
                copies = np.asarray(draw(*values, np.int64(n), *streams))
                if copies.shape != (n, *real.shape):
                    raise ValueError(f"draws have shape {copies.shape[1:]}, the variable {real.shape}")
                both = np.concatenate([real[None].astype(copies.dtype), copies])
                rows = np.asarray(both, dtype=float).reshape(n + 1, -1)
                if log_density is None:
                    return Replicates(rows)
                unused = generators(seed, Part.REPLICATES, 1, log_density.n_generators)  # shapes may name them
                terms = np.asarray(log_density(*values, np.int64(n + 1), both, *unused), dtype=float)
        except Exception as error:
            raise UnsupportedModelError(f"{name!r} cannot be replicated: {first_line(error)}.") from error
        terms = terms.reshape(n + 1, -1)
        return Replicates(rows, terms.sum(axis=1), terms if terms.shape[1] > 1 else None)

    def _variables(self) -> Sequence[Any]:
        return (*self.model.free_RVs, *self.model.observed_RVs)

    def _compiled(self, name: str) -> tuple[_Function, _Function | None]:
        """Return draws as a function of all variables and a number; log densities as one of these and the draws.

        The variable is drawn with one more leading axis, so that every replicate has the same parents.
        """
        if name not in self._functions:
            variables = self._variables()
            variable = next(one for one in variables if one.name == name)
            number = pt.lscalar("n")
            parents = {one: one.type(name=one.name) for one in variables}
            given = [*parents.values(), number]
            # parents are replaced first: the log density of some distributions is a graph of copies of them
            (many,) = replace([change_dist_size(variable, (number,), expand=True)], parents)
            value = many.type("value")
            density = None
            with suppress(Exception):  # of a Cholesky factor, say: what was drawn can still be compared
                density = _Function.of([*given, value], pm.logp(many, value))
            self._functions[name] = _Function.of(given, many), density
        return self._functions[name]


@dataclass(frozen=True)
class _Function:
    """A function of arguments and then random generators."""

    call: Callable[..., list[Any]]
    n_generators: int

    @classmethod
    def of(cls, inputs: Sequence[Any], output: Any) -> _Function:
        """Build it."""
        graph = detach([output])
        return cls(interpret_function([*inputs, *graph.generators], graph.outputs), len(graph.generators))

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)[0]
