"""Replicates of the nodes of a reference model, from its simulator with everything above the node held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray, ModelInfo, Node, Replicates
from bread.backends.nodes import LOCALISED, predictive_nodes
from bread.errors import UnsupportedModelError
from tests.models.reference.arrays import Statistics

MOST = 8000  # states are drawn one by one


class _Model(Protocol):
    hyperparameter_names: ClassVar[tuple[str, ...] | None]

    @property
    def info(self) -> ModelInfo: ...
    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]: ...
    def draw_state(self, generator: Generator, fixed: dict[str, NDArray[Any]]) -> FloatArray: ...
    def draw_data_rows(
        self, parameters: dict[str, NDArray[Any]], n: int, generator: Generator
    ) -> dict[str, NDArray[Any]]: ...
    def summarise(self, data: Data) -> Statistics: ...
    def log_prior(self, states: FloatArray) -> FloatArray: ...
    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray: ...
    def draw_data(self, parameters: dict[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]: ...


def nodes(model: _Model) -> tuple[Node, ...]:
    """Return all observed variables as one node, all latents as one, each parameter, and predictive nodes.

    A parameter with a law that was fitted to the data is refused: it fits by construction.
    """
    info = model.info
    shapes = {name: values.shape[1:] for name, values in model.constrain(np.zeros((1, info.layout.dim))).items()}
    observed = {name: values.shape for name, values in info.data.observed.items()}
    upper = tuple(model.hyperparameter_names or shapes)
    latents = {name: shape for name, shape in shapes.items() if name not in upper}
    localised: tuple[str, ...] = getattr(model, "names", ())
    found = [Node(", ".join(observed), "data", observed)]
    if latents:
        found.append(Node(", ".join(latents), "latent", latents, most=MOST))
    for name in upper:
        why = LOCALISED if name in localised else ""
        found.append(Node(name, "parameter", {name: shapes[name]}, why, MOST))

    def why_not(drawn: Sequence[str]) -> str:
        return LOCALISED if set(drawn) & set(localised) else ""

    return (*found, *predictive_nodes(observed, tuple(shapes), upper, why_not, MOST))


def replicate(model: _Model, state: FloatArray, name: str, n: int, seed: SeedSequence, data: Data) -> Replicates:
    """Draw ``n`` replicates of the node ``name`` given its parents in ``state``.

    Raises
    ------
    UnsupportedModelError
        There is no such node, or it is refused.
    """
    node = next((one for one in nodes(model) if one.name == name), None)
    if node is None or node.refusal:
        raise UnsupportedModelError(
            f"{name!r} cannot be replicated: {'there is no such node.' if node is None else node.refusal}"
        )
    generator = default_rng(seed)
    parameters = {key: value[0] for key, value in model.constrain(state[None]).items()}
    if node.kind == "data":
        copies = model.draw_data_rows(parameters, n, generator)
        rows = {key: np.concatenate([np.asarray(data[key])[None], copies[key]]) for key in node.shapes}
        log_density = model.log_likelihood(np.repeat(state[None], n + 1, axis=0), model.summarise(rows))
        return Replicates(_flat(rows), log_density)
    if node.kind == "predictive":
        held = {key: parameters[key] for key in node.given}
        drawn = model.constrain(np.array([model.draw_state(generator, held) for _ in range(n)]))
        sets = [model.draw_data({key: value[row] for key, value in drawn.items()}, generator) for row in range(n)]
        return Replicates(_flat({key: np.array([data[key], *(one[key] for one in sets)]) for key in node.shapes}))
    held = {} if node.kind == "parameter" else {key: parameters[key] for key in model.hyperparameter_names or ()}
    states = np.array([state, *(model.draw_state(generator, held) for _ in range(n))])
    values = model.constrain(states)
    log_prior = model.log_prior(states) if node.kind == "latent" else None
    return Replicates(_flat({key: values[key] for key in node.shapes}), log_prior)


def _flat(values: dict[str, NDArray[Any]]) -> FloatArray:
    """Return variables (row, ...) side by side as floats, (row, element)."""
    return np.concatenate([np.asarray(array, dtype=float).reshape(len(array), -1) for array in values.values()], axis=1)
