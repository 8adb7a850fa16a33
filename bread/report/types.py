"""What verbs return, whichever ArviZ is installed."""

from __future__ import annotations

from typing import Any, Protocol


class Report(Protocol):
    """A report: ArviZ's InferenceData before 1.0, xarray's DataTree from 1.0 on.

    Groups are attributes and items of both; `bread.verdict`, `bread.summary` and `bread.plot` read it.

    Attributes
    ----------
    attrs : dict
        What was asked for and what was said: settings, warnings, versions.
    """

    attrs: dict[Any, Any]

    def to_netcdf(self, filename: Any, /) -> Any:
        """Write it to a file, which `bread.verdict` and the command line read."""
        ...

    def __getitem__(self, key: str, /) -> Any:
        """Return a group."""
        ...

    def __getattr__(self, name: str, /) -> Any:
        """Return a group."""
        ...
