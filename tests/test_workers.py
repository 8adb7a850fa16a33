"""The pool of workers: a worker that is killed, a parent that is killed, calls that are abandoned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import cloudpickle
import loky.process_executor
import pytest

from bread.errors import BreadError
from bread.workers import MOST_RESTARTS, call_on_workers, stop_workers
from tests.support.child_checks import wait_until

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test file


@pytest.fixture(autouse=True)
def new_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start anew in this process, as they do where other threads run; tests/test_forking.py has the others."""
    monkeypatch.setenv("BREAD_FORK", "0")


def square(folder: str, number: int) -> int:
    """Kill this process at the first call with 3."""
    mark = Path(folder, "killed")
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def die(folder: str, number: int) -> int:
    Path(folder, f"{number}-{time.monotonic_ns()}").touch()
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def fail(number: int) -> int:
    return 1 // number


def wait(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def grow(number: int) -> int:
    """Keep 400 MB at the second call of this worker, and return who it is."""
    kept = vars(sys).setdefault("kept_by_test", [])  # globals of this function travel with each call
    kept.append(b"x" * (4 * 10**8 if len(kept) == 1 else 1))
    time.sleep(0.6)  # loky looks each second
    return os.getpid()


@pytest.mark.parametrize("is_on", [True, False])
def test_a_worker_may_grow(is_on: bool) -> None:
    """Loky's own rule would end it, which would compile a model again. The negative control puts that rule back."""
    pytest.importorskip("psutil")
    stop_workers()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not is_on:
                list(call_on_workers(put_back_rule, [()], 1))
            found = {pid for _, pid in call_on_workers(grow, [(number,) for number in range(6)], 1)}
    finally:
        stop_workers()
    assert (len(found) == 1) == is_on


def put_back_rule() -> None:
    vars(loky.process_executor)["_USE_PSUTIL"] = True


def test_a_killed_worker_costs_nothing_but_time(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"A worker process was killed.*run again.*fewer cores"):
        found = list(call_on_workers(square, [(str(tmp_path), number) for number in range(8)], 2))
    assert (tmp_path / "killed").exists()
    assert sorted(found) == [(number, number**2) for number in range(8)]  # each once


def test_a_call_that_kills_every_worker_is_an_error_in_the_end(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="killed"), pytest.raises(BreadError, match=r"killed 4 times.*fewer cores"):
        list(call_on_workers(die, [(str(tmp_path), 3)], 2))
    assert len(list(tmp_path.iterdir())) == MOST_RESTARTS + 1


def test_an_error_of_a_call_is_not_run_again() -> None:
    with pytest.raises(ZeroDivisionError):
        list(call_on_workers(fail, [(1,), (0,), (2,)], 2))


def test_abandoned_calls_are_stopped(tmp_path: Path) -> None:
    def poll() -> None:
        if len(list(tmp_path.iterdir())) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(call_on_workers(wait, [(str(tmp_path),)] * 2, 2, poll))
    assert len(list(tmp_path.iterdir())) == 2
    assert not any(is_running(int(worker.name)) for worker in tmp_path.iterdir())
    assert not manager_threads()  # who ends workers may fork: a report that is written meanwhile is locked


def manager_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "ExecutorManager" in type(thread).__name__]


PARENT = """
import os, sys, time
from pathlib import Path
from bread.workers import call_on_workers

def wait(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    list(call_on_workers(wait, [(sys.argv[1],)] * 2, 2))
"""


STARTING = """
import os, signal, threading, time
from bread.workers import start_workers

def send():
    time.sleep(0.3)
    for _ in range(50):  # all the time that a worker takes to import what it needs
        os.killpg(0, signal.SIGINT)
        time.sleep(0.05)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda number, frame: None)
    thread = threading.Thread(target=send)
    thread.start()
    start_workers(pow, (2, 3), 2)
    thread.join()
"""


def test_workers_that_are_still_starting_leave_the_interrupt_to_the_parent() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", STARTING], env=environment, capture_output=True, text=True, start_new_session=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("fork", ["0", "1"])
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path, fork: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "BREAD_FORK": fork}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env=environment, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert all(map(is_running, workers))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not any(map(is_running, workers)))
