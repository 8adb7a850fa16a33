"""The differences between ArviZ generations: `InferenceData` before 1.0, `xarray.DataTree` from 1.0 on.

Nothing else in bread depends on which it is; `bread.arviz_import` finds out. Reading accepts either kind on either
version, since a report may have been written by the other one or reopened by xarray alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from bread.arviz_import import has_trees, import_arviz
from bread.errors import InvalidArgumentError
from bread.report.types import Report

LABELLED = ("ci_bound", "direction", "iteration", "n_temperatures", "share", "simulation")  # read by their labels


def make_container(groups: Mapping[str, xr.Dataset], attributes: Mapping[str, Any]) -> Report:
    """Return the container of the installed ArviZ that holds ``groups`` and has ``attributes`` at its root.

    Parameters
    ----------
    groups : mapping of str to Dataset
    attributes : mapping of str to str, int or float

    Returns
    -------
    InferenceData or DataTree
    """
    if has_trees():
        tree: Report = xr.DataTree.from_dict(dict(groups))
        tree.attrs.update(attributes)
        return tree
    made: Report = import_arviz().InferenceData(attrs=dict(attributes), **groups)
    return made


def group_names(report: Any) -> tuple[str, ...]:
    """Return the names of the groups of a report of either kind."""
    if isinstance(report, xr.DataTree):
        return tuple(report.children)
    return tuple(report.groups())


def read_group(report: Any, name: str) -> xr.Dataset | None:
    """Return one group of a report of either kind as a Dataset; None where the report lacks it.

    Raises
    ------
    InvalidArgumentError
        It lacks a coordinate that it is read by.
    """
    if name not in group_names(report):
        return None
    dataset: xr.Dataset = report[name].to_dataset() if isinstance(report, xr.DataTree) else report[name]
    for dim in LABELLED:
        if dim in dataset.dims and dim not in dataset.coords:  # xarray would take labels for positions
            raise InvalidArgumentError(
                f"The report's group '{name}' lacks the coordinate '{dim}', by which it is read: it was changed. "
                "Pass it as it was written, or run the check again."
            )
    return dataset


def require_group(report: Any, name: str) -> xr.Dataset:
    """Return one group of a report as a Dataset; InvalidArgumentError where the report lacks it."""
    dataset = read_group(report, name)
    if dataset is None:
        raise InvalidArgumentError(
            f"The report lacks the group '{name}', which this version of bread writes. Run bread.check again."
        )
    return dataset


def read_attributes(report: Any) -> dict[str, Any]:
    """Return the root attributes of a report of either kind."""
    return dict(report.attrs)
