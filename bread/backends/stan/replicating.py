"""Replicates of the nodes of a Stan program: the simulator with everything above the node held.

The summed log density of replicated outcomes is the simulator's own, which the proof at every start holds to the
program's up to a constant; that constant is found from one replicate. There are no pointwise log densities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray, ModelInfo, Node, Replicates
from bread.backends.nodes import LOCALISED, predictive_nodes
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.localising import LocalisedSimulator
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.variables import ManySeeds
from bread.backends.stan.simulation import JointSimulator
from bread.backends.stan.state_draws import StateDraws
from bread.errors import BreadError, UnsupportedModelError
from bread.paths.kinds import PriorPath

MOST = 4000  # about 0.1 ms each
Values = Mapping[str, NDArray[Any]]


class Opened(Protocol):
    """What is needed of a model (`bread.backends.stan.model.StanModel`)."""

    @property
    def info(self) -> ModelInfo: ...  # noqa: D102

    @property
    def program(self) -> Program: ...  # noqa: D102

    @property
    def instance(self) -> StanInstance: ...  # noqa: D102

    @property
    def draws(self) -> StateDraws: ...  # noqa: D102

    def condition_instance(self, data: Data) -> StanInstance: ...  # noqa: D102


def nodes(model: Opened) -> tuple[Node, ...]:
    """Return all outcomes as one node, all latents as one, each other parameter, and predictive nodes."""
    simulator, localised = _simulator(model.draws)
    shapes = {name: model.instance.shape(name) for name in model.instance.names("parameters")}
    latents = tuple(name for name in model.program.latents if name in shapes)
    observed = {name: values.shape for name, values in model.info.data.observed.items()}
    found = [Node(", ".join(observed), "data", observed, _cannot_hold(simulator, shapes), MOST)]
    if latents:
        above = [name for name in shapes if name not in latents]
        refusal = _cannot_hold(simulator, above) or _law_of(latents, localised)
        found.append(Node(", ".join(latents), "latent", {name: shapes[name] for name in latents}, refusal, MOST))
    for name, shape in shapes.items():
        if name not in latents:
            found.append(Node(name, "parameter", {name: shape}, _law_of([name], localised), MOST))
    held = tuple(name for name in model.program.hyperparameters if name in shapes)

    def why_not(drawn: Sequence[str]) -> str:
        return _cannot_hold(simulator, [name for name in shapes if name not in drawn]) or _law_of(drawn, localised)

    return (*found, *predictive_nodes(observed, tuple(shapes), held, why_not, MOST))


def replicate(model: Opened, state: FloatArray, name: str, n: int, seed: SeedSequence, data: Data) -> Replicates:
    """Draw replicates of a node; see `bread.backends.base.Model.replicate`.

    Raises
    ------
    UnsupportedModelError
        There is no such node, the simulator cannot hold what is above it, or fails at this state.
    """
    node = next((one for one in nodes(model) if one.name == name), None)
    if node is None or node.refusal:
        raise UnsupportedModelError(
            f"{name!r} cannot be replicated: {'there is no such node.' if node is None else node.refusal}"
        )
    seeds = ManySeeds(seed, n)
    try:
        parameters = {key: values[0] for key, values in model.instance.constrain(state[None]).items()}
        if node.kind == "predictive":
            return _predicted(model, parameters, node, seeds, data)
        if node.kind == "data":
            return _outcomes(model, state, parameters, seeds, data)
        return _parameters(model, state, parameters, node, seeds)
    except UnsupportedModelError:
        raise
    except BreadError as error:
        raise UnsupportedModelError(f"{name!r} cannot be replicated: {error}") from error


def _outcomes(
    model: Opened, state: FloatArray, parameters: Values, seeds: Sequence[SeedSequence], data: Data
) -> Replicates:
    simulator, _ = _simulator(model.draws)
    drawn = simulator.draw(seeds, parameters)
    rows = _flat({name: np.concatenate([np.asarray(data[name])[None], drawn.data[name]]) for name in data})
    own = drawn.log_likelihood
    if own is None or PriorPath.name not in model.info.paths:
        return Replicates(rows)
    first = {name: values[0] for name, values in drawn.data.items()}

    def found() -> tuple[float, float]:
        real, replicated = (model.condition_instance(one).terms(state[None])[1][0] for one in (data, first))
        return real, replicated - own[0]

    key = (state.tobytes(), *((name, np.asarray(values).tobytes()) for name, values in sorted(data.items())))
    real, constant = model.draws.recent.get("log likelihood", key, found)
    return Replicates(rows, np.concatenate([[real], own + constant]))


def _predicted(model: Opened, parameters: Values, node: Node, seeds: Sequence[SeedSequence], data: Data) -> Replicates:
    simulator, _ = _simulator(model.draws)
    drawn = simulator.draw(seeds, {name: parameters[name] for name in node.given}).data
    return Replicates(_flat({name: np.concatenate([np.asarray(data[name])[None], drawn[name]]) for name in data}))


def _parameters(
    model: Opened, state: FloatArray, parameters: Values, node: Node, seeds: Sequence[SeedSequence]
) -> Replicates:
    simulator, localised = _simulator(model.draws)
    held = {name: parameters[name] for name in localised}
    if node.kind == "latent":
        held = {name: value for name, value in parameters.items() if name not in node.shapes}
    drawn = simulator.draw(seeds, held, only_parameters=True).parameters
    rows = _flat({name: np.concatenate([parameters[name][None], drawn[name]]) for name in node.shapes})
    if node.kind == "parameter" or PriorPath.name not in model.info.paths:
        return Replicates(rows)
    states = np.concatenate([state[None], model.instance.unconstrain(drawn)])
    log_prior = model.instance.terms(states)[0]  # of all parameters: those held add the same to each
    if not np.isfinite(log_prior).all():
        raise UnsupportedModelError(f"{node.name!r} cannot be replicated: the program rejects some of its draws.")
    return Replicates(rows, log_prior)


def _simulator(draws: StateDraws) -> tuple[JointSimulator, tuple[str, ...]]:
    """Return the simulator that can hold parameters, and those whose law is a fit to the data."""
    simulator = draws.simulator
    if isinstance(simulator, LocalisedSimulator):
        return simulator.simulator, simulator.names
    return simulator, ()


def _cannot_hold(simulator: JointSimulator, names: Sequence[str] | Mapping[str, Any]) -> str:
    """Return why these parameters cannot be held; "" where they can."""
    missing = [name for name in names if name not in simulator.fixable]
    return f"its simulator cannot hold {', '.join(missing)}, which it depends on." if missing else ""


def _law_of(names: Sequence[str], localised: Sequence[str]) -> str:
    if set(names) & set(localised):
        return LOCALISED
    return ""


def _flat(values: Values) -> FloatArray:
    """Return variables (row, ...) side by side as floats, (row, element)."""
    return np.concatenate([np.asarray(array, dtype=float).reshape(len(array), -1) for array in values.values()], axis=1)
