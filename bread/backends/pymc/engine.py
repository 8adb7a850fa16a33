"""Compiled density and step methods of one PyMC model: what moves a chain.

An engine is made once; inverse temperature, data, settings, direction and random numbers are set before a chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.random import SeedSequence
from numpy.typing import NDArray
from pymc.blocking import RaveledVars

from bread.backends.base import FloatArray, Settings
from bread.backends.pymc.density import CompiledFunction, DensityControls, TemperedDensity
from bread.backends.pymc.kernels import build_steps, kernel_name
from bread.backends.pymc.layout import StateLayout
from bread.backends.pymc.stepping import FrozenStep, GradientStep


def compile_engine(model: pm.Model, layout: StateLayout, kernel: Any) -> Engine:
    """Compile the density and build the kernel of a model, once; data and inverse temperature are set later.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    layout : StateLayout
        Order of the coordinates of a state.
    kernel : None, str, type, callable or sequence
        See `bread.backends.pymc.kernels.build_steps`.

    Returns
    -------
    Engine
        Picklable with cloudpickle; holds neither the user's model nor its graphs.

    Raises
    ------
    UnsupportedKernelError
        If the kernel cannot be frozen or reversed, or does not fit the model.
    """
    density = TemperedDensity(model, layout)
    steps = build_steps(model, layout, density, kernel)
    names = tuple(name for step in steps if isinstance(step, GradientStep) for name in step.gradient.names)
    if len(steps) == 1 and len(names) == len(layout.names):
        return GradientEngine(layout, density.controls, steps)
    return CompoundEngine(layout, density.controls, steps, density.compile_terms())


class Engine:
    """Compiled functions and step methods of one model; mutable, shared by all data sets, one chain at a time.

    A position is the state of a chain as the step methods want it; `start` and `state_of` convert.

    Attributes
    ----------
    name : str
        Name of the kernel, such as "NUTS".
    """

    def __init__(self, layout: StateLayout, controls: DensityControls, steps: Sequence[FrozenStep]) -> None:
        self.layout = layout
        self.controls = controls
        self.steps = tuple(steps)
        self.name = kernel_name(steps)
        n_tuned = sum(bool(step.setting_names) for step in steps)
        # Key of each setting of each step: "step_size", or "step_size_0" where several steps have settings.
        self._keys = [
            {name: name if n_tuned == 1 else f"{name}_{index}" for name in step.setting_names}
            for index, step in enumerate(steps)
        ]
        self._extra_gradients = 0
        self._extra_evaluations = 0

    def start(self, state: FloatArray) -> Any:
        """Return the position of a state of shape (dim,)."""
        raise NotImplementedError

    def state_of(self, position: Any) -> FloatArray:
        """Return the state of shape (dim,) of a position."""
        raise NotImplementedError

    def terms(self, state: FloatArray) -> tuple[float, float]:
        """Return log prior and log likelihood (nats) of a state. Leaves the inverse temperature undefined."""
        raise NotImplementedError

    def move(self, position: Any) -> tuple[Any, float, bool]:
        """Run the kernel once; return the new position, its log likelihood, whether a transition diverged."""
        raise NotImplementedError

    @property
    def counts(self) -> tuple[int, int]:
        """Gradient evaluations and evaluations of the density alone, since the engine was made."""
        return (
            self._extra_gradients + sum(step.n_gradients for step in self.steps),
            self._extra_evaluations + sum(step.n_evaluations for step in self.steps),
        )

    def reset(self, seed: SeedSequence) -> None:
        """Freeze, forget all history, and set the random numbers of the next chain from ``seed`` alone."""
        for step in self.steps:
            step.freeze()
        self._seed(seed)

    def _seed(self, seed: SeedSequence) -> None:
        # A copy: spawning from the caller's object would change it, and depend on earlier spawning.
        fresh = SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        for step, child in zip(self.steps, fresh.spawn(len(self.steps)), strict=True):
            step.seed(child)

    def _settings_of(self, index: int, settings: Settings) -> Settings:
        return {name: settings[key] for name, key in self._keys[index].items()}

    def apply(self, beta: float, settings: Settings, *, reverse: bool = False) -> None:
        """Set the inverse temperature, the frozen settings and the direction of the kernel."""
        self.controls.set_beta(beta)
        for index, step in enumerate(self.steps):
            step.apply(self._settings_of(index, settings), reverse=reverse)

    def start_adapting(
        self, beta: float, state: FloatArray, n_steps: int, previous: Settings | None, seed: SeedSequence
    ) -> None:
        """Begin the step methods' own adaptation at ``beta``."""
        point = self.layout.unflatten(state)
        for index, step in enumerate(self.steps):
            step.freeze()
            step.start_adapting(point, n_steps, None if previous is None else self._settings_of(index, previous))
        self._seed(seed)
        self.controls.set_beta(beta)

    @property
    def setting_names(self) -> tuple[str, ...]:
        """Names of all settings of the kernel."""
        return tuple(key for keys in self._keys for key in keys.values())

    def settings(self) -> Settings:
        """Return the present settings of all steps."""
        return {
            self._keys[index][name]: value
            for index, step in enumerate(self.steps)
            for name, value in step.settings().items()
        }


class GradientEngine(Engine):
    """One NUTS or HMC step that moves all coordinates: a position is its flat vector, nothing is copied."""

    def __init__(self, layout: StateLayout, controls: DensityControls, steps: Sequence[FrozenStep]) -> None:
        super().__init__(layout, controls, steps)
        (step,) = steps
        assert isinstance(step, GradientStep)
        self._step, self._gradient = step.step, step.gradient
        index = dict(zip(layout.names, range(len(layout.names)), strict=True))
        starts = np.concatenate([[0], np.cumsum(layout.sizes)])
        chosen = [index[name] for name in step.gradient.names]
        self._order = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in chosen])
        self._inverse_order = np.argsort(self._order)
        self._map = tuple((layout.names[i], layout.shapes[i], layout.sizes[i], layout.dtypes[i]) for i in chosen)

    def start(self, state: FloatArray) -> FloatArray:
        """Return the position of a state."""
        position: FloatArray = state[self._order].astype(self._gradient.dtype)
        return position

    def state_of(self, position: FloatArray) -> FloatArray:
        """Return the state of a position."""
        state: FloatArray = position[self._inverse_order].astype(np.float64)
        return state

    def terms(self, state: FloatArray) -> tuple[float, float]:
        """Return log prior and log likelihood, from the compiled gradient at inverse temperature 0."""
        self.controls.set_beta(0.0)
        self._extra_gradients += 1
        log_prior, _, log_ratio = self._gradient.function(self.start(state))
        return float(log_prior), float(log_ratio)

    def move(self, position: FloatArray) -> tuple[FloatArray, float, bool]:
        """Run one trajectory; the log likelihood comes from its own evaluations."""
        result, statistics = self._step.astep(RaveledVars(position, self._map))
        moved: FloatArray = result.data if isinstance(result, RaveledVars) else result
        return moved, self._gradient.finish(moved), bool(statistics[0]["diverging"])


class CompoundEngine(Engine):
    """Any sequence of step methods: a position is a point, the log likelihood one more evaluation a transition."""

    def __init__(
        self, layout: StateLayout, controls: DensityControls, steps: Sequence[FrozenStep], terms: CompiledFunction
    ) -> None:
        super().__init__(layout, controls, steps)
        self._terms = terms
        self._running = self.steps

    def start(self, state: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the point of a state."""
        return self.layout.unflatten(state)

    def state_of(self, position: Mapping[str, Any]) -> FloatArray:
        """Return the state of a point."""
        return self.layout.flatten(position)

    def terms(self, state: FloatArray) -> tuple[float, float]:
        """Return log prior and log likelihood."""
        self._extra_evaluations += 1
        log_prior, log_ratio = self._terms(state)
        return float(log_prior), float(log_ratio)

    def apply(self, beta: float, settings: Settings, *, reverse: bool = False) -> None:
        """Set the kernel; in reverse the step methods run in the opposite order, each reversed."""
        super().apply(beta, settings, reverse=reverse)
        self._running = self.steps[::-1] if reverse else self.steps

    def start_adapting(
        self, beta: float, state: FloatArray, n_steps: int, previous: Settings | None, seed: SeedSequence
    ) -> None:
        """Begin the step methods' own adaptation, in forward order."""
        self._running = self.steps
        super().start_adapting(beta, state, n_steps, previous, seed)

    def move(self, position: dict[str, Any]) -> tuple[dict[str, Any], float, bool]:
        """Run every step method once."""
        diverged = False
        for step in self._running:
            position, step_diverged = step.move(position)
            diverged |= step_diverged
        return position, self.terms(self.state_of(position))[1], diverged
