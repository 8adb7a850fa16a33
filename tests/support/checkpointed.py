"""Checks with a checkpoint that are killed again and again, in processes of their own, and what their reports hold.

Run as a program (FOLDER KIND CORES N_KILLS WHOM) it imports bread once, forks a process for each attempt, and kills
that (WHOM "parent"), one of its workers ("worker"), or it during a write ("write"), at moments from a fixed seed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
MOST_ATTEMPTS = 400
INSTRUCTIONS = 5  # of SQLite's virtual machine between two questions whether to kill


def content(report: Any) -> str:
    """Return a digest of everything in a report but times, and the number of cores."""
    from bread.digests import digest
    from bread.report.container import group_names, read_attributes, read_group

    attributes = {name: value for name, value in read_attributes(report).items() if name != "created_at"}
    attributes["settings"] = {**json.loads(attributes["settings"]), "cores": None}
    groups = {}
    for name in group_names(report):
        dataset = read_group(report, name)
        assert dataset is not None
        groups[name] = {str(one): dataset[one].values for one in dataset.variables if "seconds" not in str(one)}
    return digest([attributes, groups])


def arguments(kind: str) -> dict[str, Any]:
    """Return the arguments of a short check."""
    from tests.support import child_checks

    sizes = {"simulations": 3, "n_temperatures": [8, 16], "random_seed": 5}
    return {**child_checks.arguments(kind), **sizes}


def _run_once(folder: str, kind: str, cores: int, kill_at: int | None) -> None:
    """Run the check in this process, which kills itself at the given moment of a write."""
    import bread

    if kill_at is not None:
        _kill_at_instruction(kill_at)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        report = bread.check(cores=cores, checkpoint=folder, **arguments(kind))
    said = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
    Path(folder, "outcome.json").write_text(json.dumps({"content": content(report), "warnings": said}))


def _kill_at_instruction(number: int) -> None:
    connect, left = sqlite3.connect, [number]

    def tick() -> int:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def connect_and_count(*arguments: Any, **named: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*arguments, **named)
        database.set_progress_handler(tick, INSTRUCTIONS)
        return database

    sqlite3.connect = connect_and_count  # type: ignore[assignment]


def _forked(run: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        run()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _kill_later(pid: int, seconds: float, whom: str) -> None:
    from tests.support.child_checks import workers_of

    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.002)
    workers = [one for one in workers_of(os.getsid(0)) if one != pid]  # a fork has the command line of its leader
    for victim in workers[:1] if whom == "worker" else [pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)


def main(folder: str, kind: str, cores: int, n_kills: int, whom: str) -> None:
    """Kill a check until it has been killed so often, then let it end; print what came out."""
    import bread
    import tests.models.reference

    assert bread.check is not None and tests.models.reference is not None  # loaded once, before the forks

    rng, n_killed = np.random.default_rng(1), 0
    began = time.monotonic()
    status = os.waitpid(_forked(lambda: _run_once(f"{folder}-whole", kind, cores, None)), 0)[1]
    seconds = time.monotonic() - began
    assert status == 0
    whole = json.loads(Path(f"{folder}-whole", "outcome.json").read_text())
    longest, outcome = seconds, Path(folder, "outcome.json")
    for attempt in range(MOST_ATTEMPTS):
        is_killed = attempt < n_kills
        kill_at = int(rng.integers(1, 400)) if is_killed and whom == "write" else None
        began = time.monotonic()
        pid = _forked(lambda kill_at=kill_at: _run_once(folder, kind, cores, kill_at))
        if is_killed and whom != "write":
            _kill_later(pid, float(rng.uniform(0.0, longest)), whom)
        _, status = os.waitpid(pid, 0)
        n_killed += is_killed and (whom == "worker" or os.WIFSIGNALED(status))
        if not is_killed:
            break
        if outcome.exists():  # it was quicker: begin anew with what is left of the kills, and kill sooner
            longest = min(longest, time.monotonic() - began)
            found = json.loads(outcome.read_text())
            assert found["content"] == whole["content"], found
            _forget(Path(folder))
    found = json.loads(outcome.read_text())
    print(json.dumps({"whole": whole, "found": found, "n_killed": n_killed}))


def _forget(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        path.unlink()
    folder.rmdir()


def killed(folder: Path, kind: str, cores: int, n_kills: int, whom: str) -> dict[str, Any]:
    """Run this file as a program; return what it prints."""
    done = subprocess.run(
        [sys.executable, __file__, str(folder), kind, str(cores), str(n_kills), whom], cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
