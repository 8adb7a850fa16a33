"""Settings for the whole test run: tests of bread and of its plugins."""

import os
import signal
import time
import warnings
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("BREAD_PRECOMPILE", "1")  # dozens of Stan programs are compiled
os.environ.setdefault("BREAD_CXXFLAGS", "-O1")  # and run for a moment only

with warnings.catch_warnings():  # ArviZ 0.23 announces its successor once a day, and warnings are errors in tests
    warnings.simplefilter("ignore", FutureWarning)
    import arviz  # noqa: F401

# A job that a shell starts in the background ignores the keyboard interrupt, as do its children; some tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minutes",
        type=float,
        default=float("inf"),
        help="Begin no test after so many minutes: those left are skipped, with this reason.",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    moderate = set((Path(__file__).parent / "tests" / "moderate.txt").read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in moderate:
            item.add_marker("moderate")
        if item.get_closest_marker("study") or item.get_closest_marker("moderate"):
            item.add_marker("slow")


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--minutes")
    if time.monotonic() - _BEGAN > 60.0 * minutes:
        pytest.skip(f"not begun: {minutes:g} minutes are over")
