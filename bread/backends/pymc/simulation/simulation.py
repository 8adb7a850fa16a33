"""Exact joint draws of parameters and data from a PyMC model: the prior here, the data in `data_simulation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Simulations
from bread.backends.pymc.density.compiling import detach, first_line, interpret_function
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.pymc.model.reading import check_fixed_names, read_parents
from bread.backends.pymc.simulation.data_simulation import DataSimulator, ExtremeDataError, build_data_simulator
from bread.backends.pymc.simulation.prior_batch import draw_batch, unconstrain_batch
from bread.backends.pymc.simulation.prior_graph import PriorGraph, prior_graph
from bread.backends.pymc.simulation.restricted import (
    MINIMUM_ACCEPTANCE,
    PILOT_ATTEMPTS,
    PILOT_DRAWS,
    Restrictions,
    is_represented,
    read_restrictions,
    rejection_note,
    sorting_note,
)
from bread.backends.pymc.simulation.streams import Part, child_seeds, generators
from bread.errors import InvalidArgumentError, UnsupportedModelError

WORTH_BUILDING = 200  # draws mapped at once, for which a function of many is built
MAXIMUM_ATTEMPTS = 100_000  # for one joint draw: a hundred times what the smallest acceptance allowed needs
Values = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Simulator:
    """Compiled draws from the joint distribution of a model.

    Attributes
    ----------
    layout : StateLayout
    shapes : dict of str to tuple of int
        Shapes of the free variables in the model's own coordinates.
    derived : tuple of str
        Deterministics.
    parents : dict of str to set of str
        Free variables that the prior of each free variable depends on.
    restrictions : Restrictions
    """

    layout: StateLayout
    shapes: dict[str, tuple[int, ...]]
    derived: tuple[str, ...]
    parents: dict[str, set[str]]
    restrictions: Restrictions
    _prior_graph: PriorGraph
    _data: DataSimulator
    _constrain: Callable[..., list[Any]]
    _draw_prior: dict[frozenset[str], Callable[..., list[Any]]] = field(default_factory=dict)
    _many: dict[str, Any] = field(default_factory=dict, compare=False)  # built when first used

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_many": {}}

    @property
    def observed(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of each observed variable, as the model has it."""
        return self._data.observed

    @property
    def names(self) -> tuple[str, ...]:
        """Free variables, in the order of the layout."""
        return tuple(self.shapes)

    def check_data(self, data: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return a data set as the model has its data: a value for each observed variable, in its shape and type.

        Raises
        ------
        InvalidArgumentError
            For a missing or unknown variable, or another shape.
        """
        expected = self.observed
        if set(data) != set(expected):
            raise InvalidArgumentError(
                f"data must name {sorted(expected)}, the observed variables; got {sorted(data)}."
            )
        arrays = {}
        for name, (shape, dtype) in expected.items():
            arrays[name] = np.array(data[name], dtype=dtype)
            if arrays[name].shape != shape:
                raise InvalidArgumentError(
                    f"data[{name!r}] must be of shape {shape}, like the real data; got {arrays[name].shape}."
                )
        return arrays

    def simulate(self, n: int, *, fixed: Mapping[str, Any] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly; see `bread.backends.base.Model.simulate`.

        Raises
        ------
        InvalidArgumentError
            For fixed parameters with a wrong name, shape or value, or without their parents.
        UnsupportedModelError
            If a draw fails, or is not finite.
        """
        held = self._check_fixed(fixed or {})
        states, data = np.empty((n, self.layout.dim)), []
        constrained: list[Values] = []
        n_attempts = 0
        for index, child in enumerate(child_seeds(seed, n)):
            values, states[index], derived, attempts = self._draw_parameters(child, held)
            n_attempts += attempts
            constrained.append(values | derived)
            data.append(self._data.draw(values, child))
        return Simulations(
            states=states,
            parameters=self._stack(constrained, states),
            data={
                name: np.array([draw[name] for draw in data], dtype=dtype).reshape(n, *shape)
                for name, (shape, dtype) in self.observed.items()
            },
            acceptance=n / n_attempts if n else 1.0,
        )

    def draw_near(self, states: Sequence[FloatArray], seed: SeedSequence) -> list[tuple[FloatArray, Values]]:
        """Draw data given states; return each of these that has data that can be drawn, with its data.

        Raises
        ------
        UnsupportedModelError
            PyMC cannot draw the data, or none given any of the states.
        """
        found, last = [], None
        for state, child in zip(states, child_seeds(seed, len(states)), strict=True):
            mapped = self._constrain_one(state)
            try:
                found.append((state, self._data.draw({name: mapped[name] for name in self.names}, child)))
            except ExtremeDataError as error:
                last = error
        if last is not None and not found:
            raise last
        return found

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, one state a seed; shape (len(seeds), dim). Needs no data."""
        states = np.empty((len(seeds), self.layout.dim))
        for index, seed in enumerate(seeds):
            states[index] = self._draw_parameters(seed, {}, derive=False)[1]
        return states

    def draw_states_at_once(self, n: int, seed: SeedSequence) -> FloatArray | None:
        """Draw from the prior with one seed, shape (n, dim); None where few are wanted, or not every draw is kept."""
        is_plain = type(self) is Simulator and not self.restrictions.tested  # others draw in ways of their own
        draws = self._built("draw", self._prior_graph.draw_many) if is_plain and n >= WORTH_BUILDING else None
        if draws is None:
            return None
        return draw_batch(draws, n, seed, lambda few: self.draw_states(child_seeds(seed, few)))

    def constrain(self, states: FloatArray) -> Values:
        """Map states (n, dim) to free variables and deterministics (n, ...)."""
        return self._stack([self._constrain_one(state) for state in states], states)

    def unconstrain(self, draws: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map constrained free variables, each (n, ...), to states (n, dim)."""
        columns = [np.asarray(draws[name], dtype=str(draw.type.dtype)) for name, draw in self._typed_draws()]
        n = len(columns[0])
        function = self._built("unconstrain", self._prior_graph.unconstrain_many) if n >= WORTH_BUILDING else None
        states = None if function is None else unconstrain_batch(function, columns, self._unconstrain_each)
        return self._unconstrain_each(columns, n) if states is None else states

    def _built(self, name: str, build: Callable[[], Any]) -> Any:
        """Return what was built once in this process."""
        if name not in self._many:
            self._many[name] = build()
        return self._many[name]

    def _unconstrain_each(self, columns: Sequence[NDArray[Any]], n: int) -> FloatArray:
        function = self._prior_function(frozenset(self.names))
        unused: list[Any] = [np.random.default_rng(0) for _ in self._prior_graph.generators]
        states = np.empty((n, self.layout.dim))
        with np.errstate(all="ignore"):
            for index in range(n):
                outputs = function(*(column[index] for column in columns), *unused)
                states[index] = self._flatten(outputs[len(self.names) :])
        return states

    def pilot(self) -> tuple[str, ...]:
        """Draw from the prior: find out whether it can be simulated, and how often a draw is rejected.

        Returns
        -------
        tuple of str
            Notes for `Identity.notes`.

        Raises
        ------
        UnsupportedModelError
            If a draw fails or too few are accepted.
        """
        names = self.restrictions.tested
        accepted = attempts = 0
        seed = SeedSequence(0)
        while accepted < PILOT_DRAWS and attempts < PILOT_ATTEMPTS:
            drawn = self._attempt(seed, attempts, {}, self._prior_function(frozenset()))
            attempts += 1
            if drawn is not None:
                accepted += 1
                with suppress(ExtremeDataError):
                    self._data.draw(drawn[0], child_seeds(seed, attempts)[-1])
        if accepted < MINIMUM_ACCEPTANCE * attempts:
            raise UnsupportedModelError(
                f"The transform of {', '.join(map(repr, names))} restricts the support to a part that is hit by "
                f"{accepted} of {attempts} draws from the prior; exact simulation by rejection needs at least "
                f"{MINIMUM_ACCEPTANCE:g}. Give all components the same prior (they are then sorted), or write the "
                "restriction as a distribution (differences with positive priors, pm.Truncated)."
            )
        sorted_names = self.restrictions.ascending
        notes = [sorting_note(name, self.shapes[name]) for name in sorted_names]
        if accepted < attempts:
            rejected = tuple(name for name in names if name not in sorted_names) or names
            notes.append(rejection_note(rejected, accepted, attempts))
        return tuple(notes)

    def _typed_draws(self) -> list[tuple[str, Any]]:
        return list(zip(self.names, self._prior_graph.draws, strict=True))

    def _prior_function(self, fixed: frozenset[str]) -> Callable[..., list[Any]]:
        if fixed not in self._draw_prior:
            self._draw_prior[fixed] = self._prior_graph.compile(self.names, fixed)
        return self._draw_prior[fixed]

    def _check_fixed(self, fixed: Mapping[str, Any]) -> Values:
        names = check_fixed_names(self.parents, fixed, "fixed")
        held: Values = {}
        for name, draw in self._typed_draws():
            if name not in names:
                continue
            value = np.asarray(fixed[name])
            expected = self.shapes[name]
            if value.shape != expected or not np.all(np.isfinite(value)):
                raise InvalidArgumentError(
                    f"fixed[{name!r}] must be finite and of shape {expected}, but is of shape {value.shape}: {value}."
                )
            held[name] = value.astype(str(draw.type.dtype))
        return held

    def _draw_parameters(
        self, seed: SeedSequence, held: Values, *, derive: bool = True
    ) -> tuple[Values, FloatArray, Values, int]:
        """Return free variables, state, deterministics, and how many draws that took."""
        function = self._prior_function(frozenset(held))
        for attempt in range(MAXIMUM_ATTEMPTS):
            drawn = self._attempt(seed, attempt, held, function)
            if drawn is not None:
                values, state = drawn
                mapped = self._constrain_one(state) if derive else {}
                return values, state, {name: mapped[name] for name in self.derived if derive}, attempt + 1
        raise UnsupportedModelError(
            f"No draw of {', '.join(map(repr, self.restrictions.tested))} in {MAXIMUM_ATTEMPTS} lies in the support to "
            f"which its transform restricts it{' given the fixed ' + ', '.join(held) if held else ''}. Change the "
            "prior or the transform."
        )

    def _attempt(
        self, seed: SeedSequence, attempt: int, held: Values, function: Callable[..., list[Any]]
    ) -> tuple[Values, FloatArray] | None:
        """Return one joint draw of the free variables and its state; None if a transform cannot represent it."""
        streams = generators(seed, Part.PARAMETERS, attempt, len(self._prior_graph.generators))
        try:
            with np.errstate(all="ignore"):
                outputs = function(*held.values(), *streams)
        except Exception as error:
            if held:
                raise InvalidArgumentError(
                    f"Drawing the other parameters given fixed = {held} fails: {first_line(error)}. "
                    "Pass values inside the support of each parameter."
                ) from error
            raise UnsupportedModelError(
                f"Drawing {self._failing_variable()} from the prior fails: {first_line(error)}. Every prior must be "
                "one that PyMC can draw from (see pm.sample_prior_predictive), without extreme values."
            ) from error
        n = len(self.names)
        values = dict(zip(self.names, outputs[:n], strict=True))
        finite = dict(zip(self.names, (np.all(np.isfinite(value)) for value in outputs[n:]), strict=True))
        for name, is_finite in finite.items():
            if not is_finite and name not in self.restrictions.tested:
                raise self._not_finite(name, values[name], name in held)
        if not all(finite.values()):
            self._refuse_outside(finite, values, held)
            return None
        state = self._flatten(outputs[n:])
        if self.restrictions.tested:
            mapped = self._constrain_one(state)
            inside = {name: is_represented(values[name], mapped[name]) for name in self.restrictions.tested}
            if not all(inside.values()):
                self._refuse_outside(inside, values, held)
                return None
        return values, state

    @staticmethod
    def _refuse_outside(inside: Mapping[str, Any], values: Values, held: Values) -> None:
        for name in held:
            if not inside.get(name, True):
                raise InvalidArgumentError(
                    f"fixed[{name!r}] = {values[name]} is outside the support to which the transform restricts it. "
                    "Pass a value inside."
                )

    @staticmethod
    def _not_finite(name: str, value: NDArray[Any], is_fixed: bool) -> Exception:
        if is_fixed:
            return InvalidArgumentError(
                f"fixed[{name!r}] = {value} is not inside the support of {name!r}. Pass one inside."
            )
        return UnsupportedModelError(
            f"A draw of {name!r} from its prior has no finite unconstrained value ({value}): the prior puts mass where "
            "floating-point numbers end (such as Gamma(0.001, 0.001) near 0), or the transform restricts the support. "
            "Use a prior that can be drawn from."
        )

    def _failing_variable(self) -> str:
        """Return the name of the first free variable that cannot be drawn."""
        for name, draw in self._typed_draws():
            try:
                streams = generators(SeedSequence(0), Part.PARAMETERS, 0, len(self._prior_graph.generators))
                interpret_function(self._prior_graph.generators, [draw])(*streams)
            except Exception:
                return repr(name)
        return "parameters"

    def _constrain_one(self, state: FloatArray) -> Values:
        with np.errstate(all="ignore"):
            outputs = self._constrain(*self.layout.unflatten(state).values())
        return dict(zip((*self.names, *self.derived), outputs, strict=True))

    def _flatten(self, values: Sequence[NDArray[Any]]) -> FloatArray:
        return np.concatenate([np.asarray(value, dtype=np.float64).reshape(-1) for value in values])

    def _stack(self, draws: Sequence[Values], states: FloatArray) -> Values:
        if not draws:
            empty = self._constrain_one(np.zeros(self.layout.dim))
            return {name: np.empty((0, *value.shape), dtype=value.dtype) for name, value in empty.items()}
        return {name: np.array([draw[name] for draw in draws]) for name in (*self.names, *self.derived)}


def build_simulator(model: Any, layout: StateLayout, observed: Values, deterministics: Sequence[Any]) -> Simulator:
    """Compile the prior, the data given parameters, and the map from states to parameters; three functions."""
    restrictions = read_restrictions(model)
    free = list(model.free_RVs)
    constrained = detach(model.replace_rvs_by_values([*free, *deterministics]))
    constrain = interpret_function([model.rvs_to_values[variable] for variable in free], constrained.outputs)
    with np.errstate(all="ignore"):
        example = constrain(*layout.unflatten(np.zeros(layout.dim)).values())
    return Simulator(
        layout=layout,
        shapes={variable.name: value.shape for variable, value in zip(free, example, strict=False)},
        derived=tuple(variable.name for variable in deterministics),
        parents=read_parents(model),
        restrictions=restrictions,
        _prior_graph=prior_graph(model, restrictions),
        _data=build_data_simulator(model, observed),
        _constrain=constrain,
    )
