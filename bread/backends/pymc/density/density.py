"""The tempered log density of a PyMC model: compiled once; inverse temperature and data settable.

``log f_beta = log prior + beta * log likelihood`` (Grosse, Ancha & Roy (2016), section 2.2), in unconstrained
coordinates: the Jacobian belongs to the prior. On a reference path the compiled density is that of beta = 1, and
`gradients.TemperedGradient` combines it with the reference. All values are in nats. The user's model is only read;
every shared variable that its densities use (data, covariates) is replaced by a private copy.
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
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace

from bread.backends.pymc.density.compiling import compile_density, detach, first_line
from bread.backends.pymc.density.data_terms import DataTerms, of_data_alone
from bread.backends.pymc.density.gradients import CompiledFunction, TemperedGradient
from bread.backends.pymc.density.many_states import ManyStates, build_many_states
from bread.backends.pymc.density.observed_values import with_values
from bread.backends.pymc.density.pytensor_fixes.logistic import with_logistic_terms
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.pymc.model.reading import evaluate
from bread.errors import InvalidArgumentError, UnsupportedModelError


def split_density(
    model: pm.Model, law: LocalLaw | None = None, *, by_element: bool = False, given_real_data: bool = False
) -> tuple[Variable, Variable, dict[str, SharedVariable]]:
    """Split the log density of a model into prior and likelihood, with settable data.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    law : LocalLaw, optional
        Law of some free variables in place of their priors and Jacobians.
    by_element : bool, default False
        Leave the log likelihood of the one observed variable unsummed.
    given_real_data : bool, default False
        Take the model's posterior given its own data for the prior: potentials and the likelihood of those data are
        then a part of it, and the likelihood is that of the observed variables alone.

    Returns
    -------
    log_prior, log_likelihood : Variable, scalar
        Graphs of the model's own value variables, in nats; without ``law`` their sum is ``model.logp()``. Potentials,
        which are neither, are with the likelihood.
    data : dict of str to SharedVariable
        The data of each observed variable, private copies that the log likelihood reads.

    Raises
    ------
    UnsupportedModelError
        PyMC cannot build the density for data that are given later.

    Notes
    -----
    The density is built of a value variable of its own for each observed variable. Data replaced in the graph of the
    finished density would take every constant of the same type and value with them: a scale, a number of trials,
    another outcome.
    """
    data: dict[str, SharedVariable] = {}
    given: dict[Variable, Variable] = {}
    values: dict[Variable, Variable] = {}
    for variable in model.observed_RVs:
        value = model.rvs_to_values[variable]
        array = np.array(evaluate(value), dtype=value.type.dtype)
        data[variable.name] = pytensor.shared(array, name=f"{variable.name}_data", shape=value.type.shape)
        values[variable] = value.type()
        given[values[variable]] = data[variable.name]
    replaced = () if law is None else law.names
    free = [variable for variable in model.free_RVs if variable.name not in replaced]
    try:
        terms = with_values(model, values).logp(vars=[*free, *model.observed_RVs, *model.potentials], sum=False)
    except Exception as error:
        raise UnsupportedModelError(
            "PyMC has a log density of the model for its own data only: with data that are given later it raises "
            f"{first_line(error)}. The logp= of a pm.CustomDist must compute with the symbolic value that it is given "
            "(no .eval(), .data or NumPy functions)."
        ) from error
    prior, likelihood = terms[: len(free)], terms[len(free) :]
    if given_real_data:
        n_observed = len(model.observed_RVs)
        prior += likelihood[n_observed:] + model.logp(vars=model.observed_RVs, sum=False)
        likelihood = likelihood[:n_observed]
    if law is not None:
        prior.append(law.log_density([model.rvs_to_values[one] for one in model.free_RVs if one.name in replaced]))
    split = [_total(prior), *(likelihood if by_element else [_total(likelihood)])]
    # The data last: the shared variables that the densities use until then, covariates, are replaced by copies.
    log_prior, log_likelihood = graph_replace(detach(split).outputs, given, strict=False)
    return log_prior, log_likelihood, data


def _total(terms: Sequence[Variable]) -> Variable:
    if not terms:  # no outcome, and no potential
        return pt.constant(0.0, dtype=pytensor.config.floatX)
    first, *others = (term.sum() for term in terms)
    return pt.add(first, *others) if others else first


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
    by_element : bool, default False
        Let observations be left out of the likelihood (`DensityControls.keep`): those along the first dimension of the
        one observed variable, which `bread.backends.pymc.separable` has looked at.
    given_real_data : bool, default False
        See `split_density`.

    Attributes
    ----------
    graph : Variable
        ``log prior + beta * log likelihood`` of the model's value variables. At beta = 0 it is the log
        prior even where the log likelihood is -inf (0 * -inf would be NaN).
    """

    def __init__(
        self,
        model: pm.Model,
        layout: StateLayout,
        law: LocalLaw | None = None,
        *,
        by_element: bool = False,
        given_real_data: bool = False,
    ) -> None:
        log_prior, log_ratio, self._data = split_density(
            model, law, by_element=by_element, given_real_data=given_real_data
        )
        self._kept: SharedVariable | None = None
        if by_element:
            (data,) = self._data.values()
            everything = np.ones(data.get_value(borrow=True).shape[0], dtype=bool)
            self._kept = pytensor.shared(everything, name="kept_observations", shape=everything.shape)
            kept = self._kept.reshape((-1, *[1] * (log_ratio.type.ndim - 1)))
            log_ratio = pt.switch(kept, log_ratio, 0.0).sum()
        # Stabilised before anything is differentiated, as PyMC does.
        stable = with_logistic_terms(rewrite_pregrad([log_prior, log_ratio]))
        (self._log_prior, self._log_ratio), self._data_terms = of_data_alone(stable, list(self._data.values()))
        self._beta = _shared_number(1.0, "inverse_temperature")
        self.graph = log_prior + self._tempered(log_ratio)
        self._model = model
        self._layout = layout
        by_name = {variable.name: variable for variable in model.value_vars}
        self._values = [by_name[name] for name in layout.names]

    def _tempered(self, term: Variable) -> Variable:
        """Return ``beta * term``, and zero at beta = 0 whatever the term."""
        return pt.switch(pt.eq(self._beta, 0), pt.zeros_like(term), self._beta * term)

    def many_states(self) -> ManyStates | None:
        """Return both terms as a function of many states, where there can be one."""
        n_data = sum(int(shared.get_value(borrow=True).size) for shared in self._data.values())
        terms, bounds = [self._log_prior, self._log_ratio], self._model.check_bounds
        return build_many_states(self._values, terms, self._layout, n_data, check_bounds=bounds)

    @property
    def controls(self) -> DensityControls:
        """The settable inverse temperature and data, without the graphs."""
        return DensityControls(self._beta, dict(self._data), self._data_terms, self._kept)

    def _shape(self, variable: Variable) -> tuple[int, ...]:
        return self._layout.shapes[self._layout.names.index(variable.name)]

    def _compile(
        self, variables: Sequence[Variable], outputs: Sequence[Variable], extra: Mapping[Variable, SharedVariable]
    ) -> CompiledFunction:
        """Compile ``outputs`` as a function of one vector that holds ``variables`` end to end."""
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
        return compile_density(vector, list(outputs), self._model.check_bounds)

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
        spoil the prior's at beta = 0. It costs no more than one gradient of their sum.
        """
        extra = {
            value: pytensor.shared(np.asarray(point[value.name]), name=f"{value.name}_shared", shape=value.type.shape)
            for value in self._values
            if value not in variables
        }
        prior_gradient = self._gradient(self._log_prior, variables)
        ratio_gradient = self._gradient(self._log_ratio, variables)
        outputs = [
            self._log_prior + self._tempered(self._log_ratio),
            prior_gradient + self._tempered(ratio_gradient),
            self._log_ratio,
        ]
        function = self._compile(variables, outputs, extra)
        names = tuple(variable.name for variable in variables)
        size = sum(int(np.prod(self._shape(variable), dtype=int)) for variable in variables)
        settable = {value.name: shared for value, shared in extra.items()}
        return TemperedGradient(function, settable, names, size)

    def _gradient(self, term: Variable, variables: Sequence[Variable]) -> Variable:
        parts = pytensor.grad(term, list(variables), disconnected_inputs="ignore")
        return pt.concatenate([part.ravel() for part in parts]).astype(pytensor.config.floatX)

    def compile_terms(self) -> CompiledFunction:
        """Compile ``state -> (log prior, log likelihood)``, the state in the order of the layout."""
        return self._compile(self._values, [self._log_prior, self._log_ratio], {})


def _shared_number(value: float, name: str) -> SharedVariable:
    return pytensor.shared(np.array(value, dtype=pytensor.config.floatX), name=name)


class DensityControls:
    """Set inverse temperature and data of every function compiled from one `TemperedDensity`; no recompiling."""

    def __init__(
        self,
        beta: SharedVariable,
        data: dict[str, SharedVariable],
        data_terms: DataTerms | None,
        kept: SharedVariable | None,
    ) -> None:
        self._beta = beta
        self._data = data
        self._data_terms = data_terms
        self._kept = kept

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Leave all observations out of the likelihood but these, shape (n_observations,); by element only."""
        assert self._kept is not None
        self._kept.set_value(np.array(is_kept, dtype=bool), borrow=True)

    @property
    def beta_variable(self) -> SharedVariable:
        """The shared inverse temperature, by which a function that uses it is recognised."""
        return self._beta

    def set_beta(self, beta: float) -> None:
        """Set the inverse temperature, where it is not the same already."""
        if self._beta.get_value(borrow=True) != beta:
            self._beta.set_value(np.array(beta, dtype=self._beta.type.dtype), borrow=True)

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
        is_changed = False
        for name, shared in self._data.items():
            value, present = np.array(data[name], dtype=shared.type.dtype), shared.get_value(borrow=True)
            if value.shape != present.shape:
                raise InvalidArgumentError(
                    f"Data of {name!r} must have the shape {present.shape} of the model's own data but has "
                    f"{value.shape}."
                )
            if not np.array_equal(value, present):
                shared.set_value(value, borrow=True)
                is_changed = True
        if is_changed and self._data_terms is not None:
            self._data_terms.update()
