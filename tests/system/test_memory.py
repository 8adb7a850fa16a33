"""Memory of the largest checks that users run: it grows with what is kept, not with temperatures times chains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# Peaks of this process and of the largest worker, in MiB, before and after the check. A small check comes first: what
# it takes is code, libraries and worker processes.
PROGRAM = """
import json, os, re, sys
from pathlib import Path
import numpy as np
import bread
from tests.models.reference import HMCKernel, NormalMean
from tests.support.child_checks import workers_of

def peak(pid):
    return int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path(f"/proc/{pid}/status").read_text())[1]) / 1024

def peaks():
    workers = workers_of(os.getpid())
    assert len(workers) == 2, workers
    return [peak(os.getpid()), max(map(peak, workers))]

options = json.loads(sys.argv[1])
if options["data"] is None:
    options["model"] = NormalMean(np.array([0.4, 1.9, 1.1]), kernel=HMCKernel(n_leapfrog=2))
sizes = {name: options.pop(name) for name in ("n_temperatures", "chains", "simulations")}
common = dict(path="prior", simulate_from="prior", tune=10, tune_on="shared", draws=16, random_seed=1,
              progressbar=False, cores=2, **options)
bread.check(n_temperatures=16, chains=2, simulations=2, **common)
before = peaks()
report = bread.check(**sizes, **common)
table = bread.summary(report, kind="bounds")
print(json.dumps({"before": before, "after": peaks(), "n": int(table["n_simulations"].iloc[-1])}))
"""


def peaks(kind: str, **sizes: int) -> dict[str, Any]:
    examples = ROOT / "examples"
    stan = {
        "model": str(examples / "eight_schools.stan"), "data": str(examples / "eight_schools.json"), "observed": "y",
        "kernel": "hmc",
    }  # fmt: skip
    options = {**(stan if kind == "stan" else {"data": None}), **sizes}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(options)], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT), "BREAD_FORK": "0"}, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    print(kind, sizes, done.stdout)
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reference", pytest.param("stan", marks=pytest.mark.stan)])
def test_4096_temperatures_16_chains_40_simulations(kind: str) -> None:
    found = peaks(kind, n_temperatures=4096, chains=16, simulations=40)
    assert found["n"] == 40
    growth = [after - before for before, after in zip(found["before"], found["after"], strict=True)]
    # One double for each temperature of each chain of both directions is 40 MiB.
    assert growth[0] < 200 and growth[1] < 50, found


@pytest.mark.study
@pytest.mark.slow
def test_100_000_temperatures_100_chains() -> None:
    """Five chains each way of ten simulations, whose log ratios are 76 MiB: 6 more in the parent were measured."""
    found = peaks("reference", n_temperatures=100_000, chains=5, simulations=10)
    growth = [after - before for before, after in zip(found["before"], found["after"], strict=True)]
    assert growth[0] < 50 and growth[1] < 427, found  # 500 MB
