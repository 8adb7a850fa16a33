"""Exact joint draws of parameters and data: by the simulator derived from the program, or by the user's.

Draw i depends on its own seed alone. All three simulators return values in the program's own coordinates; states come
from Stan's own transforms, so that a draw on the border of its support (a number that rounds to a bound) is an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.stan.library import StanInstance, StanLibrary
from bread.errors import BreadError, DensityError, InvalidArgumentError, UnsupportedModelError

Fixed = Mapping[str, NDArray[Any]]
UserSimulator = Callable[..., tuple[Mapping[str, Any], Mapping[str, Any]]]
_SIMULATED = "bread_sim_"
_ANCHOR_TRIES = 50


@dataclass(frozen=True)
class JointDraws:
    """Draws in the program's own coordinates.

    Attributes
    ----------
    parameters, data : dict of str to ndarray, each (n, ...)
    log_likelihood : ndarray, shape (n,), or None
        Log density of the data given the parameters, by the simulator itself.
    acceptance : float
        Fraction of joint draws that were within bounds.
    """

    parameters: dict[str, NDArray[Any]]
    data: dict[str, NDArray[Any]]
    log_likelihood: FloatArray | None = None
    acceptance: float = 1.0


class JointSimulator(Protocol):
    """Draws parameters and data jointly."""

    @property
    def fixable(self) -> tuple[str, ...]:
        """Parameters that can be held at a value."""
        ...

    def draw(self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None) -> JointDraws:
        """Return one draw per seed, with named parameters held at values."""
        ...


@dataclass(frozen=True)
class DerivedSimulator:
    """The simulator that bread wrote into the generated quantities of the program.

    Parameters
    ----------
    library : StanLibrary
    data : dict of str to Any
        The data block, the switches of held parameters included.
    parameters : tuple of str
    observed : dict of str to dtype
    fixable : tuple of str
    """

    library: StanLibrary
    data: dict[str, Any]
    parameters: tuple[str, ...]
    observed: dict[str, np.dtype[Any]]
    fixable: tuple[str, ...]

    def draw(self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None) -> JointDraws:
        """Return one draw per seed; see `JointSimulator.draw`.

        Raises
        ------
        DensityError
            The program's random number generators fail; the message is Stan's.
        """
        instance = self.library.instance({**self.data, **self._held(fixed or {})})
        values = _generate(instance, seeds)
        data = {name: values[_SIMULATED + name].astype(dtype) for name, dtype in self.observed.items()}
        return JointDraws(
            {name: values[_SIMULATED + name] for name in self.parameters},
            data,
            values[f"{_SIMULATED}log_likelihood"],
            len(seeds) / max(1.0, float(values[f"{_SIMULATED}attempts"].sum())),
        )

    def _held(self, fixed: Fixed) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for name, value in fixed.items():
            array = np.asarray(value, dtype=np.float64)
            held[f"bread_use_fixed_{name}"] = 1
            held[f"bread_fixed_{name}"] = array if array.ndim else array[None]
        return held


@dataclass(frozen=True)
class ProgramSimulator:
    """A Stan program of the user's whose generated quantities are parameters and observed data, under their names."""

    library: StanLibrary
    data: dict[str, Any]
    parameters: tuple[str, ...]
    observed: dict[str, np.dtype[Any]]
    fixable: tuple[str, ...] = field(default=(), init=False)

    def draw(self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None) -> JointDraws:
        """Return one draw per seed; see `JointSimulator.draw`."""
        values = _generate(self.library.instance(self.data), seeds)
        missing = [name for name in (*self.parameters, *self.observed) if name not in values]
        if missing:
            raise InvalidArgumentError(
                f"The program in simulator= does not declare {missing[0]!r}. Its generated quantities must hold every "
                f"parameter and observed variable: {', '.join((*self.parameters, *self.observed))}."
            )
        data = {name: values[name].astype(dtype) for name, dtype in self.observed.items()}
        return JointDraws({name: values[name] for name in self.parameters}, data)


@dataclass(frozen=True)
class CallableSimulator:
    """A Python function ``(rng, data) -> (parameters, observed)`` of the user's.

    With a parameter called ``fixed`` it can hold hyperparameters: it is then given a dict of their values.
    """

    function: UserSimulator
    data: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    observed: dict[str, np.dtype[Any]]
    observed_shapes: dict[str, tuple[int, ...]]

    @property
    def fixable(self) -> tuple[str, ...]:
        """All parameters if the function takes ``fixed``, else none."""
        try:
            takes_fixed = "fixed" in inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            takes_fixed = False
        return tuple(self.shapes) if takes_fixed else ()

    def draw(self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None) -> JointDraws:
        """Return one draw per seed; see `JointSimulator.draw`.

        Raises
        ------
        InvalidArgumentError
            The function raises, or does not return what it must.
        """
        rows = [self._draw_one(seed, fixed) for seed in seeds]
        return JointDraws(
            {name: np.array([row[0][name] for row in rows]).reshape((len(rows), *self.shapes[name]))
             for name in self.shapes},
            {name: np.array([row[1][name] for row in rows], dtype=dtype).reshape(
                (len(rows), *self.observed_shapes[name])) for name, dtype in self.observed.items()},
        )  # fmt: skip

    def _draw_one(self, seed: SeedSequence, fixed: Fixed | None) -> tuple[dict[str, Any], dict[str, Any]]:
        options = {"fixed": dict(fixed)} if fixed else {}
        try:
            parameters, observed = self.function(np.random.default_rng(seed), dict(self.data), **options)
            parameters, observed = dict(parameters), dict(observed)
        except BreadError:
            raise
        except Exception as error:
            raise InvalidArgumentError(
                f"simulator= failed: {type(error).__name__}: {error}. It is called as simulator(rng, data) and must "
                "return two dicts, (parameters, observed)."
            ) from error
        for what, values, shapes in (("parameter", parameters, self.shapes), ("observed variable", observed,
                                                                              self.observed_shapes)):  # fmt: skip
            for name, shape in shapes.items():
                if name not in values:
                    raise InvalidArgumentError(
                        f"simulator= returned no {what} {name!r}; it returned {', '.join(values) or 'none'}."
                    )
                if np.shape(values[name]) != shape:
                    raise InvalidArgumentError(
                        f"simulator= returned the {what} {name!r} of shape {np.shape(values[name])}; the program "
                        f"declares {shape}."
                    )
        return parameters, observed


def _generate(instance: StanInstance, seeds: Sequence[SeedSequence]) -> dict[str, FloatArray]:
    """Return generated quantities, one run per seed; they do not use the state they are run at."""
    state = _anchor(instance)
    return instance.constrain(np.repeat(state[None, :], len(seeds), axis=0), "generated", list(seeds))


def _anchor(instance: StanInstance) -> FloatArray:
    """Return a state whose transformed parameters the program accepts: Stan computes them before anything else."""
    generator = np.random.default_rng(0)
    state, last = np.zeros(instance.dim), None
    for _ in range(_ANCHOR_TRIES):
        try:
            instance.constrain(state[None, :], "transformed")
        except DensityError as error:
            state, last = generator.uniform(-2.0, 2.0, instance.dim), error
        else:
            return state
    raise UnsupportedModelError(
        f"The program's transformed parameters fail at {_ANCHOR_TRIES} random points, so that its simulator cannot be "
        f"run: {last}. Pass simulator=."
    )


@dataclass(frozen=True)
class StateDraws:
    """Joint draws as states; what `bread.backends.stan.posterior.StanPosterior` draws its start from.

    Parameters
    ----------
    simulator : JointSimulator
    instance : StanInstance
        The program with the real data: it maps values to states and back, which no outcome changes.
    """

    simulator: JointSimulator
    instance: StanInstance

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return one exact prior draw per seed, shape (len(seeds), dim)."""
        return self.states_of(self.simulator.draw(seeds))

    def states_of(self, draws: JointDraws) -> FloatArray:
        """Return the states of draws.

        Raises
        ------
        DensityError
            A draw lies outside its support, or on its border, where no state is finite.
        """
        try:
            states = self.instance.unconstrain(draws.parameters)
        except DensityError as error:
            raise DensityError(f"A simulated parameter is outside its declared support: {error}") from error
        outside = ~np.isfinite(states).all(axis=0)
        if outside.any():
            name = np.array(self.instance.coordinates)[outside][0]
            raise DensityError(
                f"{(~np.isfinite(states).all(axis=1)).sum()} of {len(states)} prior draws of {name!r} round to the "
                "border of its support (to 0, for example), where the log density is not finite. Use a prior with less "
                "mass there."
            )
        return states

    def simulate(self, n: int, fixed: Fixed | None, seed: SeedSequence) -> tuple[FloatArray, JointDraws]:
        """Return ``n`` joint draws and their states; draw i uses child i of ``seed`` alone."""
        unknown = [name for name in fixed or {} if name not in self.simulator.fixable]
        if unknown:
            raise InvalidArgumentError(_cannot_hold(unknown[0], self.simulator))
        fresh = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        draws = self.simulator.draw(fresh.spawn(n), fixed)
        return self.states_of(draws), draws


def require_fixable(names: Sequence[str], simulator: JointSimulator) -> None:
    """Raise InvalidArgumentError unless the simulator can hold these hyperparameters at a value."""
    for name in names:
        if name not in simulator.fixable:
            raise InvalidArgumentError(_cannot_hold(name, simulator))


def _cannot_hold(name: str, simulator: JointSimulator) -> str:
    if isinstance(simulator, DerivedSimulator):
        way_out = f"The simulator derived from the program can hold {', '.join(simulator.fixable) or 'none'}."
    else:
        way_out = "Write it as simulator(rng, data, fixed), where fixed is a dict of values to hold."
    return (
        f"simulator= cannot hold the hyperparameter {name!r} at a value, which simulate_from='fitted' needs, and "
        "'localised' too. "
        f"{way_out} Or use simulate_from='prior'."
    )
