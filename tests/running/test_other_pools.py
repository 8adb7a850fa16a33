"""Checks on workers of MPI and of Ray, where they are installed: what one process gives, bit by bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SCRIPT = """
import os
import numpy as np
import bread
from tests.models.reference import HMCKernel, NormalMean
from bread.report.container import read_group

MODEL = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=3))
SETTINGS = dict(simulate_from="prior", simulations=6, chains=4, tune=10, draws=8, n_temperatures=[8, 16],
                random_seed=3, progressbar=False)

def weights(report):
    return [read_group(report, name)["log_weight"].values for name in ("forward", "reverse")]

def process(_):
    return os.getpid()

def compare(pool):
    others = set(pool.map(process, range(8))) - {os.getpid()}
    assert others, "no other process works"
    report = bread.check(MODEL, executor=pool, **SETTINGS)
    for found, wanted in zip(weights(report), weights(bread.check(MODEL, cores=1, **SETTINGS)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    print("equal")
"""
MPI = """
if __name__ == "__main__":
    from mpi4py.futures import MPIPoolExecutor
    with MPIPoolExecutor() as pool:
        compare(pool)
"""
RAY = """
if __name__ == "__main__":
    from ray.util.multiprocessing import Pool
    with Pool(2) as pool:
        compare(pool)
"""


def printed(tmp_path: Path, code: str, command: list[str]) -> str:
    (tmp_path / "script.py").write_text(SCRIPT + code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_workers_of_mpi(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if mpiexec is None:
        pytest.skip("mpiexec is not installed")
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures"]
    assert "equal" in printed(tmp_path, MPI, command)


def test_two_workers_of_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    assert "equal" in printed(tmp_path, RAY, [sys.executable])
