"""The engine of compound kernels: several step methods in turn, or variables without gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Settings
from bread.backends.pymc.density.density import DensityControls
from bread.backends.pymc.density.gradients import CompiledFunction, TemperedGradient
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.pymc.kernels.kernels import kernel_name
from bread.backends.pymc.kernels.stepping import FrozenStep, GradientStep
from bread.backends.pymc.model.layout import StateLayout
from bread.errors import UnsupportedKernelError


class CompoundEngine(Engine):
    """Any sequence of step methods: a position is a point, the log likelihood one more evaluation a transition.

    Its densities are compiled functions of some variables each: it follows paths whose base is the prior.
    """

    def __init__(
        self,
        layout: StateLayout,
        controls: DensityControls,
        steps: Sequence[FrozenStep],
        terms: CompiledFunction,
        refusals: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            layout, controls, steps, {"reference": self._refuse_reference(layout, steps), **(refusals or {})}
        )
        self.compiled_terms = terms
        self._running = self.steps

    @staticmethod
    def _refuse_reference(layout: StateLayout, steps: Sequence[FrozenStep]) -> str:
        discrete = np.array(layout.coordinates)[layout.discrete]
        way_out = (
            f"{discrete[0]} is discrete, and a reference is a density. Use path='prior'."
            if len(discrete)
            else "Use kernel='nuts' or 'hmc', or path='prior'."
        )
        return (
            f"The kernel {kernel_name(steps)} does not move all coordinates by their gradient, which a reference path "
            f"needs. {way_out}"
        )

    def position_of(self, state: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the point of a state."""
        return self.layout.unflatten(state)

    def state_of(self, position: Mapping[str, Any]) -> FloatArray:
        """Return the state of a point."""
        return self.layout.flatten(position)

    def terms(self, state: FloatArray) -> tuple[float, float]:
        """Return log prior and log likelihood."""
        return self._both(state)

    def _both(self, state: FloatArray) -> tuple[float, float]:
        self._extra_evaluations += 1
        log_prior, log_ratio = self.compiled_terms(state)
        return float(log_prior), float(log_ratio)

    def end_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Refuse: gradients of the whole density belong to reference paths."""
        raise UnsupportedKernelError(self.path_refusals["reference"])

    def density_gradient(self, beta: float, state: FloatArray) -> tuple[float, FloatArray]:
        """Return tempered density and gradient, if one step method moves all continuous variables by it."""
        names = [name for name, dtype in zip(self.layout.names, self.layout.dtypes, strict=True) if dtype[0] == "f"]
        for step in self.steps:
            if isinstance(step, GradientStep) and set(step.gradient.names) == set(names):
                return self._step_gradient(step.gradient, beta, self.layout.unflatten(state))
        raise UnsupportedKernelError(
            f"The kernel {self.name} does not move all continuous variables by one gradient, and no other is compiled. "
            "Use kernel=None."
        )

    def _step_gradient(
        self, gradient: TemperedGradient, beta: float, point: Mapping[str, NDArray[Any]]
    ) -> tuple[float, FloatArray]:
        self.controls.set_beta(beta)
        for name, shared in gradient.others.items():
            shared.set_value(point[name])
        position = np.concatenate([point[name].ravel() for name in gradient.names]).astype(gradient.dtype)
        value, slope, _ = gradient.function(position)
        self._extra_gradients += 1
        parts = np.split(np.asarray(slope, dtype=np.float64), np.cumsum([point[name].size for name in gradient.names]))
        by_name = dict(zip(gradient.names, parts, strict=False))
        slopes = {name: by_name.get(name, np.full(values.size, np.nan)) for name, values in point.items()}
        return float(value), np.concatenate([slopes[name] for name in self.layout.names])

    def set_kernel(self, beta: float, prepared: list[Any], *, reverse: bool) -> None:
        """Set the kernel; in reverse the step methods run in the opposite order, each reversed."""
        super().set_kernel(beta, prepared, reverse=reverse)
        self._running = self.steps[::-1] if reverse else self.steps

    def start_adapting(
        self, beta: float, state: FloatArray, n_steps: int, previous: Settings | None, seed: SeedSequence
    ) -> None:
        """Begin the step methods' own adaptation, in forward order."""
        self._running = self.steps
        super().start_adapting(beta, state, n_steps, previous, seed)

    def move(self, position: dict[str, Any]) -> tuple[dict[str, Any], float, bool]:
        """Run every step method once."""
        position, diverged = self._run_steps(position)
        return position, self.terms(self.state_of(position))[1], diverged

    def step(self, position: dict[str, Any]) -> dict[str, Any]:
        """Run every step method once."""
        return self._run_steps(position)[0]

    def _run_steps(self, position: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        diverged = False
        for step in self._running:
            position, step_diverged = step.move(position)
            diverged |= step_diverged
        return position, diverged
