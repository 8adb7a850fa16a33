"""Checks in a process of their own, for tests that interrupt and kill it: a small table of models, and what comes out.

The child (this file, run with KIND and CORES) runs a check for every line on its standard input and answers with "go",
when it begins, and one line of JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
QUICK = {
    "path": "prior", "tune_on": "shared", "simulations": 4, "chains": 2, "tune": 10, "init_steps": 5, "draws": 16,
    "random_seed": 1, "progressbar": False,
}  # fmt: skip
WAIT_SECONDS = 120.0  # a process that has not ended by then hangs


def arguments(kind: str) -> dict[str, Any]:
    """Return the arguments of a check of a second or so."""
    if kind == "stan":
        examples = ROOT / "examples"
        return {
            "model": str(examples / "eight_schools.stan"), "data": str(examples / "eight_schools.json"),
            "observed": "y", "n_temperatures": 256, **QUICK,
        }  # fmt: skip
    if kind == "pymc":
        import pymc as pm

        with pm.Model() as model:
            mu = pm.Normal("mu", 0.5, 2)
            pm.Normal("y", mu, 1, observed=[0.4, 1.9, 1.1])
        return {"model": model, "simulate_from": "prior", "n_temperatures": 8, **QUICK}
    import numpy as np

    from tests.models.reference import HMCKernel, NormalMean

    model = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=5))
    sizes = {"reference": 64, "seconds": 20_000, "hours": [4, 10_000_000]}[kind]
    return {"model": model, "simulate_from": "prior", "n_temperatures": sizes, **QUICK}


def describe(report: Any) -> dict[str, Any]:
    """Return what is in a report, after it was written, read and put into words; raise if it is not valid."""
    import numpy as np
    import xarray as xr

    import bread
    from bread.report.container import read_attributes, read_group

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.nc")
        report.to_netcdf(path)
        with xr.open_datatree(path) as opened:
            status = bread.verdict(opened).status
    bread.summary(report)
    digest = hashlib.sha256()
    for name, dataset in (("forward", read_group(report, "forward")), ("reverse", read_group(report, "reverse"))):
        if dataset is not None:
            digest.update(name.encode() + np.ascontiguousarray(dataset["log_weight"].values).tobytes())
    return {
        "outcome": "report", "is_interrupted": int(read_attributes(report)["is_interrupted"]), "status": status,
        "log_weights": digest.hexdigest(),
    }  # fmt: skip


def child(kind: str, cores: int) -> None:
    """Run checks as asked by lines on standard input."""
    import bread
    import bread.errors

    options = arguments(kind)
    for _ in sys.stdin:
        heard: list[str] = []
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("go", flush=True)
            began = time.monotonic()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                report = bread.check(cores=cores, **options)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            seconds = time.monotonic() - began
            heard = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
            outcome = {**describe(report), "seconds": seconds}
        except bread.errors.BreadError as error:
            outcome = {"outcome": "error", "message": str(error), "report": describe(error.report)}
        except KeyboardInterrupt as interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            outcome = {"outcome": "KeyboardInterrupt", "message": str(interrupt)}
        print(json.dumps({**outcome, "warnings": heard}), flush=True)


def processes_of(session: int) -> list[int]:
    """Return the processes of a session that live."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if status[0] != "Z" and int(status[3]) == session:
                found.append(int(pid))
    return found


def workers_of(session: int) -> list[int]:
    """Return the workers of a session: loky's, or forks of its leader, which have its command line."""
    found = []
    for pid in set(processes_of(session)) - {session}:
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"popen_loky_posix" in command or command == Path(f"/proc/{session}/cmdline").read_bytes():
                found.append(pid)
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, 0 if it has ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def wait_for_work(session: int, seconds: float) -> None:
    """Wait until two workers of a session have each worked so long: CPU seconds from now, or from their start."""
    before: dict[int, float] = {pid: cpu_seconds(pid) for pid in workers_of(session)}

    def have_worked() -> bool:
        workers = workers_of(session)
        return len(workers) == 2 and all(cpu_seconds(pid) - before.get(pid, 0.0) >= seconds for pid in workers)

    wait_until(have_worked)


class ChildChecks:
    """The parent's side."""

    def __init__(self, kind: str, cores: int, **environment: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environment}
        self.process = subprocess.Popen(
            [sys.executable, __file__, kind, str(cores)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
            start_new_session=True,
        )  # fmt: skip

    def begin(self) -> None:
        """Start a check; return when it has begun."""
        assert self.process.stdin is not None
        self.process.stdin.write("check\n")
        self.process.stdin.flush()
        line = self._line()
        assert line == "go", line

    def outcome(self) -> dict[str, Any]:
        """Return what came out of the check that was started last."""
        return dict(json.loads(self._line()))

    def close(self) -> str:
        """End the child; return what it wrote to standard error."""
        _, errors = self.process.communicate(timeout=WAIT_SECONDS)
        return errors

    def processes(self) -> list[int]:
        """Return the processes of the child's session, itself among them."""
        return processes_of(self.process.pid)

    def workers(self) -> list[int]:
        """Return the child's workers."""
        return workers_of(self.process.pid)

    def _line(self) -> str:
        assert self.process.stdout is not None
        timer = threading.Timer(WAIT_SECONDS, self.process.kill)
        timer.start()
        line = self.process.stdout.readline().strip()
        timer.cancel()
        if not line:
            raise AssertionError(f"the child ended with {self.process.wait()}: {self.close()}")
        return line


@contextlib.contextmanager
def child_checks(kind: str, cores: int, **environment: str) -> Iterator[ChildChecks]:
    """Give a child; kill it and what it started in the end."""
    child = ChildChecks(kind, cores, **environment)
    try:
        yield child
    finally:
        for pid in child.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.process.communicate(timeout=WAIT_SECONDS)


def wait_until(condition: Any, seconds: float = WAIT_SECONDS) -> None:
    """Wait until a condition holds; fail if it does not."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.02)


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]))
