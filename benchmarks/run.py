"""Rerun the benchmarks and print their tables: all of them, or those named on the command line.

start-up    seconds from the call of `bread.check` to the first finished chain, cold and warm compile cache
engine      the engine's own overhead over a bare loop of the same step method
schedules   gradient evaluations to B <= 1 nat, adaptive against fixed schedules
phases      CPU seconds of every phase of a whole check, as shares
cores       two cores against one, with equal results
stan        Stan: time per leapfrog of annealed chains over one gradient
stan-start  Stan: seconds to the first finished chain, build included, and from the build cache
stan-steps  Stan: CPU seconds of each step of a build, by setting
"""

from __future__ import annotations

import argparse
import time

import cores
import engine
import phases
import schedule_cost
import stan_build_steps
import stan_engine
import stan_start_up
import start_up
from measuring import load, machine

BENCHMARKS = {
    "engine": engine.run,
    "phases": phases.run,
    "cores": cores.run,
    "schedules": schedule_cost.run,
    "start-up": start_up.run,
    "stan": stan_engine.run,
    "stan-start": stan_start_up.run,
    "stan-steps": stan_build_steps.run,
}


def main() -> None:
    """Run the benchmarks named, in the order named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(BENCHMARKS)}; default: all")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known: {', '.join(BENCHMARKS)}")
    print(f"# Benchmarks\n\n{machine()}")
    for name in names:
        began = time.perf_counter()
        BENCHMARKS[name]()
        print(f"({name}: {time.perf_counter() - began:.0f} s, {load()})", flush=True)


if __name__ == "__main__":
    main()
