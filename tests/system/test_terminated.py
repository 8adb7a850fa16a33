"""SIGTERM and a second Ctrl-C end a script as they end other programs; what was finished is in the checkpoint."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from bread.errors import CheckpointWarning
from bread.jobs.interrupts import AGAIN_SECONDS
from bread.jobs.store import Store
from tests.support.checkpointed import ROOT
from tests.support.child_checks import processes_of, wait_until

SCRIPT = """
import sys, numpy as np, bread
from tests.models.reference import HMCKernel, NormalMean
model = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=5))
report = bread.check(
    model, simulate_from="prior", path="prior", tune_on="shared", simulations=4, chains=2, tune=10, draws=16,
    random_seed=1, progressbar=False, cores=int(sys.argv[2]), checkpoint=sys.argv[1], n_temperatures=[4, 10_000_000],
)
print("went on", bread.verdict(report).status, flush=True)
"""


def stopped(
    folder: Path, cores: int, number: int, script: str = SCRIPT, *, again: bool = False
) -> tuple[int, str, str]:
    """Send a signal to a script in its longest phase; return its exit status and what it said.

    A second signal waits until the script says that it hangs: how long the first takes to get there is not known.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(cores)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(lambda: is_written(folder))
        process.send_signal(number)
        if again:
            wait_until(hangs(folder).exists)
            time.sleep(AGAIN_SECONDS + 0.5)
            process.send_signal(number)
        output, errors = process.communicate(timeout=60)
        wait_until(lambda: not processes_of(process.pid))
    finally:
        process.kill()
    return process.returncode, output, errors


def hangs(folder: Path) -> Path:
    """Return the file that says that the script hangs."""
    return folder.with_suffix(".hangs")


def is_written(folder: Path) -> bool:
    """Return whether chains are in the checkpoint; those at many temperatures take an hour."""
    log = folder / "checkpoint.sqlite-wal"
    return log.exists() and log.read_bytes().count(b"task AnnealTask") >= 4


@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_sigterm_ends_a_script_and_leaves_what_was_finished(tmp_path, cores):
    status, output, errors = stopped(tmp_path / "run", cores, signal.SIGTERM)
    assert (status, output) == (-signal.SIGTERM, "")
    assert re.search(r"The same call goes on from the checkpoint", errors) and "Traceback" not in errors
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)  # nothing is damaged
        store = Store(tmp_path / "run", must_exist=True)
    assert len([name for name in store.names() if name.startswith("task AnnealTask")]) >= 2
    store.close()


def test_ctrl_c_leaves_a_report_and_a_second_one_ends_the_script(tmp_path):
    status, output, _ = stopped(tmp_path / "once", 1, signal.SIGINT)
    assert (status, output) == (0, "went on inconclusive\n")
    hanging = (
        "import time, pathlib, bread.report.container\n"
        "def hang(*_): pathlib.Path(sys.argv[1]).with_suffix('.hangs').touch(), time.sleep(600)\n"
        "bread.report.container.to_container = hang\n"
    )
    status, output, errors = stopped(tmp_path / "twice", 1, signal.SIGINT, hanging + SCRIPT, again=True)
    assert (status, output) == (-signal.SIGINT, "")
    assert "Interrupted twice" in errors
