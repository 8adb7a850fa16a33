"""The tempered log density of a PyMC model: compiled once; inverse temperature, path and data settable.

``log f_beta = log prior + path.temper(beta, log likelihood)``, ``beta * log likelihood`` on the prior path (Grosse,
Ancha & Roy (2016), section 2.2), in unconstrained coordinates: the Jacobian belongs to the prior. On a reference path
the compiled density is that of beta = 1, and `gradients.TemperedGradient` combines it with the reference. All values
are in nats. The user's model is only read; every shared variable that its densities use (data, covariates) is replaced
by a private copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.pytensorf import rewrite_pregrad
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import graph_replace

from bread.backends.pymc.density.compiling import DelayedFunction, detach
from bread.backends.pymc.density.gradients import CompiledFunction, TemperedGradient
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.model.layout import StateLayout
from bread.errors import InvalidArgumentError
from bread.paths.kinds import BoundedPath, Path


def split_density(model: pm.Model, law: LocalLaw | None = None) -> tuple[Variable, Variable, dict[str, SharedVariable]]:
    """Split the log density of a model into prior and likelihood, with settable data.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    law : LocalLaw, optional
        Law of some free variables in place of their priors and Jacobians.

    Returns
    -------
    log_prior, log_likelihood : Variable, scalar
        Graphs of the model's own value variables, in nats; without ``law`` their sum is ``model.logp()``. Potentials,
        which are neither, are with the likelihood.
    data : dict of str to SharedVariable
        The data of each observed variable, private copies that the log likelihood reads.
    """
    terms = [_prior(model, law), model.logp(vars=[*model.observed_RVs, *model.potentials])]
    data: dict[str, SharedVariable] = {}
    inputs: dict[Variable, Variable] = {}
    private: dict[Variable, Variable] = {}
    for variable in model.observed_RVs:
        value = model.rvs_to_values[variable]
        array = np.array(value.data if isinstance(value, Constant) else value.eval(), dtype=value.type.dtype)
        shared = pytensor.shared(array, name=f"{variable.name}_data", shape=value.type.shape)
        inputs[value] = value.type()
        private[inputs[value]] = data[variable.name] = shared
    # Observed values first: where they are computed from other data, the copies of these are made afterwards.
    terms = detach(graph_replace(terms, inputs, strict=False)).outputs
    log_prior, log_likelihood = graph_replace(terms, private, strict=False)
    return log_prior, log_likelihood, data


def _prior(model: pm.Model, law: LocalLaw | None) -> Variable:
    if law is None:
        return model.logp(vars=list(model.free_RVs))
    localised = [model.rvs_to_values[variable] for variable in model.free_RVs if variable.name in law.names]
    others = [variable for variable in model.free_RVs if variable.name not in law.names]
    density = law.log_density(localised)
    return model.logp(vars=others) + density if others else density


class CountedDensity:
    """A compiled density of a step without gradients: counts evaluations, and NaN or an exception reject.

    PyMC's slice sampler would otherwise accept a point of density NaN.

    Parameters
    ----------
    function : callable
        Returns one scalar.
    n_densities : int
        Densities that one call evaluates (a Metropolis ratio has two).
    """

    def __init__(self, function: CompiledFunction, n_densities: int) -> None:
        self.function = function
        self.n_densities = n_densities
        self.n_evaluations = 0

    def __call__(self, *arguments: Any) -> float:
        """Return the value, -inf where it is NaN or cannot be computed."""
        self.n_evaluations += self.n_densities
        try:
            value = float(self.function(*arguments))
        except Exception:
            return -np.inf
        return -np.inf if value != value else value


class TemperedDensity:
    """Compiles functions of one tempered log density that share inverse temperature and data.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    layout : StateLayout
        Order of the coordinates of a state.
    law : LocalLaw, optional
        See `split_density`.

    Attributes
    ----------
    graph : Variable
        ``log prior + path.temper(beta, log likelihood)`` of the model's value variables. At beta = 0 it is the log
        prior even where the log likelihood is -inf (0 * -inf would be NaN).
    """

    def __init__(self, model: pm.Model, layout: StateLayout, law: LocalLaw | None = None) -> None:
        log_prior, log_ratio, self._data = split_density(model, law)
        # Stabilised before anything is differentiated, as PyMC does.
        self._log_prior, self._log_ratio = rewrite_pregrad([log_prior, log_ratio])
        self._beta = _shared_number(1.0, "inverse_temperature")
        self._offset = _shared_number(-np.inf, "offset")
        self._bend = _shared_number(1.0, "bend")
        self.graph = log_prior + self._bent(log_ratio)
        self._model = model
        self._layout = layout
        by_name = {variable.name: variable for variable in model.value_vars}
        self._values = [by_name[name] for name in layout.names]

    def _switched(self, term: Variable, tempered: Variable) -> Variable:
        """Return ``tempered``, and zero at beta = 0."""
        return pt.switch(pt.eq(self._beta, 0), pt.zeros_like(term), tempered)

    def _linear(self, term: Variable) -> Variable:
        return self._switched(term, self._beta * term)

    def _bent(self, log_ratio: Variable) -> Variable:
        """Return ``path.temper(beta, log_ratio)``: linear above the offset, bent below it."""
        beta, offset, bend = self._beta, self._offset, self._bend
        bent = beta * (offset - bend * pt.log1p((offset - log_ratio) / bend))
        return self._switched(log_ratio, pt.switch(pt.lt(log_ratio, offset), bent, beta * log_ratio))

    def _bent_gradient(self, log_ratio: Variable, gradient: Variable) -> Variable:
        """Return ``path.slope(beta, log_ratio)`` times the gradient of the log ratio."""
        beta, offset, bend = self._beta, self._offset, self._bend
        slope = pt.switch(pt.lt(log_ratio, offset), beta / (1 + (offset - log_ratio) / bend), beta)
        return self._switched(gradient, slope * gradient)

    @property
    def controls(self) -> DensityControls:
        """The settable inverse temperature, path and data, without the graphs."""
        return DensityControls(self._beta, self._offset, self._bend, dict(self._data))

    def _shape(self, variable: Variable) -> tuple[int, ...]:
        return self._layout.shapes[self._layout.names.index(variable.name)]

    def _delay(
        self, variables: Sequence[Variable], outputs: Sequence[Variable], extra: Mapping[Variable, SharedVariable]
    ) -> DelayedFunction:
        """Return ``outputs`` as a function of one vector that holds ``variables`` end to end, not yet compiled."""
        sizes = [int(np.prod(self._shape(variable), dtype=int)) for variable in variables]
        vector = pt.tensor("state", dtype=pytensor.config.floatX, shape=(sum(sizes),))
        replacements: dict[Variable, Variable] = dict(extra)
        offset = 0
        for variable, size in zip(variables, sizes, strict=True):
            part = vector[offset : offset + size].reshape(self._shape(variable))
            # Shapes the model leaves open are known here; the cast restores integers.
            replacements[variable] = variable.type.filter_variable(part.astype(variable.type.dtype))
            offset += size
        outputs = graph_replace(list(outputs), replacements, strict=False)
        return DelayedFunction(vector, list(outputs), self._model.check_bounds)

    def compile_gradient(self, variables: Sequence[Variable], point: Mapping[str, Any]) -> TemperedGradient:
        """Compile the tempered log density, its gradient and the log likelihood of some variables.

        Parameters
        ----------
        variables : sequence of value variables
            Continuous; the argument of the result holds them end to end in this order.
        point : dict
            Values of the other variables, which become settable shared variables.

        Notes
        -----
        Prior and likelihood are differentiated separately: 0 times an infinite gradient of the likelihood does not
        spoil the prior's at beta = 0. It costs no more than one gradient of their sum. The prior path has a function
        without the bend of the bounded path, which costs small models some 0.4 microseconds a gradient; the bounded
        path's is compiled where it is first followed.
        """
        extra = {
            value: pytensor.shared(np.asarray(point[value.name]), name=f"{value.name}_shared", shape=value.type.shape)
            for value in self._values
            if value not in variables
        }
        prior_gradient = self._gradient(self._log_prior, variables)
        ratio_gradient = self._gradient(self._log_ratio, variables)
        log_prior, log_ratio = self._log_prior, self._log_ratio
        linear = [log_prior + self._linear(log_ratio), prior_gradient + self._linear(ratio_gradient), log_ratio]
        bent = [
            log_prior + self._bent(log_ratio),
            prior_gradient + self._bent_gradient(log_ratio, ratio_gradient),
            log_ratio,
        ]
        function, bounded = self._delay(variables, linear, extra).compile(), self._delay(variables, bent, extra)
        names = tuple(variable.name for variable in variables)
        size = sum(int(np.prod(self._shape(variable), dtype=int)) for variable in variables)
        settable = {value.name: shared for value, shared in extra.items()}
        return TemperedGradient(function, settable, names, size, bounded)

    def _gradient(self, term: Variable, variables: Sequence[Variable]) -> Variable:
        parts = pytensor.grad(term, list(variables), disconnected_inputs="ignore")
        return pt.concatenate([part.ravel() for part in parts]).astype(pytensor.config.floatX)

    def compile_terms(self) -> CompiledFunction:
        """Compile ``state -> (log prior, log likelihood)``, the state in the order of the layout."""
        return self._delay(self._values, [self._log_prior, self._log_ratio], {}).compile()


def _shared_number(value: float, name: str) -> SharedVariable:
    return pytensor.shared(np.array(value, dtype=pytensor.config.floatX), name=name)


class DensityControls:
    """Set path, inverse temperature and data of every function compiled from one `TemperedDensity`; no recompiling."""

    def __init__(
        self, beta: SharedVariable, offset: SharedVariable, bend: SharedVariable, data: dict[str, SharedVariable]
    ) -> None:
        self._beta = beta
        self._offset = offset
        self._bend = bend
        self._data = data
        self._dtype = beta.type.dtype
        self._bounded: BoundedPath | None = None

    @property
    def beta_variable(self) -> SharedVariable:
        """The shared inverse temperature, by which a function that uses it is recognised."""
        return self._beta

    def _set(self, variable: SharedVariable, value: float) -> None:
        variable.set_value(np.array(value, dtype=self._dtype), borrow=True)

    def set_path(self, path: Path) -> None:
        """Set how the log likelihood is tempered; the inverse temperature is undefined until it is set."""
        self._bounded = path if isinstance(path, BoundedPath) else None
        self._set(self._offset, -np.inf)  # nothing lies below it: linear

    def set_beta(self, beta: float) -> None:
        """Set the inverse temperature."""
        self._set(self._beta, beta)
        if self._bounded is not None:
            is_bent = beta < 1.0
            self._set(self._offset, self._bounded.offset if is_bent else -np.inf)
            self._set(self._bend, self._bounded.power / (1.0 - beta) if is_bent else 1.0)

    def set_data(self, data: Mapping[str, NDArray[Any]]) -> None:
        """Set the data of all observed variables, cast to the dtypes of the model's own.

        Raises
        ------
        InvalidArgumentError
            If a variable is missing, unknown, or has another shape than the model's data.
        """
        if set(data) != set(self._data):
            raise InvalidArgumentError(
                f"Data must name exactly the observed variables {sorted(self._data)} but has {sorted(data)}."
            )
        for name, shared in self._data.items():
            value = np.array(data[name], dtype=shared.type.dtype)
            shape = shared.get_value(borrow=True).shape
            if value.shape != shape:
                raise InvalidArgumentError(
                    f"Data of {name!r} must have the shape {shape} of the model's own data but has {value.shape}."
                )
            shared.set_value(value, borrow=True)
