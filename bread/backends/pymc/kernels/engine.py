"""Compiled density and step methods of one PyMC model: what moves a chain.

An engine is made once; path, inverse temperature, data, settings, direction and random numbers are set before a chain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from pymc.blocking import RaveledVars

from bread.backends.base import FloatArray, Settings
from bread.backends.pymc import internals
from bread.backends.pymc.density.c_references.reference_op import compiled_base
from bread.backends.pymc.density.density import DensityControls
from bread.backends.pymc.density.gradients import BaseFunction
from bread.backends.pymc.density.many_states import ManyStates
from bread.backends.pymc.kernels.kernels import kernel_name
from bread.backends.pymc.kernels.stepping import FrozenStep, GradientStep
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.support.independence import name_with
from bread.backends.support.stretching import stretched_metric
from bread.backends.values import CORRELATION
from bread.errors import InvalidArgumentError
from bread.paths.kinds import Path, ReferencePath
from bread.paths.mixture import Reference


class Engine(ABC):
    """Compiled functions and step methods of one model; mutable, shared by all data sets, one chain at a time.

    A position is the state of a chain as the step methods want it; `position_of` and `state_of` convert.

    Attributes
    ----------
    name : str
        Name of the kernel, such as "NUTS".
    path_refusals : dict of str to str
        For each kind of path that model or kernel cannot follow, why.
    loaded : tuple or None
        Path and data (the objects) that are set, where nothing has changed them since `set_path`; not pickled.
    many_states : ManyStates or None
        Log prior and log likelihood of many states in one call.
    proposes_base : bool
        Whether draws from the path's base are proposed before each transition (`bread.backends.support.independence`).
    may_propose : bool
        Whether they may be where a kernel asks for it: the user named none.
    takes_correlation : bool
        Whether settings may hold correlations of the metric: the user named no kernel, and the metric is adapted.
    """

    loaded: tuple[Path, Any] | None = None
    many_states: ManyStates | None = None
    proposes_base = False
    may_propose = False
    takes_correlation = False
    _last_base: tuple[Any, BaseFunction] | None = None  # of the reference that a path had last; not pickled

    def __init__(
        self,
        layout: StateLayout,
        controls: DensityControls,
        steps: Sequence[FrozenStep],
        refusals: Mapping[str, str] | None = None,
    ) -> None:
        self.path_refusals = dict(refusals or {})
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

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("loaded", "_last_base")}

    def propose_base(self) -> None:
        """Let draws from the path's base be proposed before each transition."""
        self.proposes_base = True
        self.name = name_with(self.name)

    def set_path(self, path: Path) -> None:
        """Set the path; the inverse temperature is undefined until a kernel is set.

        Raises
        ------
        InvalidArgumentError
            Model or kernel cannot follow it.
        """
        self.loaded = None
        if path.name in self.path_refusals:
            raise InvalidArgumentError(f"{self.path_refusals[path.name]} The path is {path!r}.")

    @abstractmethod
    def position_of(self, state: FloatArray) -> Any:
        """Return the position of a state of shape (dim,)."""

    @abstractmethod
    def state_of(self, position: Any) -> FloatArray:
        """Return the state of shape (dim,) of a position."""

    @abstractmethod
    def terms(self, state: FloatArray) -> tuple[float, float]:
        """Return log f_0 and log ratio (nats) of a state. Leaves the inverse temperature undefined."""

    def terms_at_once(self, path: Path, states: FloatArray) -> FloatArray | None:
        """Return what `terms` does at many states, shape (n, 2), where one call is worth it; rounding differs."""
        if self.many_states is None:
            return None
        both = self.many_states(states, self._both)
        if both is None:
            return None
        self._extra_evaluations += len(states)
        if not isinstance(path, ReferencePath):
            return both
        log_base = path.reference.log_density(states)
        return np.stack([log_base, both.sum(axis=1) - log_base], axis=1)

    @abstractmethod
    def _both(self, state: FloatArray) -> tuple[float, float]:
        """Return log prior and log likelihood of a state, whatever the path; what follows the path stays as it is."""

    @abstractmethod
    def end_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient on a reference path."""

    @abstractmethod
    def density_gradient(self, beta: float, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log prior + beta * log likelihood and its gradient, NaN at discrete coordinates.

        Leaves path and inverse temperature undefined.

        Raises
        ------
        UnsupportedKernelError
            No step method of the kernel has the gradient of all continuous variables.
        """

    @abstractmethod
    def move(self, position: Any) -> tuple[Any, float, bool]:
        """Run the kernel once; return the new position, its log ratio, whether a transition diverged."""

    @abstractmethod
    def step(self, position: Any) -> Any:
        """Run the kernel once; return the new position alone."""

    def set_beta(self, beta: float) -> None:
        """Set the inverse temperature of what the next step sees."""
        self.controls.set_beta(beta)

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

    def prepare(self, settings: Settings) -> list[Any]:
        """Return settings as `set_kernel` takes them: computed once for all chains of a batch."""
        return [step.prepare(self._settings_of(index, settings)) for index, step in enumerate(self.steps)]

    def set_kernel(self, beta: float, prepared: list[Any], *, reverse: bool) -> None:
        """Set the inverse temperature, the frozen settings that `prepare` returned, and the direction."""
        self.set_beta(beta)
        for step, values in zip(self.steps, prepared, strict=True):
            step.apply(values, reverse=reverse)

    def apply(self, beta: float, settings: Settings, *, reverse: bool = False) -> None:
        """Set the inverse temperature, the frozen settings and the direction of the kernel."""
        self.set_kernel(beta, self.prepare(settings), reverse=reverse)

    def start_adapting(
        self, beta: float, state: FloatArray, n_steps: int, previous: Settings | None, seed: SeedSequence
    ) -> None:
        """Begin the step methods' own adaptation at ``beta``."""
        point = self.layout.unflatten(state)
        for index, step in enumerate(self.steps):
            step.freeze()
            step.start_adapting(point, n_steps, None if previous is None else self._settings_of(index, previous))
        self._seed(seed)
        self.set_beta(beta)

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

    def stretch(self, settings: Settings, factor: FloatArray) -> Settings:
        """Return settings for a law whose standard deviations are ``factor`` times as large; the same here."""
        return settings


class GradientEngine(Engine):
    """One NUTS or HMC step that moves all coordinates: a position is its flat vector, nothing is copied."""

    def __init__(
        self,
        layout: StateLayout,
        controls: DensityControls,
        steps: Sequence[FrozenStep],
        refusals: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(layout, controls, steps, refusals)
        (step,) = steps
        assert isinstance(step, GradientStep)
        self._step, self.gradient, self.adapts_metric = step.step, step.gradient, step.adapts_metric
        self._depths = internals.read_tree_depths(self._step)
        index = dict(zip(layout.names, range(len(layout.names)), strict=True))
        starts = np.concatenate([[0], np.cumsum(layout.sizes)])
        chosen = [index[name] for name in step.gradient.names]
        self._order = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in chosen])
        self._inverse_order = np.argsort(self._order)
        self._base: BaseFunction | None = None
        self._correlation: tuple[FloatArray, FloatArray] | None = None  # in the order of a state, and of a position
        self._map = tuple((layout.names[i], layout.shapes[i], layout.sizes[i], layout.dtypes[i]) for i in chosen)

    @property
    def order_in_states(self) -> NDArray[np.int64]:
        """Where each coordinate of a state is in a position, and in the settings."""
        return self._inverse_order

    def _settings_of(self, index: int, settings: Settings) -> Settings:
        found, given = super()._settings_of(index, settings), settings.get(CORRELATION)
        if given is not None:
            if self._correlation is None or self._correlation[0] is not given:
                self._correlation = given, given[np.ix_(self._order, self._order)]
            found[CORRELATION] = self._correlation[1]
        return found

    def stretch(self, settings: Settings, factor: FloatArray) -> Settings:
        """Return settings with a metric, in the order of a position, stretched by factors in the order of a state."""
        return stretched_metric(settings, factor[self._order])

    def position_of(self, state: FloatArray) -> FloatArray:
        """Return the position of a state."""
        position: FloatArray = state[self._order].astype(self.gradient.dtype)
        return position

    def state_of(self, position: FloatArray) -> FloatArray:
        """Return the state of a position."""
        state: FloatArray = position[self._inverse_order].astype(np.float64)
        return state

    def set_path(self, path: Path) -> None:
        """Set the path; see `Engine.set_path`."""
        super().set_path(path)
        self._base = None
        if isinstance(path, ReferencePath):
            self.controls.set_beta(1.0)  # the compiled density stays there: the reference is combined with it
            if self._last_base is None or self._last_base[0] is not path.reference:
                self._last_base = path.reference, self._base_function(path.reference)
            self._base = self._last_base[1]
        if self._depths == internals.USUAL_TREE_DEPTHS:
            internals.limit_trees(self._step, path.tree_depth)
        self.gradient.follow_reference(self._base)

    def _base_function(self, reference: Reference) -> BaseFunction:
        """Return log density and gradient of the reference as a function of a position."""
        evaluate = (
            compiled_base(reference)
            or getattr(reference, "value_and_gradient", None)
            or (lambda state: (float(reference.log_density(state)), reference.gradient(state)))
        )
        order, inverse = self._order, self._inverse_order
        dtype = np.dtype(self.gradient.dtype)
        if dtype == np.float64 and np.array_equal(order, np.arange(len(order))):
            return evaluate

        def reordered(position: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = evaluate(position[inverse].astype(np.float64))
            return value, gradient[order].astype(dtype)

        return reordered

    def set_beta(self, beta: float) -> None:
        """Set the inverse temperature; on a reference path that of the combination, not of the compiled density."""
        if self._base is None:
            self.controls.set_beta(beta)
        else:
            self.gradient.set_beta(beta)

    def terms(self, state: FloatArray) -> tuple[float, float]:
        """Return log f_0 and log ratio, from the compiled gradient."""
        self._extra_gradients += 1
        position = self.position_of(state)
        if self._base is not None:
            joint, log_base = self.gradient.function(position)[0], self._base(position)[0]
            return float(log_base), float(joint - log_base)
        return self._of_prior(position)

    def _both(self, state: FloatArray) -> tuple[float, float]:
        self._extra_gradients += 1
        both = self._of_prior(self.position_of(state))
        if self._base is not None:
            self.controls.set_beta(1.0)  # see `set_path`
        return both

    def _of_prior(self, position: FloatArray) -> tuple[float, float]:
        self.controls.set_beta(0.0)
        log_prior, _, log_ratio = self.gradient.function(position)
        return float(log_prior), float(log_ratio)

    def end_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 and its gradient from the compiled function, which stays at beta = 1 on a reference path."""
        self._extra_gradients += 1
        value, gradient, _ = self.gradient.function(self.position_of(state))
        return float(value), gradient[self._inverse_order].astype(np.float64)

    def density_gradient(self, beta: float, state: FloatArray) -> tuple[float, FloatArray]:
        """Return tempered density and gradient from the compiled function."""
        self.controls.set_beta(beta)
        return self.end_gradient(state)

    def move(self, position: FloatArray) -> tuple[FloatArray, float, bool]:
        """Run one trajectory; the log ratio comes from its own evaluations."""
        moved, diverged = self._run_step(position)
        return moved, self.gradient.finish(moved), diverged

    def step(self, position: FloatArray) -> FloatArray:
        """Run one trajectory."""
        moved, _ = self._run_step(position)
        self.gradient.forget()
        return moved

    def _run_step(self, position: FloatArray) -> tuple[FloatArray, bool]:
        result, statistics = self._step.astep(RaveledVars(position, self._map))
        moved: FloatArray = result.data if isinstance(result, RaveledVars) else result
        return moved, bool(statistics[0]["diverging"])
