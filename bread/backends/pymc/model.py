"""A PyMC model, read, checked and compiled: the contract's `Model`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Data, Fit, FloatArray, ModelInfo, OpenOptions, Simulations
from bread.backends.pymc import fitting, reading
from bread.backends.pymc.periodic import PeriodicPosterior, read_periodic
from bread.backends.pymc.posterior import Engine, PyMCPosterior, compile_engine
from bread.backends.pymc.refusals import refuse_unsupported
from bread.backends.pymc.simulation import Simulator, build_simulator
from bread.errors import InvalidArgumentError


@dataclass(frozen=True)
class PyMCModel:
    """Implements `bread.backends.base.Model` for PyMC.

    A pickled copy simulates, conditions and constrains; it cannot `fit`, because the user's model stays behind.

    Attributes
    ----------
    info : ModelInfo
    simulator : Simulator
    engine : Engine
        Tempered density and step methods.
    periodic : ndarray of bool, shape (dim,)
        Coordinates that are angles.
    user_model : pymc.Model or None
        The user's object; only read. None in a pickled copy.
    """

    info: ModelInfo
    simulator: Simulator
    engine: Engine
    periodic: NDArray[np.bool_]
    user_model: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "user_model": None}

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly; see `bread.backends.base.Model.simulate`."""
        return self.simulator.simulate(n, fixed=fixed, seed=seed)

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data with ``pm.sample`` and its defaults.

        Raises
        ------
        InvalidArgumentError
            If the data of the user's model were changed after it was opened.
        UnsupportedModelError
            If ``pm.sample`` fails.
        """
        if self.user_model is None:
            raise InvalidArgumentError("A pickled copy of a model cannot be fitted; fit in the process that opened it.")
        self._require_same_data()
        return fitting.fit(self.user_model, self.simulator.names, seed=seed, cores=cores, progressbar=progressbar)

    def _require_same_data(self) -> None:
        covariates = {name: value for name, (_, value) in self.info.constant_data.items()}
        now = {name: value for name, (_, value) in reading.read_constant_data(self.user_model).items()}
        for name, old in {**covariates, **self.info.observed_data}.items():
            new = {**now, **reading.read_observed(self.user_model)}[name]
            if not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
                raise InvalidArgumentError(
                    f"The data {name!r} of the model were changed after it was opened. Call bread.check again, on the "
                    "model as it now is."
                )

    def read_posterior(self, posterior: Any) -> Fit:
        """Read the user's own draws; see `bread.backends.pymc.fitting.read_posterior`."""
        return fitting.read_posterior(posterior, self.simulator.shapes, self.info.parameters, self.info.coords)

    def point_estimate(self, fit: Fit, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the posterior mean in unconstrained coordinates, mapped back; the mode of a discrete coordinate.

        Raises
        ------
        InvalidArgumentError
            For an unknown name, or draws outside the support.
        """
        reading.check_fixed_names(self.simulator.parents, names, "hyperparameters")
        flat = {name: draws.reshape(-1, *draws.shape[2:]) for name, draws in fit.draws.items()}
        states = self.simulator.unconstrain(flat)
        outside = ~np.all(np.isfinite(states), axis=0)
        if np.any(outside):
            raise InvalidArgumentError(
                f"{fit.source} has draws on or outside the border of the support of "
                f"{', '.join(np.array(self.info.coordinates)[outside])}. Pass draws of this model."
            )
        values = self.constrain(fitting.centre(states, self.info.discrete)[None])
        return {name: np.array(values[name][0]) for name in names}

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to named parameters (n, ...)."""
        return self.simulator.constrain(np.asarray(states, dtype=np.float64))

    def condition(self, data: Data) -> PyMCPosterior:
        """Return the posterior given ``data``, each observed variable in the shape of the real data.

        Raises
        ------
        InvalidArgumentError
            For a missing or unknown variable, or another shape.
        """
        expected = self.simulator.observed
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
        if np.any(self.periodic):
            return PeriodicPosterior(self.engine, self.simulator, arrays, self.periodic)
        return PyMCPosterior(engine=self.engine, simulator=self.simulator, data=arrays)


def open_model(model: Any, options: OpenOptions) -> PyMCModel:
    """Read, check and compile a PyMC model. The model, its random generators and its data are never changed.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be simulated or annealed exactly.
    UnsupportedKernelError
        If the kernel cannot be frozen or reversed, or does not fit the model.
    InvalidArgumentError
        For an option that has no such value.
    """
    if options.engine not in (None, "pymc"):
        raise InvalidArgumentError(f"engine={options.engine!r} is unknown for a PyMC model. Valid: 'pymc'.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyMC has to say of the model it said when the model was built
        return _open(model, options)


def _open(model: Any, options: OpenOptions) -> PyMCModel:
    point = refuse_unsupported(model, options.kernel)
    layout = reading.read_layout(model, point)
    names = options.hyperparameters
    hyperparameters = (
        reading.default_hyperparameters(model)
        if names is None
        else reading.check_fixed_names(reading.read_parents(model), names, "hyperparameters")
    )
    deterministics, notes = reading.usable_deterministics(model)
    simulator = build_simulator(model, layout, reading.read_observed(model), deterministics)
    notes += simulator.pilot()
    info = reading.read_info(
        model,
        layout,
        deterministics,
        hyperparameters,
        kernel="",
        versions={"pymc": pm.__version__, "pytensor": pytensor.__version__},
        notes=tuple(notes),
    )
    engine = compile_engine(model, layout, options.kernel)
    return PyMCModel(replace(info, kernel=engine.name), simulator, engine, read_periodic(model, layout), model)
