"""Seconds of `bread.look` at draws of NUTS on hard PyMC models: python benchmarks/first_look_seconds.py [MODEL ...].

Draws of ``pm.sample`` (4 chains of 500) are kept in ``--folder``. Each look is the second, in a process of its own:
compiled code comes from the cache. Processor time is given beside wall time, for machines in use.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import hard_posteriors
import numpy as np
import pymc as pm

import bread


def sample(name: str, file: Path) -> None:
    with hard_posteriors.MODELS[name]() as model:
        draws = pm.sample(500, tune=500, chains=4, cores=1, random_seed=1, progressbar=False)
    arrays = {variable.name: np.asarray(draws["posterior"][variable.name].values) for variable in model.free_RVs}
    np.savez(file, **arrays)


def look(name: str, file: Path) -> str:
    model, draws = hard_posteriors.MODELS[name](), dict(np.load(file))
    bread.verdict  # noqa: B018 - what reads a report is imported here
    began, began_processor = time.perf_counter(), time.process_time()
    report = bread.look(model, posterior=draws, progressbar=False)
    seconds, processor = time.perf_counter() - began, time.process_time() - began_processor
    verdict = bread.verdict(report)
    p_value = f"{verdict.direct_p_value:.2g}"
    return f"| {name} | {seconds:.1f} | {processor:.1f} | {verdict.status} | {p_value} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(hard_posteriors.MODELS))
    parser.add_argument("--folder", type=Path, default=Path("first_look_draws"))
    parser.add_argument("--task", choices=("sample", "look"), help="what a process of its own does")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.task is not None:
        file = options.folder / f"{options.names[0]}.npz"
        if options.task == "sample":
            sample(options.names[0], file)
        else:
            print(look(options.names[0], file))
        return
    options.folder.mkdir(exist_ok=True)
    print("| model | seconds | of a processor | status | p |\n|---|---|---|---|---|")
    for name in options.names:
        command = [sys.executable, __file__, name, "--folder", str(options.folder), "--task"]
        has_draws = (options.folder / f"{name}.npz").exists()
        for task in ["look", "look"] if has_draws else ["sample", "look", "look"]:
            done = subprocess.run([*command, task], env=os.environ, capture_output=True, text=True, check=False)
        print(done.stdout.strip() or f"| {name} | {done.stderr.strip().splitlines()[-1]} |", flush=True)


if __name__ == "__main__":
    main()
