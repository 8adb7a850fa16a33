"""Kernels of BlackJAX and NumPyro before `bread.debug`, each on every target that it fits.

    python benchmarks/jax_samplers.py [--budget 1] [--seed 1] [--only blackjax] [--target log-gamma]

Needs `pip install "bread-mcmc[jax]"`. `jax_kernel_table.py` has the kernels. A line of Markdown each: the verdict, the
smallest p-value after correction, the test that gave it, whether it is reversible, and seconds, compilation included.
"""

from __future__ import annotations

import argparse
import time

import blackjax
import jax
import numpy as np
import numpyro
from jax_builders import Build
from jax_kernel_table import TABLE

from bread.debugging.bare import BareSubject
from bread.debugging.battery import BUDGET, run_battery
from bread.debugging.target import Target


def row(name: str, build: Build, target: Target, budget: float, seed: int) -> str:
    """Return the line of one kernel on one target."""
    began = time.perf_counter()
    try:
        kernel = build(target)  # compiled once: programs of JAX remember nothing
        result = run_battery([BareSubject(target, kernel)], budget=int(budget * BUDGET), seed=seed)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).splitlines()[0][:100]} | | | "
    else:
        least = min(result.tests, key=lambda test: np.nan_to_num(test.p_value, nan=2.0))
        said = "bug" if result.alarm else "no bug found"
        turned = "" if result.is_reversible else "not reversible"
        text = f"{said} | {result.p_value:.2g} | {least.name} | {turned}"
    return f"| {name} | {target.name} | {text} | {time.perf_counter() - began:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kernels whose name begins so")
    parser.add_argument("--target", default="", help="targets whose name begins so")
    wanted = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"BlackJAX {blackjax.__version__}, NumPyro {numpyro.__version__}, JAX {jax.__version__}\n", flush=True)
    print("| kernel | target | verdict | smallest p | its test | | s |\n|---|---|---|---|---|---|---|", flush=True)
    for name, (build, targets) in TABLE.items():
        if not name.startswith(wanted.only):
            continue
        for target in targets:
            if target.name.startswith(wanted.target):
                print(row(name, build, target, wanted.budget, wanted.seed), flush=True)


if __name__ == "__main__":
    main()
