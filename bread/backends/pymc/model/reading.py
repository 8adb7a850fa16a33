"""Read a PyMC model without changing it: layout of the state, names, dimensions, data, hyperparameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

from bread.backends.base import Identity, IntArray, Layout, ModelInfo, RealData
from bread.backends.pymc.density.compiling import interpret_function, interpreted, is_generator
from bread.backends.pymc.model.latents import latents
from bread.backends.pymc.model.layout import StateLayout
from bread.errors import InvalidArgumentError


def read_layout(model: Any, point: dict[str, NDArray[Any]]) -> StateLayout:
    """Return the layout of the state vector; ``point`` is any point of the model in unconstrained coordinates."""
    values = [model.rvs_to_values[variable] for variable in model.free_RVs]
    return StateLayout(
        names=tuple(value.name for value in values),
        shapes=tuple(np.shape(point[value.name]) for value in values),
        dtypes=tuple(str(value.type.dtype) for value in values),
    )


def read_initial_point(model: Any) -> dict[str, NDArray[Any]]:
    """Return PyMC's initial point in unconstrained coordinates (it is not random unless an ``initval`` is)."""
    with interpreted(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return dict(model.initial_point(random_seed=0))


def evaluate(variable: Any) -> NDArray[Any]:
    """Return the present value of a variable that depends on data alone."""
    if isinstance(variable, Constant):
        return np.array(variable.data)
    if isinstance(variable, SharedVariable):
        return np.array(variable.get_value(borrow=False))
    return np.array(interpret_function([], [variable])()[0])


def read_observed(model: Any) -> dict[str, NDArray[Any]]:
    """Return a copy of the model's present data, by observed variable."""
    return {variable.name: evaluate(model.rvs_to_values[variable]) for variable in model.observed_RVs}


def data_of_observed(model: Any) -> set[Any]:
    """Return the shared variables that observed values are made of."""
    values = [model.rvs_to_values[variable] for variable in model.observed_RVs]
    return {variable for variable in ancestors(values) if isinstance(variable, SharedVariable)}


def dimensions(model: Any, name: str, ndim: int) -> tuple[str, ...]:
    """Return a dimension name for each axis of a variable: the model's, or ArviZ's default ("theta_dim_0")."""
    named = tuple(model.named_vars_to_dims.get(name) or ())
    named += (None,) * (ndim - len(named))
    return tuple(dim if dim is not None else f"{name}_dim_{axis}" for axis, dim in enumerate(named))


def read_dimensions(model: Any, deterministics: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the dimensions of free variables and deterministics."""
    return {one.name: dimensions(model, one.name, one.type.ndim) for one in (*model.free_RVs, *deterministics)}


def parents(model: Any, variable: Any) -> set[str]:
    """Return the names of the free variables that a variable depends on, directly or through others."""
    free = set(model.free_RVs) - {variable}
    return {ancestor.name for ancestor in ancestors([variable]) if ancestor in free}


def default_hyperparameters(model: Any) -> tuple[str, ...]:
    """Return the free variables that other free variables depend on.

    Where there are none: all but standardised effects (`latents`); all where nothing else is left.
    """
    names = tuple(variable.name for variable in model.free_RVs)
    found = set().union(*(parents(model, variable) for variable in model.free_RVs))
    if not found:
        found = set(names) - latents(model)
    return tuple(name for name in names if name in found) or names


def check_fixed_names(model_parents: dict[str, set[str]], names: Iterable[str], argument: str) -> tuple[str, ...]:
    """Check that parameters can be held fixed: they are free variables, and so are all that they depend on.

    Holding a variable and drawing what it depends on would need p(parent | variable), which is no prior draw.

    Raises
    ------
    InvalidArgumentError
        For an unknown name, or for a name without its parents.
    """
    names = tuple(dict.fromkeys(names))
    valid = ", ".join(model_parents)
    for name in names:
        if name not in model_parents:
            raise InvalidArgumentError(
                f"{argument} names {name!r}, which is no free variable of the model. Valid names: {valid}."
            )
    for name in names:
        missing = sorted(model_parents[name] - set(names))
        if missing:
            raise InvalidArgumentError(
                f"{argument} names {name!r} without {', '.join(map(repr, missing))}, on which its prior depends: a "
                f"parameter can only be held fixed together with all its parents. Add {', '.join(map(repr, missing))} "
                f"or leave {name!r} out."
            )
    return tuple(name for name in model_parents if name in names)


def read_parents(model: Any) -> dict[str, set[str]]:
    """Return, for each free variable, the free variables that its prior depends on."""
    return {variable.name: parents(model, variable) for variable in model.free_RVs}


def usable_deterministics(model: Any) -> tuple[list[Any], list[str]]:
    """Return the deterministics that are functions of free variables, and a note for each other one."""
    usable, notes = [], []
    observed = set(model.observed_RVs)
    for variable in model.deterministics:
        if set(ancestors([variable])) & observed:
            notes.append(f"Deterministic {variable.name!r} is left out: it is computed from observed variables.")
        elif any(is_generator(v) for v in ancestors(model.replace_rvs_by_values([variable]))):
            notes.append(f"Deterministic {variable.name!r} is left out: it draws random numbers of its own.")
        else:
            usable.append(variable)
    return usable, notes


def read_coords(model: Any, dims: Iterable[Sequence[str]]) -> dict[str, NDArray[Any]]:
    """Return the values of the named dimensions that the model has."""
    coords: dict[str, NDArray[Any]] = {}
    for dim in dict.fromkeys(name for names in dims for name in names):
        if dim not in model.dim_lengths:
            continue
        values = model.coords.get(dim)
        coords[dim] = np.arange(int(evaluate(model.dim_lengths[dim]))) if values is None else _as_coordinate(values)
    return coords


def _as_coordinate(values: Sequence[Any]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim == 1:
        return array
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values)
    return objects


def read_constant_data(model: Any) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Return the covariates: `pm.Data` that is not observed, as name -> (dimension names, values)."""
    observed = data_of_observed(model)
    result = {}
    for variable in model.data_vars:
        if variable not in observed:
            value = evaluate(variable)
            result[variable.name] = (dimensions(model, variable.name, value.ndim), value)
    return result


def read_info(
    model: Any,
    layout: StateLayout,
    deterministics: Sequence[Any],
    hyperparameters: tuple[str, ...],
    *,
    kernel: str,
    versions: dict[str, str],
    notes: tuple[str, ...],
) -> ModelInfo:
    """Collect what the core and the report need to know of the model."""
    parameters = read_dimensions(model, deterministics)
    observed = {variable.name: dimensions(model, variable.name, variable.type.ndim) for variable in model.observed_RVs}
    constant_data = read_constant_data(model)
    all_dims = [*parameters.values(), *observed.values(), *(dims for dims, _ in constant_data.values())]
    return ModelInfo(
        Identity(model.name or "model", "pymc", "pymc", kernel, versions, notes),
        Layout(
            coordinates=layout.coordinates,
            discrete=layout.discrete,
            hyperparameters=hyperparameters,
            parameters=parameters,
            positions=read_positions(model, layout),
            transformed=np.repeat([model.rvs_to_transforms[v] is not None for v in model.free_RVs], layout.sizes),
        ),
        RealData(read_observed(model), observed, constant_data, read_coords(model, all_dims)),
    )


def read_positions(model: Any, layout: StateLayout) -> dict[str, IntArray]:
    """Return the indices of the coordinates of each free variable."""
    starts = np.concatenate([[0], np.cumsum(layout.sizes)])
    return {
        variable.name: np.arange(first, last, dtype=np.int64)
        for variable, first, last in zip(model.free_RVs, starts[:-1], starts[1:], strict=True)
    }
