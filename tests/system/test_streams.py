"""Checks where nobody reads what they say, and in processes of `multiprocessing`: the report is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpointed import ROOT

SCRIPT = """
import multiprocessing, os, sys, threading
import numpy as np

def check(file):
    import bread
    from tests.models.reference import HMCKernel, NormalMean
    report = bread.check(
        NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=3)), simulate_from="prior", path="prior",
        tune_on="shared", simulations=3, chains=2, tune=10, draws=8, n_temperatures=[4, 8], random_seed=3, cores=2,
    )
    open(file, "w").write(bread.verdict(report).status)

def leave_no_reader():
    read, write = os.pipe()
    os.close(read)
    for number in (1, 2):
        os.dup2(write, number)

def close_numbers():
    os.close(1)
    os.close(2)
    sys.stdout = sys.stderr = None

def close_files():
    sys.stdout.close()
    sys.stderr.close()

if __name__ == "__main__":
    kind, file = sys.argv[1:]
    if kind == "process":
        child = multiprocessing.get_context("spawn").Process(target=check, args=(file,))
        child.start()
        child.join(60)  # idle workers wait for five minutes
        sys.exit(child.exitcode is None and child.kill() is None)
    elif kind == "pool":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(check, (file,))
    else:
        {"gone": leave_no_reader, "none": close_numbers, "closed": close_files}[kind]()
        check(file)
"""


@pytest.mark.parametrize("kind", ["gone", "none", "closed", "process", "pool"])
@pytest.mark.parametrize("fork", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_check_ends_with_its_report(tmp_path: Path, kind: str, fork: str) -> None:
    script, file = tmp_path / "script.py", tmp_path / "status"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, kind, file], timeout=300, check=False, capture_output=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAD_FORK": fork},
    )  # fmt: skip
    assert file.exists() and file.read_text() == "inconclusive", done.stderr.decode()
    assert done.returncode in (0, 120)  # Python's own, where standard output cannot be flushed at the end
