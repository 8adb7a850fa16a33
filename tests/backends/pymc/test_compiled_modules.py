"""Workers with a cold cache compile nothing that their parent has compiled, and wait for no lock of another process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import cache
from pathlib import Path

import cloudpickle
import pytensor
import pytest

pm = pytest.importorskip("pymc")
pytestmark = pytest.mark.pymc

from pytensor.compile.compilelock import lock_ctx  # noqa: E402

from bread.backends.base import OpenOptions  # noqa: E402
from bread.backends.pymc import PyMCModel, compiled_modules, open_model  # noqa: E402
from bread.jobs.executors import PoolExecutor  # noqa: E402
from bread.workers import stop_workers  # noqa: E402
from tests.support.compile_folders import Loaded, Look, load, log_ratios, machine_of_two  # noqa: E402
from tests.support.pymc_models import MODELS  # noqa: E402

LOCK_SECONDS = 5  # after which PyTensor gives a lock up


@cache
def schools() -> PyMCModel:
    return open_model(MODELS["schools_centred"](), OpenOptions())


@pytest.fixture
def meeting(tmp_path: Path) -> str:
    folder = tmp_path / "meeting"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def new_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start workers of bread's own pool anew, not forked, which would not wait long for a lock."""
    monkeypatch.setenv("BREAD_FORK", "0")
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    monkeypatch.setenv("PYTENSOR_FLAGS", ",".join(filter(None, (flags, f"compile__timeout={LOCK_SECONDS}"))))
    stop_workers()
    yield
    stop_workers()


def on(pool: Executor, meeting: str) -> list[Loaded]:
    pickled = cloudpickle.dumps(schools())
    calls = [pool.submit(load, pickled, meeting) for _ in range(2)]
    found = [call.result() for call in calls]
    assert len({one.process for one in found} - {os.getpid()}) == 2
    return found


def test_local_workers_compile_nothing_while_another_process_holds_the_lock(new_workers: None, meeting: str) -> None:
    with PoolExecutor(schools(), 2) as pool, lock_ctx():
        found = [result for _, result in pool.run([Look(meeting)] * 2)]
    assert len({one.process for one in found}) == 2
    assert [one.n_compiled for one in found] == [0, 0]
    assert len({one.folder for one in found} | {str(pytensor.config.compiledir)}) == 3
    assert {one.log_ratio for one in found} == {log_ratios(schools())}


def test_two_workers_of_a_cold_machine_compile_nothing(tmp_path: Path, meeting: str) -> None:
    with machine_of_two(tmp_path / "cold") as pool:
        found = on(pool, meeting)
    assert [one.n_compiled for one in found] == [0, 0]
    assert len({one.folder for one in found}) == 1
    assert {one.log_ratio for one in found} == {log_ratios(schools())}


def test_what_was_not_sent_is_compiled(tmp_path: Path, meeting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_modules, "MOST_MODULES", 0)
    with machine_of_two(tmp_path / "cold") as pool:
        found = on(pool, meeting)
    assert sum(one.n_compiled for one in found) > 1  # of both together: they share a folder, and its lock
    assert {one.log_ratio for one in found} == {log_ratios(schools())}
