"""The log densities of a PyMC model as a JAX function of state and data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.compile.mode import JAX, Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.raise_op import CheckAndRaise

from bread.backends.pymc.density.density import split_density
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.pymc.vectorised.packages import double_precision, load_dispatch

DensityFunction = Callable[..., tuple[Any, Any]]


@dataclass
class ConvertedDensity:
    """Log prior and log likelihood (nats) of one state and one data set, as a function that JAX traces.

    Data are arguments, so that one compiled program serves every data set. A pickled copy takes the graphs with it and
    converts them where it is used.

    Attributes
    ----------
    names : tuple of str
        Observed variables, in the order in which their values follow the state.
    dtypes : tuple of str
        Of their values.
    """

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    _inputs: list[Any]
    _outputs: list[Any]
    _function: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    @property
    def function(self) -> DensityFunction:
        """``(state, *data) -> (log prior, log likelihood)``; to be called and traced in double precision.

        Raises
        ------
        Exception
            Whatever PyTensor raises for an operation that has no counterpart in JAX.
        """
        if self._function is None:
            self._function = _convert(self._inputs, self._outputs)
        function: DensityFunction = self._function
        return function

    def arrays(self, data: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """Return a data set as the arguments that follow the state."""
        return tuple(np.asarray(data[name], dtype=dtype) for name, dtype in zip(self.names, self.dtypes, strict=True))


def build_density(model: pm.Model, layout: StateLayout, law: LocalLaw | None = None) -> ConvertedDensity:
    """Build the graphs of log prior and log likelihood, read only; nothing is converted yet.

    Parameters
    ----------
    model : pymc.Model
    layout : StateLayout
        All variables are continuous.
    law : LocalLaw, optional
        Law of some variables in place of their priors.
    """
    log_prior, log_ratio, shared = split_density(model, law)
    state = pt.tensor("state", dtype="float64", shape=(layout.dim,))
    by_name = {variable.name: variable for variable in model.value_vars}
    replacements: dict[Any, Any] = {}
    offset = 0
    for name, shape, size in zip(layout.names, layout.shapes, layout.sizes, strict=True):
        variable = by_name[name]
        part = state[offset : offset + size].reshape(shape).astype(variable.type.dtype)
        replacements[variable] = variable.type.filter_variable(part)
        offset += size
    data = {name: variable.type() for name, variable in shared.items()}
    replacements.update({shared[name]: variable for name, variable in data.items()})
    outputs = graph_replace([log_prior, log_ratio], replacements, strict=False)
    outputs = _with_bounds(_without_shared(outputs), [state, *data.values()], model.check_bounds)
    return ConvertedDensity(
        names=tuple(data),
        dtypes=tuple(variable.type.dtype for variable in data.values()),
        _inputs=outputs.inputs,
        _outputs=outputs.outputs,
    )


def _without_shared(outputs: Sequence[Any]) -> list[Any]:
    """Make constants of the shared variables that are left: covariates, which are private copies."""
    constants = {
        variable: variable.type.make_constant(variable.get_value(borrow=False), name=variable.name)
        for variable in graph_inputs(outputs)
        if isinstance(variable, SharedVariable)
    }
    return list(graph_replace(list(outputs), constants, strict=False)) if constants else list(outputs)


def _with_bounds(outputs: Sequence[Any], inputs: Sequence[Any], check_bounds: bool) -> FunctionGraph:
    """Rewrite for JAX; a parameter outside its domain gives -inf, as in what PyMC compiles.

    PyMC's own conversion drops those checks, because JAX cannot raise: the density would then go on where it is zero.

    Raises
    ------
    NotImplementedError
        A check is left that cannot be written as a density of zero.
    """
    rule = "local_check_parameter_to_ninf_switch" if check_bounds else "local_remove_check_parameter"
    graph = FunctionGraph(inputs=list(inputs), outputs=list(outputs), clone=True)
    Mode(linker=JAX.linker, optimizer=JAX.provided_optimizer.including(rule)).optimizer.rewrite(graph)
    left = sorted({type(node.op).__name__ for node in graph.apply_nodes if isinstance(node.op, CheckAndRaise)})
    if left:
        raise NotImplementedError(f"{left[0]} raises an error for some states, which JAX cannot")
    return graph


def _convert(inputs: Sequence[Any], outputs: Sequence[Any]) -> DensityFunction:
    funcify = load_dispatch()
    with double_precision(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = FunctionGraph(inputs=list(inputs), outputs=list(outputs), clone=True)
        function: DensityFunction = funcify(graph)
    return function
