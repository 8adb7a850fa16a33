"""Replicates of a node of a PyMC model: its own random variable, drawn many times given its parents in one state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from bread.backends.nodes import LOCALISED, MOST_DEPENDENT, Kind, predictive_nodes
from bread.backends.pymc.density.compiling import first_line, replace
from bread.backends.pymc.density.node_terms import NodeTerms
from bread.backends.pymc.model import reading
from bread.backends.pymc.model.normalised import log_integral
from bread.backends.pymc.simulation.predicting import Draws, predictor
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
    _functions: dict[str, tuple[Draws, Draws | None]] = field(default_factory=dict)
    _predictors: dict[str, Draws] = field(default_factory=dict)
    _terms: NodeTerms | None = None
    _nodes: tuple[Node, ...] | None = None

    def nodes(self) -> tuple[Node, ...]:
        """Return every observed and every free variable as a node, and predictive nodes.

        Read from the graph once: a fit test asks for a node some hundred times.
        """
        if self._nodes is None:
            self._nodes = self._read_nodes()
        return self._nodes

    def _read_nodes(self) -> tuple[Node, ...]:
        observed = [
            self._node(variable, "data", shape)
            for variable, (shape, _) in zip(self.model.observed_RVs, self.simulator.observed.values(), strict=True)
        ]
        free = [
            self._node(variable, "latent" if self.simulator.parents[variable.name] else "parameter", shape)
            for variable, shape in zip(self.model.free_RVs, self.simulator.shapes.values(), strict=True)
        ]
        shapes = {name: shape for name, (shape, _) in self.simulator.observed.items()}
        hyperparameters = reading.default_hyperparameters(self.model)
        return (*observed, *free, *predictive_nodes(shapes, self.simulator.names, hyperparameters, self._refusal_of))

    def _refusal_of(self, drawn: Sequence[str]) -> str:
        """Return why these free variables, and the data, cannot be drawn anew; "" where they can."""
        free = [variable for variable in self.model.free_RVs if variable.name in drawn]
        kinds: list[tuple[Any, Kind]] = [*((one, "data") for one in self.model.observed_RVs)]
        kinds += [(one, "parameter") for one in free]
        return next((why for one, kind in kinds if (why := self._refusal(one, kind))), "")

    def _node(self, variable: Any, kind: Kind, shape: tuple[int, ...]) -> Node:
        refusal = self._refusal(variable, kind)
        if kind == "data" or variable.name in self.localised:  # the law of a localised one is a normalised reference
            return Node(variable.name, kind, {variable.name: shape}, refusal)
        constant = log_integral(variable, shape, self.simulator.restrictions)
        return Node(variable.name, kind, {variable.name: shape}, refusal, log_integral=constant)

    def _refusal(self, variable: Any, kind: Kind) -> str:
        """Return why a variable's own distribution is not its law given its parents; "" where it is."""
        name = variable.name
        if name in self.localised:
            return LOCALISED
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
        if node.kind == "predictive":
            return self._predicted(node, values, n, seed, data)
        real = np.asarray(data[name] if node.kind == "data" else free[name])
        try:
            draw, log_density = self._compiled(name)
            with np.errstate(all="ignore"):
                streams = generators(seed, Part.REPLICATES, 0, draw.n_generators)
                copies = np.asarray(draw.call(*values, np.int64(n), *streams)[0])
                if copies.shape != (n, *real.shape):
                    raise ValueError(f"draws have shape {copies.shape[1:]}, the variable {real.shape}")
                both = np.concatenate([real[None].astype(copies.dtype), copies])
                rows = np.asarray(both, dtype=float).reshape(n + 1, -1)
                if log_density is None:
                    return Replicates(rows)
                unused = generators(seed, Part.REPLICATES, 1, log_density.n_generators)  # shapes may name them
                terms = np.asarray(log_density.call(*values, np.int64(n + 1), both, *unused)[0], dtype=float)
        except Exception as error:
            raise UnsupportedModelError(f"{name!r} cannot be replicated: {first_line(error)}.") from error
        terms = terms.reshape(n + 1, -1)
        return Replicates(rows, terms.sum(axis=1), terms if terms.shape[1] > 1 else None)

    def _predicted(
        self, node: Node, values: Sequence[NDArray[Any]], n: int, seed: SeedSequence, data: Mapping[str, NDArray[Any]]
    ) -> Replicates:
        """Draw the data anew with the free variables that are not given."""
        try:
            if node.name not in self._predictors:
                self._predictors[node.name] = predictor(self.model, node.given)
            draw = self._predictors[node.name]
            with np.errstate(all="ignore"):
                copies = draw.call(*values, np.int64(n), *generators(seed, Part.REPLICATES, 0, draw.n_generators))
            rows = []
            for (name, shape), copy in zip(node.shapes.items(), copies, strict=True):
                if np.shape(copy) != (n, *shape):
                    raise ValueError(f"draws have shape {np.shape(copy)[1:]}, the variable {shape}")
                rows.append(np.concatenate([np.asarray(data[name], dtype=float)[None], copy]).reshape(n + 1, -1))
        except Exception as error:
            raise UnsupportedModelError(f"{node.name!r} cannot be replicated: {first_line(error)}.") from error
        return Replicates(np.concatenate(rows, axis=1))

    def log_prior(self, name: str, states: FloatArray, *, jacobian: bool = True) -> FloatArray:
        """Return the log density of a free variable; see `bread.backends.base.Model.node_log_prior`.

        Raises
        ------
        UnsupportedModelError
            There is no such variable, its density cannot be evaluated here, or has too many dependent coordinates to
            be of use: nothing is compiled for it.
        """
        variable = next((one for one in self.model.free_RVs if one.name == name), None)
        if variable is None:
            raise UnsupportedModelError(f"There is no free variable {name!r}.")
        n_support = variable.owner.op.ndim_supp
        shape = self.simulator.shapes[name]
        n_dependent = int(np.prod(shape[len(shape) - n_support :], dtype=np.int64)) if n_support == 1 else 1
        if n_dependent > MOST_DEPENDENT + 1:  # a simplex has one coordinate less
            raise UnsupportedModelError(f"{n_dependent} dependent coordinates are too many to integrate over.")
        if self._terms is None:
            self._terms = NodeTerms(self.model, self.simulator.layout)
        try:
            return self._terms(name, states, jacobian=jacobian)
        except Exception as error:
            raise UnsupportedModelError(f"The density of {name!r} cannot be evaluated: {first_line(error)}.") from error

    def _variables(self) -> Sequence[Any]:
        return (*self.model.free_RVs, *self.model.observed_RVs)

    def _compiled(self, name: str) -> tuple[Draws, Draws | None]:
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
                density = Draws.of([*given, value], [pm.logp(many, value)])
            self._functions[name] = Draws.of(given, [many]), density
        return self._functions[name]
