"""A program whose named parameters have another law: a reference on their unconstrained coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends.base import FloatArray, IntArray
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.dataflow import Dataflow, analyse_dataflow
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.scopes import Variable, resolve
from bread.backends.stan.language.syntax import Node, end, parse, source_text, start
from bread.backends.stan.language.variates import rank
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.path_arguments import ONE_BOUND, TWO_BOUNDS, UNBOUNDED, Law
from bread.backends.stan.native.toolchain import find_toolchain
from bread.backends.stan.places import in_users_files
from bread.backends.stan.simulation import Fixed, JointDraws, JointSimulator, concatenate_draws
from bread.backends.stan.split import rewriting
from bread.backends.stan.split.own_laws import OwnLaws
from bread.backends.stan.split.rewriting import Edit
from bread.backends.stan.state_draws import StateDraws
from bread.backends.support.arguments import require_parameters
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.paths.mixture import Reference

_TYPES = ("real", "vector", "row_vector", "matrix")
_STEP, _TRIES = 1e-5, 100  # of difference quotients, and for a state at which these can be taken
_ORDERED = -1  # the first coordinate is the first element, the others are logs of gaps
_WAY_OUT = "Use simulate_from='prior'."


@dataclass(frozen=True)
class Localised:
    """What localising changes of a model.

    Attributes
    ----------
    library : StanLibrary
        The program without the law of the named parameters.
    law : Law
        What takes its place.
    instance : StanInstance
        With the real data.
    draws : StateDraws
    note : str
        For the report.
    """

    library: StanLibrary
    law: Law
    instance: StanInstance
    draws: StateDraws
    note: str


def localise(
    program: Program,
    data: Mapping[str, Any],
    instance: StanInstance,
    draws: StateDraws,
    positions_of: Mapping[str, IntArray],
    names: Sequence[str],
    reference: Reference,
) -> Localised:
    """Return a program with ``reference`` as the law of the named parameters, rewritten and compiled.

    Parameters
    ----------
    program : Program
    data : mapping of str to Any
        Its data block.
    instance : StanInstance
    draws : StateDraws
        The program as it was opened.
    positions_of : mapping of str to ndarray of int
        Coordinates of each parameter.
    names : sequence of str
    reference : Reference
        Of the coordinates of ``names``, in the order of the program.

    Raises
    ------
    InvalidArgumentError
        A name is no parameter, one is missing whose prior cannot be drawn from, or the reference has another number
        of coordinates.
    UnsupportedModelError
        The law of the named parameters cannot be told from that of the others, or their transform is another one than
        declared.
    """
    require_parameters(names, positions_of)
    positions = np.sort(np.concatenate([positions_of[name] for name in names]))
    n_coordinates = reference.sample(1, default_rng(0)).shape[-1]
    if n_coordinates != len(positions):
        raise InvalidArgumentError(
            f"the reference is a density of {n_coordinates} coordinates; here it must be one of {len(positions)}, "
            f"those of {', '.join(names)}."
        )
    missing = [name for name in program.held if name not in names]
    if missing:
        raise InvalidArgumentError(f"names must hold {missing[0]!r}, whose prior cannot be drawn from.")
    text, kinds = require_localisable(program, names)
    library = StanLibrary.of(text, find_toolchain(), places=in_users_files(program.source, program.edits))
    owner = {int(place): name for name in names for place in positions_of[name]}
    jacobians = np.array([kinds[owner[int(place)]] for place in positions], dtype=np.int64)
    firsts = [int(positions_of[name][0]) for name in names if kinds[name] == _ORDERED]
    jacobians[jacobians == _ORDERED] = ONE_BOUND
    jacobians[np.isin(positions, firsts)] = UNBOUNDED
    _prove_jacobians(instance, owner, positions, jacobians)
    law = Law(positions, reference, jacobians)
    law_instance = library.instance(data, law=law)
    simulator = LocalisedSimulator(draws.simulator, instance, tuple(names), positions, reference)
    note = f"Localised: the law of {', '.join(names)} is a density near the real data ({reference.label})."
    return Localised(library, law, law_instance, StateDraws(simulator, law_instance, draws.edged), note)


def require_localisable(program: Program, names: Sequence[str]) -> tuple[str, dict[str, int]]:
    """Return what `rewrite` returns, which needs neither data nor a compiler.

    Raises
    ------
    UnsupportedModelError
        The law of the named parameters cannot be told from that of others, or their type has no transform here.
    """
    if program.split_refusal is not None:
        raise UnsupportedModelError(
            f"The law of {', '.join(names)} cannot be told from the rest of the program: {program.split_refusal} "
            f"{_WAY_OUT}"
        )
    try:
        return rewrite(program, names)
    except RefusedError as error:
        raise UnsupportedModelError(str(error.refusal)) from error


def rewrite(program: Program, names: Sequence[str]) -> tuple[str, dict[str, int]]:
    """Return the tempered program without the law of the named parameters, and how each is transformed.

    Statements that are their law are left out, and constant factors of their Jacobians taken out; the rest of the
    Jacobians is left to the driver (`bread.backends.stan.native.path_arguments.Law`). Every line end stays.

    Raises
    ------
    RefusedError
        Their law cannot be told from that of others.
    """
    source = program.source
    blocks = parse(source)
    scopes = resolve(blocks)
    flow = analyse_dataflow(blocks, scopes)
    laws, edits = OwnLaws(flow, source, names), list(program.edits)
    for contribution, known in zip(flow.contributions, program.contributions, strict=True):
        if laws.belongs(contribution, known.part):
            first, last = start(contribution.node), end(contribution.node)
            edits.append(Edit(first, last, rewriting.blank(source.text[first:last]) + ";"))
    kinds, factors = {}, []
    for name in names:
        variable = scopes.named(name, "parameter")
        assert variable is not None
        kinds[name], factor = _Transform(program, flow, names, variable).read()
        factors += [factor] if factor else []
    if factors:
        last = end(blocks["model_block"]) - 1
        edits.append(Edit(last, last, f" target += -({' + '.join(factors)}); "))
    return rewriting.apply_edits(source.text, edits), kinds


@dataclass(frozen=True)
class _Transform:
    """How one parameter is made from its unconstrained coordinates."""

    program: Program
    flow: Dataflow
    names: Sequence[str]
    variable: Variable

    def read(self) -> tuple[int, str]:
        """Return the kind, and the log of the Jacobian's factor that coordinates do not enter, in Stan; "" for 0."""
        variable, bounds = self.variable, self.variable.bounds
        if variable.type in ("ordered", "positive_ordered") and not variable.array_sizes:
            return (_ORDERED if variable.type == "ordered" else ONE_BOUND), ""
        if variable.type not in _TYPES:
            raise self._refuse(f"{variable.name!r} is a {variable.type}, whose transform bread does not replace.")
        others = {v.name for v in self.flow.depends(*bounds.values()) if v.kind == "parameter"} - set(self.names)
        if others:
            raise self._refuse(f"the bounds of {variable.name!r} depend on the parameter {min(others)!r}.")
        if "lower" in bounds and "upper" in bounds:
            return TWO_BOUNDS, self._sum(f"({self._text('upper')}) - ({self._text('lower')})", "lower", "upper")
        if "lower" in bounds or "upper" in bounds:
            return ONE_BOUND, ""
        return UNBOUNDED, self._sum(f"({self._text('multiplier')})", "multiplier") if "multiplier" in bounds else ""

    def _sum(self, factor: str, *names: str) -> str:
        """Return the sum over elements of the log of a factor."""
        variable = self.variable
        if all(rank(variable.bounds[name], self.flow.scopes) == 0 for name in names):
            size = " * ".join(f"({self._code(node)})" for node in variable.dimensions)
            return f"{size} * log({factor})" if size else f"log({factor})"
        if variable.array_sizes:
            raise self._refuse(f"the bounds of the elements of the array {variable.name!r} differ.")
        return f"sum(log({factor} + 0 * {variable.name}))"

    def _text(self, bound: str) -> str:
        text = self._code(self.variable.bounds[bound])
        if "infinity" in text:
            raise self._refuse(f"{self.variable.name!r} has an infinite bound.")
        return text

    def _code(self, node: Node) -> str:
        return source_text(self.program.source, node)

    def _refuse(self, reason: str) -> RefusedError:
        name = self.variable.name
        way_out = f"Leave {name!r} out of hyperparameters= if it has a proper prior of its own; otherwise give it one."
        return refuse(self.program.source, self.variable.node, reason, way_out)


def _prove_jacobians(instance: StanInstance, owner: dict[int, str], positions: IntArray, jacobians: IntArray) -> None:
    """Compare the transforms with difference quotients of Stan's own.

    Raises
    ------
    UnsupportedModelError
        They differ, as where a bound given as data is infinite; or the program has no values wherever it is tried.
    """
    state = _state_with_values(instance, positions)
    for place, kind in zip(positions.tolist(), jacobians.tolist(), strict=True):
        u, states = _moved(state, place)
        values = instance.constrain(states)[owner[place]].reshape((2, 2, -1))
        slope = np.abs(values[0] - values[1]).max(axis=-1) / (2 * _STEP)  # a gap moves all later elements alike
        shape = [np.ones(2), np.exp(u), 1.0 / (np.exp(-u / 2) + np.exp(u / 2)) ** 2][kind]
        # one bound: plus or minus the exponential
        factor = 1.0 if kind == ONE_BOUND else slope[0] / shape[0]
        if not np.allclose(slope / shape, factor, rtol=1e-5):
            raise UnsupportedModelError(
                f"The transform of {owner[place]!r} is not the one that its declaration states; is a bound infinite? "
                f"Leave such a bound out of the program. {_WAY_OUT}"
            )


def _moved(state: FloatArray, place: int) -> tuple[FloatArray, FloatArray]:
    """Return two values of a coordinate, and the states a step beyond and before each."""
    u = state[place] + np.array([0.0, 0.7])
    states = np.repeat(state[None, :], 4, axis=0)
    states[:, place] = np.concatenate([u + _STEP, u - _STEP])
    return u, states


def _state_with_values(instance: StanInstance, positions: IntArray) -> FloatArray:
    """Return a state that can be moved: bounds that depend on parameters may leave others no room."""
    generator, why = default_rng(0), ""
    for _ in range(_TRIES):
        state = generator.uniform(-1.0, 1.0, instance.dim)
        try:
            for place in positions.tolist():
                instance.constrain(_moved(state, place)[1])
        except DensityError as error:
            why = str(error)
        else:
            return state
    raise UnsupportedModelError(f"The transforms have no values at {_TRIES} points: {why}. {_WAY_OUT}")


@dataclass(frozen=True)
class LocalisedSimulator:
    """Draws the named parameters from the reference, and everything else given them.

    Parameters
    ----------
    simulator : JointSimulator
        Can hold the named parameters.
    instance : StanInstance
        Maps coordinates to parameters.
    names : tuple of str
    positions : ndarray of int
        Their coordinates.
    reference : Reference
    """

    simulator: JointSimulator
    instance: StanInstance
    names: tuple[str, ...]
    positions: IntArray
    reference: Reference
    fixable: tuple[str, ...] = field(default=(), init=False)

    @property
    def can_redraw(self) -> bool:
        """Whether a failure may be met by another draw; see `bread.backends.stan.simulation.JointSimulator`."""
        return self.simulator.can_redraw

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None, *, only_parameters: bool = False
    ) -> JointDraws:
        """Return one draw per seed; see `bread.backends.stan.simulation.JointSimulator`.

        Raises
        ------
        UnsupportedModelError
            The simulator rejects draws: the law of the others given the named is then not normalised.
        """
        draws = [self._draw(seed, only_parameters) for seed in seeds]
        return concatenate_draws(draws)

    def _draw(self, seed: SeedSequence, only_parameters: bool) -> JointDraws:
        own, rest = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size).spawn(2)
        state = np.zeros((1, self.instance.dim))
        state[0, self.positions] = self.reference.sample(1, default_rng(own))[0]
        values = self.instance.constrain(state)
        held = {name: values[name][0] for name in self.names}
        draws = self.simulator.draw([rest], held, only_parameters=only_parameters)
        if draws.acceptance < 1.0:
            raise UnsupportedModelError(
                f"Given {', '.join(self.names)}, the other parameters are drawn by rejection: the density that the "
                "program states for them is normalised only up to a function of these, which another law of theirs "
                f"brings to light. Write the truncation out (T[low, high]). {_WAY_OUT}"
            )
        return draws
