"""ArviZ, imported so that it may fail but not at random, and which of its two generations it is."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from bread.errors import BreadError


def import_arviz() -> Any:
    """Return ArviZ; called before anything is computed, because a report that cannot be made would be lost.

    ArviZ 0.23 notes once a day, in a file, that it has announced its successor. Of two processes that do so at the
    same moment one finds its file gone, and fails; the second time the note is there.

    Raises
    ------
    BreadError
        It cannot be imported, which happens where a user has no home folder.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            try:
                import arviz
            except FileNotFoundError:
                import arviz
    except Exception as error:
        raise BreadError(
            f"ArviZ, which reports are made with, cannot be imported ({type(error).__name__}: {error}). Nothing was "
            "computed. If this user has no home folder, set the environment variable HOME."
        ) from error
    return arviz


def has_trees() -> bool:
    """Return whether the installed ArviZ keeps its data in xarray's trees, as from 1.0 on."""
    loaded = sys.modules.get("arviz")
    try:
        found = version("arviz") if loaded is None else loaded.__version__
    except PackageNotFoundError:
        found = import_arviz().__version__
    return int(found.split(".")[0]) >= 1


def require_containers() -> None:
    """Import what reports are made of: ArviZ before 1.0, seconds of processor time; after that nothing of it.

    Raises
    ------
    BreadError
        ArviZ cannot be imported.
    """
    if not has_trees():
        import_arviz()
