"""A model whose exact draws come from another one: the same data sets, with parameters written in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import (
    Data,
    Discarded,
    Fit,
    FloatArray,
    Model,
    ModelInfo,
    Node,
    Posterior,
    Replicates,
    Rows,
    Simulations,
)
from bread.errors import InvalidArgumentError
from bread.paths.mixture import Reference

ParameterMap = Callable[
    [dict[str, NDArray[Any]]], Mapping[str, Any]
]  # parameters of one draw -> those of the other model


class MappedModel(Model):
    """A model that is given the joint draws of another one, through a mapping of parameters.

    Everything but `simulate` is the model's own. Where both are the same model, written in different parameters, a
    draw (theta, y) of the one becomes the exact draw (g(theta), y) of the other. The mapping may leave parameters out
    (those that the other form integrates over); it may not add any that data and parameters leave open.

    Parameters
    ----------
    model : Model
    source : Model
        Where draws come from.
    mapping : callable or None
        ``mapping(parameters) -> parameters``: values of one draw of ``source`` (deterministic ones too) to the free
        variables of ``model``. None where they have the same names.
    name, source_name : str
        For messages.
    """

    def __init__(self, model: Model, source: Model, mapping: ParameterMap | None, name: str, source_name: str) -> None:
        self.inner = model
        self._source = source
        self._mapping = mapping
        self._names = name, source_name
        self.is_same_space = (
            mapping is None
            and model.info.identity.backend == source.info.identity.backend
            and model.info.layout.coordinates == source.info.layout.coordinates
        )  # states are then taken as they are: not every constraint can be undone (unit vectors)

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data of the model itself."""
        return self.inner.info

    def fingerprint(self) -> Any:
        """Return what both models are."""
        return [self.inner.fingerprint(), self._source.fingerprint()]

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw from the source, and map.

        Raises
        ------
        InvalidArgumentError
            The mapping raises, or does not give the free variables of the model; or ``fixed`` is given.
        """
        if fixed:
            raise InvalidArgumentError(
                "a model whose draws come from another one cannot hold parameters. Leave fixed out."
            )
        drawn = self._source.simulate(n, fixed=None, seed=seed)
        states = drawn.states if self.is_same_space else self.mapped_states(drawn.parameters, n)
        own = self.inner.info.data.observed
        data = {name: values.astype(np.asarray(own[name]).dtype) for name, values in drawn.data.items()}
        return Simulations(
            states, self.inner.constrain(states), data, drawn.acceptance, self._discarded(drawn.discarded)
        )

    def _discarded(self, discarded: Discarded) -> Discarded:
        """Return what was thrown away, with states of this model."""
        if self.is_same_space or not discarded.states:
            return discarded
        states = np.array(discarded.states)
        return replace(discarded, states=tuple(self.mapped_states(self._source.constrain(states), len(states))))

    def mapped_states(self, parameters: Mapping[str, NDArray[Any]], n: int) -> FloatArray:
        """Return the states (n, dim) of the model that belong to ``n`` draws of the source's parameters."""
        return self.inner.unconstrain(self._mapped(parameters, n))

    def _mapped(self, parameters: Mapping[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
        """Return the free variables of the model, each (n, ...)."""
        layout = self.inner.info.layout
        free = tuple(layout.positions or layout.parameters)
        name, source = self._names
        if self._mapping is None:
            rows = [{key: values[i] for key, values in parameters.items()} for i in range(n)]
        else:
            try:
                rows = [dict(self._mapping({k: values[i] for k, values in parameters.items()})) for i in range(n)]
            except Exception as error:
                raise InvalidArgumentError(
                    f"mapping[{name!r}] raised {type(error).__name__}: {error}. It receives the parameters of one draw "
                    f"of {source!r} ({', '.join(parameters)}) as a dict, and returns {', '.join(free)} as one."
                ) from error
        missing = [key for row in rows[:1] for key in free if key not in row]
        if missing:
            raise InvalidArgumentError(
                f"{name!r} has the free variable {missing[0]!r}, which "
                + (f"{source!r} has not" if self._mapping is None else f"mapping[{name!r}] does not return")
                + f". Pass mapping={{{name!r}: function}}: from a dict of the parameters of {source!r} "
                f"({', '.join(parameters)}) to one with {', '.join(free)}. A variable that the data and these leave "
                "open cannot be mapped: name the model with more variables first."
            )
        shapes = {key: values.shape[1:] for key, values in self.inner.constrain(np.zeros((1, layout.dim))).items()}
        found = {key: np.stack([np.asarray(row[key]) for row in rows]) if rows else None for key in free}
        result: dict[str, NDArray[Any]] = {}
        for key, values in found.items():
            if values is None:
                result[key] = np.empty((0, *shapes[key]))
            elif values.shape[1:] != shapes[key]:
                raise InvalidArgumentError(
                    f"{key!r} of {name!r} has shape {shapes[key]}, but mapped from {source!r} it has "
                    f"{values.shape[1:]}. Return an array of the shape that the model has."
                )
            else:
                result[key] = values
        return result

    # ---- what is the model's own ------------------------------------------------------------------------------

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data."""
        return self.inner.fit(seed=seed, cores=cores, progressbar=progressbar)

    def read_posterior(self, posterior: Any) -> Fit:
        """Read draws of the model."""
        return self.inner.read_posterior(posterior)

    def derive(self, states: FloatArray, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return what depends on parameters and real data."""
        return self.inner.derive(states, names)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states to named parameters."""
        return self.inner.constrain(states)

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map named free variables to states."""
        return self.inner.unconstrain(parameters)

    def condition(self, data: Data) -> Posterior:
        """Return the posterior given data."""
        return self.inner.condition(data)

    def rows(self, data: Mapping[str, NDArray[Any]]) -> Rows:
        """Return many posteriors at once."""
        return self.inner.rows(data)

    def localise(self, names: Sequence[str], reference: Reference) -> Model:
        """Return the model with another prior, and with draws of its own."""
        return self.inner.localise(names, reference)

    def given_real_data(self) -> Model:
        """Return the model with its posterior as its prior, and with draws of its own."""
        return self.inner.given_real_data()

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the fit test."""
        return self.inner.nodes()

    def replicate(
        self, state: FloatArray, node: str, n: int, *, seed: SeedSequence, data: Data | None = None
    ) -> Replicates:
        """Draw replicates of a node."""
        return self.inner.replicate(state, node, n, seed=seed, data=data)

    def node_log_prior(self, node: str, states: FloatArray, *, jacobian: bool = True) -> FloatArray:
        """Return the log density of a node."""
        return self.inner.node_log_prior(node, states, jacobian=jacobian)
