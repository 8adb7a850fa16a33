"""Workers that start before the model is opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import bread
from bread.backends import module_of
from bread.running import executors
from bread.running.executors import start_early

PROGRAM = "data { real y; } parameters { real m; } model { m ~ normal(0, 1); y ~ normal(m, 1); }"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(executors, "start_workers", lambda *arguments: calls.append(arguments))
    yield calls


def test_workers_import_the_backend_of_the_model(started: list[tuple[Any, ...]]) -> None:
    start_early(module_of(PROGRAM), 2)
    ((function, arguments, cores),) = started
    assert (arguments, cores) == (("bread.backends.stan",), 2)
    function(*arguments)  # what a worker does


@pytest.mark.parametrize(
    ("module", "cores", "executor"),
    [("bread.backends.stan", 1, None), ("bread.backends.stan", 2, object()), (None, 2, None)],
    ids=["one process", "workers of the caller's", "a model of another package"],
)
def test_no_worker_starts_that_is_not_used(
    started: list[tuple[Any, ...]], module: str | None, cores: int, executor: Any
) -> None:
    start_early(module, cores, executor)
    assert started == []


def test_a_package_that_is_missing_is_no_matter_of_the_worker(started: list[tuple[Any, ...]]) -> None:
    start_early("bread.no_such_backend", 2)
    ((function, arguments, _),) = started
    function(*arguments)


def test_the_backend_of_another_package_is_not_imported_early() -> None:
    assert module_of(object()) is None


def test_a_check_starts_its_workers_before_it_opens_the_model(
    started: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opening(*_: Any) -> Any:
        assert len(started) == 1
        raise bread.errors.UnsupportedModelError("opened")

    monkeypatch.setattr("bread._check.open_model", opening)
    with pytest.raises(bread.errors.UnsupportedModelError, match="opened"):
        bread.check(PROGRAM, data={"y": 1.0}, cores=2, progressbar=False)
