"""PyMC models whose one observed variable is observations that are independent given the parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray, ModelInfo
from bread.backends.observations import dependent
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.pymc.kernels.engines import compile_engine
from bread.backends.pymc.posterior import PyMCPosterior
from bread.backends.pymc.proof import prove
from bread.backends.pymc.simulation.simulation import Simulator
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import Path, PriorPath

_LOOKS = 3  # joint draws at which terms of kept observations must not see the others
_SEED = 20151


@dataclass(frozen=True)
class FirstPosterior(PyMCPosterior):
    """A PyMC model with the first ``n`` observations of a data set.

    Parameters
    ----------
    n : int
        The other parameters are those of `PyMCPosterior`; ``data`` are whole.
    without : int
        Number of one of them that is left out; -1 for none.
    """

    n: int = 0
    without: int = -1

    def load(self, path: Path) -> Engine:
        """Set path, data, and which observations count."""
        engine = super().load(path)
        (values,) = self.data.values()
        index = np.arange(len(values))
        engine.controls.keep((index < self.n) & (index != self.without))
        return engine

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior + beta * log likelihood of the first observations and its gradient."""
        self.load(PriorPath())
        return super().density_gradient(beta, states)


class SeparableModel:
    """What `PyMCModel` has of `bread.backends.observations.Separable`."""

    info: ModelInfo
    simulator: Simulator
    periodic: NDArray[np.bool_]
    user_model: Any
    kernel: Any

    def n_observations(self) -> int:
        """Return the length of the observed variable's first dimension.

        Raises
        ------
        UnsupportedModelError
            There are several observed variables or a Potential; the log likelihood has no term for each element, or a
            term that other elements enter; the model has angles, or cannot start at its prior.
        """
        self._require_elements()
        with warnings.catch_warnings(action="ignore"):
            self._require_independence(self.first_engine)
        (values,) = self.info.data.observed.values()
        return len(values)

    def condition_first(self, data: Data, n: int) -> FirstPosterior:
        """Return the posterior given the first ``n`` observations; see `bread.backends.observations.Separable`."""
        arrays = self.simulator.check_data(data)
        (values,) = arrays.values()
        if not 1 <= n <= len(values):
            raise InvalidArgumentError(f"n must be from 1 to {len(values)}; received {n!r}.")
        return FirstPosterior(self.first_engine, self.simulator, arrays, n)

    def condition_without(self, data: Data, index: int) -> FirstPosterior:
        """Return the posterior without one observation; see `bread.backends.observations.Separable`."""
        arrays = self.simulator.check_data(data)
        (values,) = arrays.values()
        if not 0 <= index < len(values):
            raise InvalidArgumentError(f"index must be from 0 to {len(values) - 1}; received {index!r}.")
        return FirstPosterior(self.first_engine, self.simulator, arrays, len(values), index)

    @cached_property
    def first_engine(self) -> Engine:
        """Density and kernel with observations that can be left out, compiled when first asked for."""
        if self.user_model is None:
            raise InvalidArgumentError("A pickled copy of a model cannot leave observations out; open the model there.")
        with warnings.catch_warnings(action="ignore"):
            engine = compile_engine(self.user_model, self.simulator.layout, self.kernel, by_element=True)
            prove(self.user_model, self.simulator, engine)
            return engine

    def _require_elements(self) -> None:
        model, name = self.user_model, self.info.identity.name
        if model is None:
            raise InvalidArgumentError("A pickled copy of a model cannot leave observations out; open the model there.")
        if len(model.observed_RVs) != 1 or model.potentials:
            terms = [variable.name for variable in (*model.observed_RVs, *model.potentials)]
            raise dependent(
                name, f"its likelihood has the terms {', '.join(terms)}, and one observed variable is taken"
            )
        if PriorPath.name not in self.info.paths:
            raise UnsupportedModelError(self.info.path_refusals[PriorPath.name])
        if np.any(self.periodic):
            raise UnsupportedModelError("Data annealing does not take models with angles. Use bread.check.")
        (variable,) = model.observed_RVs
        (values,) = self.info.data.observed.values()
        with warnings.catch_warnings(action="ignore"):
            (term,) = model.logp(vars=[variable], sum=False)
        if np.ndim(values) == 0 or term.type.ndim != np.ndim(values):
            raise dependent(
                name, f"{variable.name!r} has {np.ndim(values)} dimensions and its log density {term.type.ndim}"
            )

    def _require_independence(self, engine: Engine) -> None:
        """Compare the terms of some observations where the others are the real ones and where they were simulated.

        They are real ones, and simulated ones: a state that was drawn may make the real ones impossible.
        """
        ((name, real),) = self.info.data.observed.items()
        drawn = self.simulator.simulate(_LOOKS, fixed=None, seed=SeedSequence(_SEED))
        n = len(real)
        for state, other in zip(drawn.states, drawn.data[name], strict=True):
            for cut in sorted({1, n // 2, n - 1} & set(range(1, n))):
                for is_kept in (np.arange(n) < cut, np.arange(n) >= cut):
                    for whole, filler in ((real, other), (other, real)):
                        mixed = np.where(is_kept.reshape(-1, *[1] * (real.ndim - 1)), whole, filler)
                        before = self._kept_terms(engine, state, {name: whole}, is_kept)
                        after = self._kept_terms(engine, state, {name: mixed}, is_kept)
                        if not np.array_equal(before, after, equal_nan=True):
                            raise dependent(
                                self.info.identity.name,
                                f"the log density of some elements of {name!r} changes with the value of others",
                            )

    def _kept_terms(
        self, engine: Engine, state: FloatArray, data: Mapping[str, NDArray[Any]], is_kept: NDArray[np.bool_]
    ) -> FloatArray:
        PyMCPosterior(engine, self.simulator, data).load(PriorPath())
        engine.controls.keep(is_kept)
        with np.errstate(all="ignore"):
            try:
                return np.array(engine.terms(state)[1])
            except Exception:  # a density may raise anything, and raises for both or the comparison says so
                return np.array(np.nan)
