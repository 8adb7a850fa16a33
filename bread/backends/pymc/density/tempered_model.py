"""The user's model with its log density replaced by the tempered one, for step methods to be built on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm

from bread.backends.pymc.density.density import TemperedDensity
from bread.backends.pymc.density.gradients import TemperedGradient
from bread.backends.pymc.kernels.kernel_refusals import ALLOWED
from bread.errors import UnsupportedKernelError


class TemperedModel(pm.Model):
    """The user's model with its log density tempered: what step methods are built on.

    It has the variables of the user's model, so a kernel may name them; its ``logp()`` is that of
    `TemperedDensity.graph`. Nothing may be added to it. Create it with `view`.
    """

    _density: TemperedDensity
    _point: dict[str, Any]
    _compiled_logp: Any

    @classmethod
    def view(cls, model: pm.Model, density: TemperedDensity, point: Mapping[str, Any]) -> TemperedModel:
        """Return a view of ``model``; ``point`` is a valid point for shapes."""
        self = cls.__new__(cls)
        self.__dict__.update({key: value for key, value in vars(model).items() if key != "_cache"})
        self._density, self._point = density, dict(point)
        self._compiled_logp = None
        return self

    def logp(self, vars: Any = None, jacobian: bool = True, sum: bool = True) -> Any:
        """Return the graph of the tempered log density; only the whole of it exists."""
        if vars is not None or not jacobian or not sum:
            raise UnsupportedKernelError(
                "A step method asked for a part of the log density, which has no tempered form. " + ALLOWED
            )
        return self._density.graph

    def compile_logp(self, vars: Any = None, jacobian: bool = True, sum: bool = True, **compile_kwargs: Any) -> Any:
        """Return the compiled tempered log density of a point, compiled once."""
        if self._compiled_logp is None:
            self._compiled_logp = super().compile_logp(vars, jacobian, sum, **compile_kwargs)
        return self._compiled_logp

    def logp_dlogp_function(self, grad_vars: Any = None, **_: Any) -> TemperedGradient:
        """Return the compiled tempered log density with gradient and log likelihood."""
        variables = self.continuous_value_vars if grad_vars is None else list(grad_vars)
        return self._density.compile_gradient(variables, self._point)

    def initial_point(self, random_seed: Any = None) -> dict[str, Any]:
        """Return the known point: nothing is compiled for it."""
        return {name: np.array(value) for name, value in self._point.items()}
