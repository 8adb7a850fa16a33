"""What a check costs, as a multiple of the fit: python benchmarks/check_over_fit.py [NAME ...] [--json FILE].

One row a model of `ordinary_models.py`, in a process of its own: `pm.sample` with its defaults, then `bread.check` of
its draws, with defaults too. Seconds are wall time: the table begins with the machine's load. Gradients of the fit are
its leapfrog steps, those of tuning among them. Megabytes are peaks of the process and the largest of its workers.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
from hard_models import read_row
from measuring import SEED, load, machine
from ordinary_models import MODELS

import bread

FOUND = ("path", "T", "R", "V", "V_limit", "status", "phases")
COLUMNS = ("model", "dim", "fit s", "check s", "ratio", "gradients", "MB fit", "MB check", *FOUND)


def measure(name: str, max_seconds: float, cores: int) -> dict[str, Any]:
    """Return the row of a model."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    model = MODELS[name](np.random.default_rng(SEED))
    began = time.perf_counter()
    with model:
        draws = pm.sample(random_seed=SEED, cores=cores, progressbar=False, discard_tuned_samples=False)
    seconds, memory = time.perf_counter() - began, _megabytes()
    steps = sum(int(draws[group]["n_steps"].sum()) for group in ("sample_stats", "warmup_sample_stats"))
    began = time.perf_counter()
    report = bread.check(
        model, posterior=draws, random_seed=SEED, cores=cores, max_seconds=max_seconds, progressbar=False
    )
    spent = time.perf_counter() - began
    found = read_row(report)
    return {
        "model": name, "dim": sum(np.size(value) for value in model.initial_point().values()), "fit s": round(seconds),
        "check s": round(spent), "ratio": round(spent / seconds, 1), "gradients": round(found["gradients"] / steps, 2),
        "MB fit": memory, "MB check": _megabytes(), **{key: found[key] for key in FOUND},
    }  # fmt: skip


def _megabytes() -> int:
    """Return the peak memory of this process, and of the largest of its workers."""
    return sum(resource.getrusage(whose).ru_maxrss for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) >> 10


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--max-seconds", type=float, default=600.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", action="store_true", help="measure here, and print a line of JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.names[0], options.max_seconds, options.cores), default=str))
        return
    print(machine())
    print(f"| {' | '.join(COLUMNS)} | load |\n{'|---' * (len(COLUMNS) + 1)}|")
    rows = []
    for name in options.names:
        command = [sys.executable, __file__, name, "--one", "--cores", str(options.cores)]
        done = subprocess.run(
            [*command, "--max-seconds", str(options.max_seconds)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"| {name} | {done.stderr.strip().splitlines()[-1]} |", flush=True)
            continue
        row = json.loads(done.stdout.strip().splitlines()[-1])
        rows.append(row)
        print(f"| {' | '.join(str(row[column]) for column in COLUMNS)} | {load()} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
