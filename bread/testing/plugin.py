"""A pytest plugin for tests of samplers and models; opt-in.

Switch it on in ``conftest.py`` with ``pytest_plugins = ["bread.testing.plugin"]``, or by ``pytest -p
bread.testing.plugin``. Tests that call the assertions of `bread.testing` carry ``@pytest.mark.bread``. All of them
that run share one rate of false alarms, which the summary states; a report that made a test fail is kept as a file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bread.testing.settings import DEFAULT_LEVEL, Settings, use

_COUNT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("bread", "tests of samplers and models")
    group.addoption(
        "--bread-level",
        type=float,
        default=DEFAULT_LEVEL,
        help=f"Rate of false alarms of all tests marked bread together (default {DEFAULT_LEVEL:g}).",
    )
    group.addoption(
        "--bread-budget", type=float, default=1.0, help="Work of each of these tests, times its default (default 1)."
    )
    group.addoption(
        "--bread-seed",
        type=int,
        default=0,
        help="Seed of all of them; each has a stream of its own, by its name (default 0).",
    )
    group.addoption(
        "--bread-reports",
        default="bread-reports",
        help="Folder for reports of failed tests (default %(default)s).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "bread(level=None, budget=None, seed=None): a test of a sampler or a model. It shares the rate of false alarms "
        "of --bread-level with all others that are marked, unless it has a level of its own.",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the tests that share the level."""
    marked = (item.get_closest_marker("bread") for item in session.items)
    session.config.stash[_COUNT] = sum(mark is not None and mark.kwargs.get("level") is None for mark in marked)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a marked test with its share of the level, a seed of its own, and a place for its report."""
    mark = item.get_closest_marker("bread")
    if mark is None:
        return (yield)
    option = item.config.getoption
    share = option("--bread-level") / max(item.config.stash[_COUNT], 1)
    own = {name: value for name, value in mark.kwargs.items() if value is not None}
    name = re.sub(r"[^\w.-]+", "_", item.nodeid)
    settings = Settings(
        level=own.get("level", share),
        budget=own.get("budget", option("--bread-budget")),
        seed=own.get("seed", (option("--bread-seed") + zlib.crc32(item.nodeid.encode())) % 2**32),
        report=Path(option("--bread-reports")) / f"{name}.nc",
    )
    with use(settings):
        return (yield)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """State the rate of false alarms."""
    n_tests = config.stash.get(_COUNT, 0)
    if n_tests:
        level = config.getoption("--bread-level")
        tests = "One test" if n_tests == 1 else f"{n_tests} tests"
        terminalreporter.write_line(
            f"{tests} marked bread: where nothing is wrong, one of them fails in at most {level:.2g} of runs with "
            "fresh seeds (tests with a level of their own apart)."
        )
