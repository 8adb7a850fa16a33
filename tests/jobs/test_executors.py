"""Workers that start before the model is opened."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import bread
from bread.backends import module_of
from bread.jobs import executors
from bread.jobs.executors import started_early
from bread.workers import start_workers, stop_workers
from tests.support.child_checks import wait_until

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test file

PROGRAM = "data { real y; } parameters { real m; } model { m ~ normal(0, 1); y ~ normal(m, 1); }"


@pytest.fixture(autouse=True)
def new_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start anew, as they do where other threads run: those that are forked import nothing."""
    monkeypatch.setenv("BREAD_FORK", "0")


def start(*arguments: Any) -> None:
    with started_early(*arguments):
        pass


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(executors, "start_workers", lambda *arguments: calls.append(arguments))
    yield calls


def test_workers_import_the_backend_of_the_model(started: list[tuple[Any, ...]]) -> None:
    start(module_of(PROGRAM), 2)
    ((function, arguments, cores),) = started
    assert (arguments, cores) == (("bread.backends.stan",), 2)
    function(*arguments)  # what a worker does


def test_where_workers_are_forked_the_parent_imports_for_them(
    started: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "what_fits_need.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(executors, "can_fork", lambda: True)
    start("bread.backends.stan", 2, None, ("what_fits_need",))
    assert not started and sys.modules.pop("what_fits_need", None) is not None


def test_workers_import_what_fits_need_where_a_reference_may_be_fitted(
    started: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opening(*_: Any) -> Any:
        raise bread.errors.UnsupportedModelError("opened")

    monkeypatch.setattr("bread.verbs.checking.open_model", opening)
    for path in ("auto", "reference", "prior"):
        with pytest.raises(bread.errors.UnsupportedModelError, match="opened"):
            bread.check(PROGRAM, data={"y": 1.0}, path=path, cores=2, progressbar=False)
    assert [set(arguments) - {"bread.backends.stan"} for _, arguments, _ in started] == [
        {"sklearn.covariance", "sklearn.mixture"}, {"sklearn.covariance", "sklearn.mixture"}, set()
    ]  # fmt: skip


def test_workers_go_on_after_a_package_that_is_missing(
    started: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    start("math", 2, None, ("no_such_package", "this"))
    ((function, arguments, _),) = started
    monkeypatch.delitem(sys.modules, "this", raising=False)
    function(*arguments)
    assert "this" in sys.modules


@pytest.mark.parametrize(
    ("module", "cores", "executor"),
    [("bread.backends.stan", 1, None), ("bread.backends.stan", 2, object()), (None, 2, None)],
    ids=["one process", "workers of the caller's", "a model of another package"],
)
def test_no_worker_starts_that_is_not_used(
    started: list[tuple[Any, ...]], module: str | None, cores: int, executor: Any
) -> None:
    start(module, cores, executor)
    assert started == []


def test_a_package_that_is_missing_is_no_matter_of_the_worker(started: list[tuple[Any, ...]]) -> None:
    start("bread.no_such_backend", 2)
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

    monkeypatch.setattr("bread.verbs.checking.open_model", opening)
    with pytest.raises(bread.errors.UnsupportedModelError, match="opened"):
        bread.check(PROGRAM, data={"y": 1.0}, cores=2, progressbar=False)


# ---- when they end ---------------------------------------------------------------------------------------------


def leave_mark(folder: str) -> None:
    """Leave a mark, and wait for that of the other worker: two calls are then on two workers."""
    Path(folder, str(os.getpid())).touch()
    while len(list(Path(folder).iterdir())) < 2:
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers_of(folder: Path) -> list[int]:
    """Return the processes of two workers, once both have left their marks."""
    start_workers(leave_mark, (str(folder),), 2)
    wait_until(lambda: len(list(folder.iterdir())) == 2)
    return [int(path.name) for path in folder.iterdir()]


@pytest.mark.parametrize("error", [bread.errors.UnsupportedModelError, KeyboardInterrupt])
def test_workers_end_with_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    workers: list[int] = []
    with pytest.raises(error), started_early("math", 2):
        workers += workers_of(tmp_path)
        assert all(map(is_running, workers))
        raise error("refused")
    assert not any(map(is_running, workers))


def test_workers_of_a_check_that_ends_well_stay_for_the_next(tmp_path: Path) -> None:
    with started_early("math", 2):
        workers = workers_of(tmp_path)
    assert all(map(is_running, workers))
    stop_workers()
    assert not any(map(is_running, workers))


def test_a_refused_model_leaves_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workers: list[int] = []

    def opening(*_: Any) -> Any:
        workers.extend(workers_of(tmp_path))
        raise bread.errors.UnsupportedModelError("refused")

    monkeypatch.setattr("bread.verbs.checking.open_model", opening)
    with pytest.raises(bread.errors.UnsupportedModelError, match="refused"):
        bread.check(PROGRAM, data={"y": 1.0}, cores=2, progressbar=False)
    assert len(set(workers)) == 2
    assert not any(map(is_running, workers))
