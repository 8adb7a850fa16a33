"""What a user sees when a process is stopped or killed, or when a folder, a compiler or a home is missing: a table.

Each case runs a check in a process of its own and brings the fault about; the table says what must be seen. Interrupts
at random moments are in test_interrupts, damaged entries of the cache in backends/stan/test_cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import xarray as xr

from bread.scratch import PREFIX
from tests.support.child_checks import ChildChecks, child_checks, processes_of, wait_for_work, wait_until
from tests.support.stan_conjugate import opened

ROOT = Path(__file__).parents[2]
PROGRAM, DATA = ROOT / "examples" / "eight_schools.stan", ROOT / "examples" / "eight_schools.json"
QUICK = (
    "--observed", "y", "--path", "prior", "--simulations", "4", "--chains", "2", "--tune", "10", "--draws", "0",
    "--no-progress",
)  # fmt: skip

# ---- processes -----------------------------------------------------------------------------------------------


SETTLED = 4.0  # CPU seconds of each worker of a check without end: half of them are imports and what is to be kept


def in_its_tasks(child: ChildChecks, seconds: float = SETTLED) -> None:
    """Start a check and wait until each of its workers has worked so long."""
    child.begin()
    wait_for_work(child.process.pid, seconds)


def stop(number: signal.Signals, is_group: bool) -> Callable[[Path], dict[str, Any]]:
    def run(folder: Path) -> dict[str, Any]:
        with child_checks("hours", 2) as child:
            in_its_tasks(child)
            (os.killpg if is_group else os.kill)(child.process.pid, number)
            outcome = {"status": child.process.wait(60)} if number == signal.SIGTERM else child.outcome()
            errors = child.close()
            wait_until(lambda: not child.processes())
        return {**outcome, "stderr": errors}

    return run


def kill_the_parent(folder: Path) -> dict[str, Any]:
    with child_checks("hours", 2, TMPDIR=str(folder)) as child:
        in_its_tasks(child)
        os.kill(child.process.pid, signal.SIGKILL)
        wait_until(lambda: not child.processes())
        left_over = len(list(folder.glob(f"{PREFIX}*")))
    with child_checks("reference", 2, TMPDIR=str(folder)) as child:
        child.begin()
        return {**child.outcome(), "left over": left_over, "in the end": len(list(folder.glob(f"{PREFIX}*")))}


def kill_a_worker(folder: Path) -> dict[str, Any]:
    with child_checks("seconds", 2) as child:
        child.begin()
        usual = child.outcome()
        in_its_tasks(child, 0.1 * usual["seconds"])  # workers of the first check go on: they need no imports
        os.kill(child.workers()[0], signal.SIGKILL)
        outcome = child.outcome()
    return {**outcome, "as usual": outcome["log_weights"] == usual["log_weights"]}


def kill_every_worker(folder: Path) -> dict[str, Any]:
    with child_checks("hours", 2) as child:
        in_its_tasks(child)
        for _ in range(4):
            wait_until(lambda: len(child.workers()) == 2)
            workers = child.workers()
            time.sleep(1)
            os.kill(workers[0], signal.SIGKILL)
            wait_until(lambda workers=workers: not set(workers) & set(child.workers()))
        return child.outcome()


# ---- folders, compiler, home -----------------------------------------------------------------------------------


# Makes the superuser subject to the modes of files: drops CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER.
WITHOUT_POWER = """
import ctypes, os, sys
for capability in (1, 2, 3):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def command_line(*arguments: Any, has_power: bool = True, **environment: str | None) -> subprocess.Popen:
    """Start `bread check` on eight schools; a variable of None is not set."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000", **environment}
    start = [] if has_power else ["-c", WITHOUT_POWER]
    return subprocess.Popen(
        [sys.executable, *start, "-m", "bread", "check", str(PROGRAM), str(DATA), *QUICK, *map(str, arguments)],
        env={name: value for name, value in variables.items() if value is not None}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def seen(process: subprocess.Popen) -> dict[str, Any]:
    output, errors = process.communicate(timeout=600)
    return {"status": process.returncode, "output": output, "stderr": errors}


def make_read_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
        path.chmod(0o555 if path.is_dir() else 0o444)


def with_cache(name: str, *, is_held: bool, is_read_only: bool = False, **environment: str | None) -> Any:
    """Return a case whose cache folder has this name and holds the program, or nothing."""

    def run(folder: Path) -> dict[str, Any]:
        cache = folder / name
        cache.mkdir()
        if is_held:
            built = opened(str(PROGRAM), str(DATA), observed="y").library.path.parent
            shutil.copytree(built, cache / built.name)
        if is_read_only:
            make_read_only(cache)
        variables = {"BREAD_CACHE": str(cache), **environment}
        return seen(command_line("-T", "8", "--cores", "1", has_power=not is_read_only, **variables))

    return run


def two_first_builds(folder: Path) -> dict[str, Any]:
    """Two processes compile one program at once, for the first time, in a folder with spaces and other scripts."""
    cache = folder / "à la carte 缓存"
    variables = {"BREAD_CACHE": str(cache), "BREAD_PRECOMPILE": None}
    both = [command_line("-T", "8", "--cores", "1", **variables) for _ in range(2)]
    first, second = (seen(process) for process in both)
    built = sorted(path.parent.name.partition("-")[0] for path in cache.glob("*/complete.json"))
    left_over = [path.name for path in cache.glob("building/*")]
    return {"first": first, "second": second, "cache": built, "left over": left_over}


def file_as_cache(folder: Path) -> dict[str, Any]:
    (folder / "cache").write_text("no folder")
    return seen(command_line("-T", "8", BREAD_CACHE=str(folder / "cache")))


COMPILER = """#!/bin/sh
case "$1" in --version|-dumpmachine) echo g++ that sleeps;; *) exec sleep 600;; esac
"""


def stop_while_compiling(folder: Path) -> dict[str, Any]:
    compiler = folder / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    process = command_line("-T", "8", CXX=str(compiler), BREAD_CACHE=str(folder / "cache"))
    wait_until(lambda: len(list(folder.glob("cache/building/*"))) >= 2)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    return seen(process)


def terminate_the_command_line(folder: Path) -> dict[str, Any]:
    output = folder / "report.nc"
    process = command_line("-T", "4", "-T", "10000000", "--cores", "2", "--output", output)
    wait_for_work(process.pid, 2 * SETTLED)  # its workers import while the parent fits
    process.send_signal(signal.SIGTERM)
    result = seen(process)
    with xr.open_datatree(output) as report:
        result["is_interrupted"] = int(report.attrs["is_interrupted"])
    wait_until(lambda: not processes_of(process.pid))
    return {**result, "files": sorted(os.listdir(folder))}


# ---- the table -----------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A fault: what happens, how to bring it about, and what must be seen in the outcome, written as JSON."""

    what: str
    run: Callable[[Path], dict[str, Any]]
    sees: tuple[str, ...]
    mark: str = ""  # "slow"; "study" where a case beside it shows nearly the same


INTERRUPTED = (
    '"outcome": "report"', '"is_interrupted": 1', "Interrupted: the report holds what was finished", '"stderr": ""'
)  # fmt: skip
TERMINATED = (f'"status": {-signal.SIGTERM}', '"stderr": ""')
DONE = ('"status": [034]', r"converged:|inconclusive:|mismatch:", '"stderr": ""')
ERROR = ('"status": 1', r'"stderr": "error: [^\\]*\\n"', '"output": ""')  # one line, and nothing else

PROCESSES = (
    Case("Ctrl-C at the terminal, two cores", stop(signal.SIGINT, True), INTERRUPTED),
    Case("SIGINT to the process alone, two cores", stop(signal.SIGINT, False), INTERRUPTED, mark="study"),
    Case("SIGTERM, two cores", stop(signal.SIGTERM, False), TERMINATED, mark="slow"),
    Case("SIGTERM to all of them, as from a batch system", stop(signal.SIGTERM, True), TERMINATED, mark="study"),
    Case(
        "kill -9 of the process: no worker stays, the next check removes the folder",
        kill_the_parent, ('"outcome": "report"', '"left over": 1', '"in the end": 0'),
        mark="slow",
    ),
    Case(
        "kill -9 of a worker: the report is complete and bit-equal",
        kill_a_worker,
        ('"outcome": "report"', '"is_interrupted": 0', "A worker process was killed", '"as usual": true'),
        mark="slow",
    ),
    Case(
        "kill -9 of every worker: an error that holds what was finished",
        kill_every_worker,
        ('"outcome": "error"', "Worker processes were killed 4 times.*fewer cores", '"report": {"outcome": "report"'),
        mark="slow",
    ),
)  # fmt: skip

FOLDERS = (
    Case(
        "Ctrl-C while compiling", stop_while_compiling,
        ('"status": 130', '"stderr": "error: Interrupted while the model was read and compiled: nothing was computed.'),
        mark="slow",
    ),
    Case(
        "SIGTERM to the command line: the report is written", terminate_the_command_line,
        (TERMINATED[0], "inconclusive:", '"is_interrupted": 1', r'"files": \["report.nc"\]', '"stderr": ""'),
        mark="slow",
    ),
    Case(
        "a read-only cache that holds the program", with_cache("c", is_held=True, is_read_only=True), DONE,
        mark="slow",
    ),
    Case(
        "an empty read-only cache", with_cache("c", is_held=False, is_read_only=True),
        (*ERROR, r"cannot be written \(Permission denied\).*BREAD_CACHE to a folder"), mark="slow",
    ),
    Case(
        "a file in place of the cache", file_as_cache,
        (*ERROR, r"cannot be written \(Not a directory\).*BREAD_CACHE to a folder"),
    ),
    Case("spaces and other scripts in the cache", with_cache("à la carte 缓存", is_held=True), DONE, mark="study"),
    Case(
        "two first builds at once, in such a cache", two_first_builds,
        (
            '"first": {"status": [034], .*"stderr": ""}, "second"',
            '"second": {"status": [034], .*"stderr": ""}, "cache"',
            r'"cache": \["driver", "model"\], "left over": \[\]',
        ),
        mark="slow",
    ),
    Case("no compiler, program compiled before", with_cache("c", is_held=True, PATH="/nonexistent"), DONE, mark="slow"),
    Case(
        "no compiler, program not compiled before", with_cache("c", is_held=False, PATH="/nonexistent"),
        (*ERROR, r"No C\+\+ compiler was found.*install one"), mark="slow",
    ),
    Case("HOME not set", with_cache("c", is_held=True, HOME=None), DONE, mark="study"),
)  # fmt: skip


def parameters(cases: tuple[Case, ...], *marks: pytest.MarkDecorator) -> Any:
    own = {"": (), "slow": (pytest.mark.slow,), "study": (pytest.mark.study,)}
    return [pytest.param(one, id=one.what, marks=marks + own[one.mark]) for one in cases]


@pytest.mark.parametrize("case", [*parameters(PROCESSES), *parameters(FOLDERS, pytest.mark.stan)])
def test_what_a_user_sees(case: Case, tmp_path: Path) -> None:
    outcome = json.dumps(case.run(tmp_path), ensure_ascii=False)
    for pattern in case.sees:
        assert re.search(pattern, outcome), f"{pattern}\n{outcome}"
    assert "Traceback" not in outcome
