"""Write a report to a file: tried before anything long is computed, and beside it where that fails afterwards."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import xarray as xr

from bread.errors import InvalidArgumentError
from bread.report.compat import make_container


def require_writable(file: Path) -> None:
    """Raise unless a report can be written there: one of a single number is.

    Raises
    ------
    InvalidArgumentError
        The folder is not there or takes no files, the path is no plain file, or no package writes netCDF.
    """
    folder = file.absolute().parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"the folder {folder} does not exist. Make it, or name another.")
    if os.path.exists(file) and not os.path.isfile(file):  # of pathlib's, these raise at a name too long
        raise InvalidArgumentError(f"'{file}' is a folder or a device. Name a file, such as '{file / 'report.nc'}'.")
    unfinished = _unfinished(file)
    try:
        make_container({"posterior": xr.Dataset({"x": 0.0})}, {}).to_netcdf(unfinished)
    except Exception as error:  # of the system, or of the package that writes
        raise InvalidArgumentError(
            f"no report can be written to '{file}': {_one_line(error)}. Name another."
        ) from error
    finally:
        _remove(unfinished)


def save(report: Any, file: Path) -> tuple[Path | None, str]:
    """Write a report; a file that is there is replaced only by a whole one.

    Returns
    -------
    Path or None
        Where it is: ``file``, else beside it, in the working folder or in that for temporary files; None where
        nothing takes it.
    str
        Why it is not in ``file``; "" if it is.
    """
    why = ""
    other = f"{file.stem}-{os.getpid()}{file.suffix}"
    for place in (file, file.with_name(other), Path.cwd() / other, Path(tempfile.gettempdir()) / other):
        unfinished = _unfinished(place)
        try:
            report.to_netcdf(unfinished)
            os.replace(unfinished, place)
        except Exception as error:  # of the system, or of the package that writes
            why = why or f"The report cannot be written to {file}: {_one_line(error)}."
        else:
            return place, why
        finally:
            _remove(unfinished)
    return None, why


def _unfinished(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}")


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):  # a folder that is no longer one
        file.unlink(missing_ok=True)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
