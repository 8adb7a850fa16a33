"""What an assertion uses where its caller says nothing: defaults, or what the pytest plugin sets for one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

DEFAULT_LEVEL = 0.001  # rate of false alarms of one assertion, or of a whole suite under the plugin


@dataclass(frozen=True)
class Settings:
    """Level, work, seed, and where to keep a report.

    Attributes
    ----------
    level : float
        Rate of false alarms.
    budget : float
        Work, times the default of what runs.
    seed : int
    report : Path or None
        File for the report of an assertion that fails; none is written without.
    """

    level: float = DEFAULT_LEVEL
    budget: float = 1.0
    seed: int = 0
    report: Path | None = None


_DEFAULT = Settings()
_CURRENT: ContextVar[Settings] = ContextVar("bread_testing", default=_DEFAULT)


def current() -> Settings:
    """Return what holds now."""
    return _CURRENT.get()


@contextmanager
def use(settings: Settings) -> Iterator[None]:
    """Use settings within a block."""
    token = _CURRENT.set(settings)
    try:
        yield
    finally:
        _CURRENT.reset(token)
