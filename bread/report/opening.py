"""What is taken for a report: the object that `bread.check` returned, or the path of the file it was written to."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import xarray as xr

from bread.argument_rules import received
from bread.errors import InvalidArgumentError, MissingDependencyError
from bread.jobs.store import DATABASE, REPORT
from bread.report.compat import group_names, read_attributes

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZARR = ("zarr.json", ".zgroup", ".zmetadata")
_RULE = "a report of bread.check (InferenceData or DataTree), or the path of its file (netCDF or zarr)"
_MARK = "bread_version"
_ABSENT = re.compile("['\"]([^'\"]+)['\"]")  # the name in a KeyError of xarray

_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes_report(function: _Function) -> _Function:
    """Let a function whose first argument is ``report`` take a path too, and refuse what is no report."""

    @functools.wraps(function)
    def wrapper(report: Any, *rest: Any, **named: Any) -> Any:
        with opened_report(report) as found:
            return function(found, *rest, **named)

    return cast(_Function, wrapper)


@contextmanager
def opened_report(report: Any) -> Iterator[Any]:
    """Give the report that an argument is, or whose path it is; a file is closed at the end.

    Parameters
    ----------
    report : InferenceData, DataTree or path

    Raises
    ------
    InvalidArgumentError
        It is no report of bread, or its file is not there or cannot be read.
    MissingDependencyError
        A zarr store without the package `zarr`.
    """
    if not isinstance(report, (str, os.PathLike)):
        _require_report(report, "report")
        with _whole("report"):
            yield report
        return
    path = Path(os.path.expanduser(report))
    if (path / DATABASE).is_file():  # a checkpoint
        path = path / REPORT
    with _open(path) as tree:
        _require_report(tree, f"'{path}'")
        try:
            with _whole(f"'{path}'"):
                yield tree
        except OSError as error:
            raise _unreadable(path, f"it is damaged ({_first_line(error)})") from error


@contextmanager
def _whole(what: str) -> Iterator[None]:
    """Say in one line what a report lacks, where what reads it asks for a variable, coordinate or attribute in vain."""
    try:
        yield
    except KeyError as error:
        name = str(error.args[0]) if error.args else ""
        found = _ABSENT.search(name)
        raise InvalidArgumentError(
            f"{what} lacks '{found[1] if found else name}', which reports of this version of bread have: it was "
            "changed, or an older version wrote it. Pass it as it was written, or run the check again."
        ) from error


def _open(path: Path) -> xr.DataTree:
    """Open the file of a report."""
    try:
        is_folder = path.is_dir()
        if is_folder and not any((path / name).exists() for name in _ZARR):
            raise _unreadable(path, "it is a directory, and no zarr store")
        if not is_folder:
            _require_netcdf(path)
        elif importlib.util.find_spec("zarr") is None:
            raise MissingDependencyError(f"'{path}' is a zarr store, which needs the package 'zarr': pip install zarr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of stores without consolidated metadata
            return xr.open_datatree(path, engine="zarr" if is_folder else "h5netcdf")
    except FileNotFoundError:
        raise InvalidArgumentError(f"There is no report at '{path}'. Pass {_RULE}.") from None
    except (InvalidArgumentError, MissingDependencyError):
        raise
    except Exception as error:  # h5py and zarr raise what they like at damaged files
        raise _unreadable(path, f"it is damaged ({_first_line(error)})") from error


def _require_netcdf(path: Path) -> None:
    with path.open("rb") as file:
        begin = file.read(len(_HDF5))
    if begin != _HDF5:
        raise _unreadable(path, "it is no netCDF file (version 4)" if begin else "it is empty")


def _unreadable(path: Path, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"'{path}' cannot be read as a report: {reason}. Pass {_RULE}.")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _require_report(report: Any, what: str) -> None:
    """Raise InvalidArgumentError unless ``report`` bears the attribute that `bread.check` gives every report."""
    is_container = isinstance(report, xr.DataTree) or (
        not isinstance(report, type) and callable(getattr(report, "groups", None)) and hasattr(report, "attrs")
    )
    if is_container and _MARK in read_attributes(report):
        return
    if not is_container:
        raise InvalidArgumentError(f"{what} must be {_RULE}, got {received(report)}.")
    names = tuple(name.lstrip("/") for name in group_names(report))
    way_out = " Draws of your own go to bread.check(..., posterior=)." if "posterior" in names else ""
    raise InvalidArgumentError(
        f"{what} was not made by bread.check: an object of type {type(report).__name__} (groups: "
        f"{', '.join(names) or 'none'}) without the attribute {_MARK!r}, which every report has. Pass {_RULE}.{way_out}"
    )
