"""Step methods that evaluate the density alone, made into frozen, reversible kernels: Metropolis, slice, discrete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from pymc.blocking import DictToArrayBijection, RaveledVars

from bread.backends.base import FloatArray, Settings
from bread.backends.pymc.density.density import CountedDensity
from bread.backends.pymc.kernels.stepping import LONGEST_TUNE_INTERVAL, FrozenStep, Point
from bread.backends.support.arguments import within_limits


class _CountedStep(FrozenStep):
    """A step that evaluates the density alone; ``attribute`` of the step holds its compiled function."""

    attribute: ClassVar[str] = "fs"
    densities_per_call: ClassVar[int] = 1

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        function = getattr(step, self.attribute)
        is_list = isinstance(function, list)
        self.density = CountedDensity(function[0] if is_list else function, self.densities_per_call)
        setattr(step, self.attribute, [self.density] if is_list else self.density)

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the density so far."""
        return self.density.n_evaluations


class MetropolisStep(_CountedStep):
    """Random-walk Metropolis with a symmetric proposal: one scaling per coordinate that it updates alone."""

    setting_names: tuple[str, ...] = ("scaling",)
    attribute = "delta_logp"
    densities_per_call = 2

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        self._n = len(step.enum_dims)
        self._initial_scaling = np.array(np.broadcast_to(step.scaling, (self._n,)), dtype=np.float64)
        self._tune_interval = step.tune_interval

    def freeze(self) -> None:
        """End adaptation; reset the order of the coordinates, which every step shuffles in place."""
        super().freeze()
        self.step.enum_dims = np.arange(self._n)
        self.step.accepted_sum = np.zeros(self._n, dtype=int)
        self.step.tune_interval = self.step.steps_until_tune = self._tune_interval

    def apply(self, prepared: Any, *, reverse: bool) -> None:
        """Set the scaling; a sweep in random order is its own reversal."""
        self.step.scaling = np.array(prepared["scaling"], dtype=np.float64)

    def start_adapting(self, point: Mapping[str, Any], n_steps: int, previous: Settings | None) -> None:
        """Begin PyMC's tuning towards an acceptance rate of 20 to 50 %."""
        self.freeze()
        super().start_adapting(point, n_steps, previous)
        self.step.scaling = self._initial_scaling.copy() if previous is None else np.array(previous["scaling"])
        interval = min(self._tune_interval, LONGEST_TUNE_INTERVAL, max(n_steps // 8, 10))
        self.step.tune_interval = self.step.steps_until_tune = interval

    def settings(self) -> Settings:
        """Return the scaling, shape (n,)."""
        return {"scaling": within_limits(np.broadcast_to(self.step.scaling, (self._n,)))}


class SliceStep(_CountedStep):
    """Slice sampling, coordinate after coordinate in order; in reverse the coordinates are swept backwards."""

    setting_names: tuple[str, ...] = ("slice_width",)
    attribute = "logp"

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        self._initial_width = np.array(step.w, dtype=np.float64)
        self._flipped = _FlippedArgument(self.density)

    def apply(self, prepared: Any, *, reverse: bool) -> None:
        """Set the widths and the direction of the sweep."""
        super().apply(prepared, reverse=reverse)
        self.step.w = np.array(prepared["slice_width"], dtype=np.float64)

    def start_adapting(self, point: Mapping[str, Any], n_steps: int, previous: Settings | None) -> None:
        """Begin PyMC's tuning: the mean width of the slices."""
        super().start_adapting(point, n_steps, previous)
        self.step.n_tunes = 0.0
        self.step.w = self._initial_width.copy() if previous is None else np.array(previous["slice_width"])

    def settings(self) -> Settings:
        """Return the widths, shape (n,)."""
        return {"slice_width": within_limits(np.atleast_1d(self.step.w))}

    def move(self, point: Point) -> tuple[Point, bool]:
        """Sweep once, upwards or downwards."""
        if not self.reverse:
            return super().move(point)
        step = self.step
        for name, shared in step.shared.items():
            shared.set_value(point[name], borrow=True)
        raveled = DictToArrayBijection.map({name: point[name] for name in step.var_names})
        widths = np.resize(step.w, raveled.data.size)
        step.w, step.logp = widths[::-1].copy(), self._flipped
        try:
            result, _ = step.astep(RaveledVars(raveled.data[::-1].copy(), raveled.point_map_info))
        finally:
            step.w, step.logp = widths, self.density
        moved = RaveledVars(result.data[::-1].copy(), raveled.point_map_info)
        return DictToArrayBijection.rmap(moved, start_point=point), False


class _FlippedArgument:
    """A density of the coordinates in opposite order."""

    def __init__(self, density: Callable[[FloatArray], float]) -> None:
        self.density = density

    def __call__(self, position: FloatArray) -> float:
        return self.density(position[::-1].copy())


class DiscreteStep(_CountedStep):
    """BinaryMetropolis, BinaryGibbsMetropolis, CategoricalGibbsMetropolis: nothing is adapted.

    A sweep in an order that the user fixed is turned round in reverse; a random order needs no reversal.
    """

    _orders: ClassVar[dict[str, str]] = {
        "BinaryGibbsMetropolis": "order",
        "CategoricalGibbsMetropolis": "dimcats",
    }

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        self._attribute = self._orders.get(self.name)
        self._order = [] if self._attribute is None else list(getattr(step, self._attribute))
        self._is_fixed = self._attribute is not None and not step.shuffle_dims

    def freeze(self) -> None:
        """Reset the order, which a random sweep shuffles in place."""
        super().freeze()
        self._set_order(self._order)

    def apply(self, prepared: Any, *, reverse: bool) -> None:
        """Set the direction of a sweep in fixed order."""
        super().apply(prepared, reverse=reverse)
        if self._is_fixed:
            self._set_order(self._order[::-1] if reverse else self._order)

    def _set_order(self, order: list[Any]) -> None:
        if self._attribute is not None:
            setattr(self.step, self._attribute, list(order))
