"""Values that netCDF and zarr can hold, and names that do not clash with the report's own dimensions.

netCDF refuses arrays of mixed objects (pandas Categorical, Interval, Period, dates, tuples, None); xarray turns a
variable into a coordinate without a word when it bears the name of its own dimension.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

RESERVED = frozenset(
    {
        "n_temperatures",
        "simulation",
        "chain",
        "draw",
        "knot",
        "direction",
        "ci_bound",
        "function",
        "coordinate",
        "parameter",
        "data_set",
        "phase",
    }
)
"""Dimensions of the report: no variable or dimension of a model keeps one of these names."""


def storable(values: Any) -> NDArray[Any]:
    """Return ``values`` as an array of numbers, booleans, strings or datetimes.

    Numbers, strings, booleans and datetime64 are kept. Everything else becomes text: dates in ISO form, intervals,
    periods, categories, tuples and None as they print. An object array of numbers becomes an array of numbers.

    Parameters
    ----------
    values : array_like, or any pandas index or array

    Returns
    -------
    ndarray
    """
    if not isinstance(values, np.ndarray):
        values = _as_objects(values)
    kind = values.dtype.kind
    if kind == "f" and values.dtype.itemsize not in (4, 8):
        return np.asarray(values, dtype=np.float32 if values.dtype.itemsize < 4 else np.float64)
    if kind in "biufUM":
        return np.asarray(values)
    if kind == "O":
        items = list(values.ravel())
        if items and all(isinstance(item, (bool, np.bool_)) for item in items):
            return np.array(items, dtype=bool).reshape(values.shape)
        if items and all(_is_whole(item) for item in items):
            return np.array(items, dtype=np.int64).reshape(values.shape)
        if items and all(_is_whole(item) or isinstance(item, (float, np.floating)) for item in items):
            return np.array(items, dtype=np.float64).reshape(values.shape)
    text = np.array([_as_text(item) for item in values.ravel()], dtype=np.str_)
    return text.reshape(values.shape)


def _as_objects(values: Any) -> NDArray[Any]:
    """Return an array of any array-like; tuples stay single items."""
    if isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype.kind != "O":
        return np.asarray(values)
    if hasattr(values, "dtype"):  # pandas: categorical, interval, period, strings, time zones
        values = list(values)
    items = list(values)
    if any(isinstance(item, tuple) for item in items):
        result = np.empty(len(items), dtype=object)
        result[:] = items
        return result
    if len({type(item) for item in items}) > 1:
        return np.array(items, dtype=object)
    return np.asarray(items)


def _is_whole(item: Any) -> bool:
    return isinstance(item, (int, np.integer)) and not isinstance(item, bool)


def _as_text(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode(errors="replace")
    if isinstance(item, datetime.datetime) and item.time() == datetime.time(0) and item.tzinfo is None:
        return item.date().isoformat()
    if isinstance(item, (datetime.date, datetime.time)):
        return item.isoformat()
    return str(item)


def coordinate_values(values: Any) -> NDArray[Any]:
    """Return coordinate labels as a one-dimensional array that netCDF can hold (rows of a table become text)."""
    array = values if isinstance(values, np.ndarray) else _as_objects(values)
    if array.ndim > 1:
        array = np.array([str(tuple(row.tolist())) for row in array], dtype=np.str_)
    return storable(array)


def safe_name(name: str, taken: frozenset[str] = RESERVED) -> str:
    """Return ``name``, without "/" (netCDF's group separator) and with "_" appended where it clashes."""
    safe = name.replace("/", "|")
    while safe in taken:
        safe += "_"
    return safe


def model_dataset(
    variables: Mapping[str, NDArray[Any]],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Any],
    leading: Mapping[str, NDArray[Any]],
) -> xr.Dataset:
    """Return a Dataset of a model's own variables with its own dimension names and coordinates.

    Parameters
    ----------
    variables : mapping of str to ndarray
        Arrays whose first axes are those of ``leading``.
    dims : mapping of str to sequence of str
        Names of the remaining axes; ``<variable>_dim_<i>`` where the model names none.
    coords : mapping of str to array_like
        Labels of the model's dimensions. Used where the length fits.
    leading : mapping of str to ndarray
        The report's own dimensions and their labels, such as simulation and chain.

    Returns
    -------
    Dataset
        Without a variable that is a coordinate by accident: one that bears the name of a dimension is renamed.
    """
    labels: dict[str, NDArray[Any]] = dict(leading)
    own_dims = {name: _own_dims(name, np.ndim(values) - len(leading), dims) for name, values in variables.items()}
    for name, own in own_dims.items():
        for dim, length in zip(own, np.shape(variables[name])[len(leading) :], strict=True):
            if dim in coords and len(coords[dim]) == length:
                labels.setdefault(safe_name(dim), coordinate_values(coords[dim]))
    lengths = {dim: len(values) for dim, values in labels.items()}
    arrays: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {}
    for name, own in own_dims.items():
        values = storable(np.asarray(variables[name]))
        fitting = []
        for axis, length in enumerate(values.shape[len(leading) :]):
            dim = safe_name(own[axis])
            is_free = lengths.setdefault(dim, length) == length and dim not in fitting
            fitting.append(dim if is_free else safe_name(f"{name}_dim_{axis}"))
        arrays[name] = ((*leading, *fitting), values)
    used = frozenset(dim for names, _ in arrays.values() for dim in names) | frozenset(leading)
    renamed: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {}
    for name, array in arrays.items():
        renamed[safe_name(name, RESERVED | used | frozenset(renamed))] = array
    return xr.Dataset(renamed, coords={dim: values for dim, values in labels.items() if dim in used})


def _own_dims(name: str, n_axes: int, dims: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the model's dimension names of a variable; names of its own where the model gives none."""
    default = tuple(f"{name}_dim_{axis}" for axis in range(n_axes))
    own = tuple(dims.get(name, ()))
    return tuple(dim or spare for dim, spare in zip(own, default, strict=True)) if len(own) == n_axes else default


def component_labels(name: str, shape: Sequence[int], dims: Sequence[str], coords: Mapping[str, Any]) -> list[str]:
    """Return the names of a variable's components as ``az.summary`` writes them.

    Parameters
    ----------
    name : str
    shape : sequence of int
        Of the variable.
    dims, coords : sequence of str, mapping of str to array_like
        Its dimension names and their labels, as the model gives them. Used where the length fits.

    Returns
    -------
    list of str
        ``mu``; ``theta[Choate]``; ``corr[0, 1]`` where the model has no labels.
    """
    name = safe_name(name)
    if not shape:
        return [name]
    own = _own_dims(name, len(shape), {name: dims})
    axes = []
    for dim, length in zip(own, shape, strict=True):
        fits = dim in coords and len(coords[dim]) == length
        axes.append([str(value) for value in coordinate_values(coords[dim])] if fits else list(map(str, range(length))))
    return [f"{name}[{', '.join(labels)}]" for labels in product(*axes)]
