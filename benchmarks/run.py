"""Rerun the benchmarks and print their tables: all of them, or those named on the command line.

others      what users would run instead: simuk, pm.sample_smc, bridge sampling, BlackJAX's tempered SMC
2016        the studies of Grosse, Ancha & Roy (2016), beside their figures
errors      V against gradients and seconds, for each path and engine
cores       two cores against one, by the local pool and by dask, with equal results
traffic     what a check on a cluster sends
engine      the engine's own overhead over a bare loop of the same step method
jax         chains of PyMC on JAX: time a gradient over PyMC's own, memory
stan        Stan: time per leapfrog of annealed chains over one gradient
phases      CPU seconds of every phase of a whole check, as shares
start-up    seconds from the call of `bread.check` to the first finished chain, cold and warm compile cache
stan-start  Stan: seconds to the first finished chain, build included, and from the build cache

With --long these take more seeds, fits, data sets and temperatures, and hours; and the long tables follow:

schedules   gradient evaluations to B <= 1 nat, adaptive against fixed schedules
stan-steps  Stan: CPU seconds of each step of a build, by setting
paths       gradient evaluations to 1 nat along every path, on all models
whole       whole checks of these models: seconds by phase, what surrounds the annealing, evidence beside the truth
budget      what a budget was predicted to show, against what it showed
hard        twenty posteriors that are hard to sample
shares      the tests before annealing, as a share of a check
proposals   kernels that propose from the path's start
resting     kernels that propose and rest at some temperatures
laws        exact laws given scales: what they cost, how near they are
devices     chains of PyMC on JAX: chains a second by their number, on the GPU where JAX finds one
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cores
import engine
import error_by_cost
import others
import phases
import schedule_cost
import stan_build_steps
import stan_engine
import stan_start_up
import start_up
import studies_2016
import traffic
from measuring import NAMES, ROOT, load, machine

HERE = Path(__file__).resolve().parent


def script(*words: str) -> Callable[[], None]:
    """Return what runs a benchmark in a process of its own."""

    def run() -> None:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        name, *arguments = words
        subprocess.run(
            [sys.executable, str(HERE / name), *arguments], env={**os.environ, "PYTHONPATH": path}, check=True
        )

    return run


def benchmarks(is_long: bool) -> dict[str, Callable[[], None]]:
    """Return the benchmarks by name; those that only a long run has come last."""
    return {
        "others": partial(others.run, NAMES, 5, 100) if is_long else others.run,
        "2016": partial(studies_2016.run, is_long),
        "errors": partial(error_by_cost.run, is_long),
        "cores": cores.run,
        "traffic": traffic.run,
        "engine": engine.run,
        "jax": script("vectorised.py", "--temperatures", "100000" if is_long else "2000"),
        "stan": stan_engine.run,
        "phases": phases.run,
        "start-up": start_up.run,
        "stan-start": stan_start_up.run,
        "schedules": schedule_cost.run,
        "stan-steps": stan_build_steps.run,
        "paths": script("paths.py"),
        "whole": script("whole_checks.py"),
        "budget": script("budget.py"),
        "hard": script("hard_models.py"),
        "shares": script("direct_share.py"),
        "proposals": script("independence.py"),
        "resting": script("resting.py"),
        "laws": script("laws.py"),
        "devices": script("jax_devices.py", "--chains", "16", "256", "4096", "--seconds", "600"),
    }


LONG_ONLY = (
    "schedules", "stan-steps", "paths", "whole", "budget", "hard", "shares", "proposals", "resting", "laws", "devices",
)  # fmt: skip


def main() -> None:
    """Run the benchmarks named, in the order named; one that fails is said, and ends the run in error at its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help="default: all, without --long those above the line")
    parser.add_argument("--long", action="store_true", help="long tables")
    options = parser.parse_args()
    known = benchmarks(options.long)
    names = options.names or [name for name in known if options.long or name not in LONG_ONLY]
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known: {', '.join(known)}")
    print(f"# Benchmarks\n\n{machine()}")
    failed = []
    for name in names:
        began = time.perf_counter()
        try:
            known[name]()
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"({name}: {time.perf_counter() - began:.0f} s, {load()})", flush=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
