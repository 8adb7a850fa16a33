"""Log density and gradient along a path, as PyMC's gradient steps call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.sharedvalue import SharedVariable

from bread.backends.base import FloatArray
from bread.backends.pymc.internals import CallableGradient

CompiledFunction = Callable[..., Any]
BaseFunction = Callable[[FloatArray], tuple[float, FloatArray]]
# (position, slope, weights) -> log density of the reference, weights[0] * its gradient + weights[1] * slope
MixedFunction = Callable[[FloatArray, FloatArray, FloatArray], tuple[float, FloatArray]]


class TemperedGradient(CallableGradient):
    """Tempered log density and gradient of some variables: what PyMC's gradient steps call.

    The log ratio rides along: every evaluation is kept in `trail` under the identity of its argument until `finish` is
    called, so the log ratio of the point a trajectory ends at costs nothing. A density that raises inside a trajectory
    is a failed proposal: log density -inf.

    On a reference path (`follow_reference`) the compiled function gives the model at beta = 1 and the tempered
    density is ``(1 - beta) log q + beta log p``; at beta = 0 the model is not evaluated, at beta = 1 the reference is
    not.
    """

    def __init__(
        self,
        function: CompiledFunction,
        extra: dict[str, SharedVariable],
        names: tuple[str, ...],
        size: int,
    ) -> None:
        super().__init__(extra)
        self.function = function
        self.names = names
        self.size = size
        self.dtype = str(pytensor.config.floatX)
        self.trail: dict[int, tuple[FloatArray, Any]] = {}
        self.n_gradients = 0
        self.n_evaluations = 0
        self._zeros = np.zeros(size, dtype=self.dtype)
        self._base: BaseFunction | None = None
        self._mixed: MixedFunction | None = None
        self._beta = 1.0
        self._weights = np.array([0.0, 1.0])

    def follow_reference(self, base: BaseFunction | None) -> None:
        """Follow a reference path from the log density and gradient ``base(position)``, or no such path (None)."""
        self._base = base
        self._mixed = getattr(base, "mixed", None)
        self._beta = 1.0

    def set_beta(self, beta: float) -> None:
        """Set the inverse temperature on a reference path."""
        self._beta = float(beta)
        self._weights = np.array([1.0 - self._beta, self._beta])

    def __call__(self, position: FloatArray) -> tuple[float, FloatArray]:
        """Return the tempered log density (nats) and its gradient, shape (n,)."""
        if self._base is not None:
            return self._combine(position, self._base)
        try:
            value, gradient, log_ratio = self.function(position)
        except Exception:
            value, gradient, log_ratio = np.array(-np.inf), self._zeros.copy(), np.nan
        # The position is kept too: an identity is unique only while the object lives.
        self.trail[id(position)] = (position, log_ratio)
        return value.item(), gradient

    def _combine(self, position: FloatArray, base: BaseFunction) -> tuple[float, FloatArray]:
        beta, log_ratio = self._beta, None
        try:
            if beta == 0.0:
                value, gradient = base(position)
            elif beta == 1.0:
                value, gradient, _ = self.function(position)
                log_ratio = value = value.item()  # the reference is subtracted where the trajectory ends
            else:
                joint, slope, _ = self.function(position)
                joint = joint.item()
                if self._mixed is not None:
                    value, gradient = self._mixed(position, slope, self._weights)
                else:
                    value, gradient = base(position)
                    gradient = (1.0 - beta) * gradient + beta * slope
                log_ratio = joint - value
                value = (1.0 - beta) * value + beta * joint
        except Exception:
            value, gradient, log_ratio = -np.inf, self._zeros.copy(), np.nan
        self.trail[id(position)] = (position, log_ratio)
        return value, gradient

    def finish(self, position: FloatArray) -> float:
        """Return the log ratio at ``position``, a point of the last trajectory, and forget the trajectory."""
        kept = self.trail[id(position)][1]
        self.forget()
        if self._base is None or 0.0 < self._beta < 1.0:
            return float(kept)
        try:
            if kept is None:
                kept = self.function(position)[0]
                self.n_evaluations += 1
            return float(kept - self._base(position)[0])
        except Exception:
            return np.nan

    def forget(self) -> None:
        """Count the evaluations of the last trajectory and drop them."""
        if self._base is None or self._beta != 0.0:
            self.n_gradients += len(self.trail)
        self.trail.clear()
