"""Stan's own NUTS and static HMC with unit, diagonal and dense metric before `bread.debug`, on every smooth target.

    python benchmarks/stan_metrics.py [--budget 0.05] [--seed 1] [--only NUTS] [--target log-gamma]

Compiles Stan's classes as they are (stan_metrics.cpp; not the leaner ones that bread anneals with) and the targets as a
Stan program (stan_metrics.stan), in a minute or two. Target by target, each row one kernel: a line of Markdown with the
verdict, the smallest p-value after correction, its test, whether it is reversible, and seconds. The battery
compares the log density that Stan carries with the target's own too, up to a constant.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.stan.native.build import compile_flags
from bread.backends.stan.native.toolchain import find_toolchain
from bread.debugging.bare import BareSubject
from bread.debugging.battery import BUDGET, run_battery
from bread.debugging.target import Target
from bread.debugging.targets import default_targets

FloatArray = NDArray[np.float64]
HERE = Path(__file__).parent
TARGETS = ("log-gamma", "correlated normal", "student t", "curved", "funnel", "mixture", "stick-breaking")
METRICS = ("unit", "diag", "dense")
STEP = 0.6  # of the sd of a coordinate; with the unit metric of the smallest


class Settings(NamedTuple):
    """A kernel of Stan: leapfrog steps of a path (0: NUTS) and the deepest tree."""

    leapfrogs: int
    depth: int = 10


KERNELS = {"NUTS": Settings(0), "NUTS, depth 2": Settings(0, 2), "static HMC": Settings(4)}


def compiled() -> ctypes.CDLL:
    """Return the library of program and samplers."""
    toolchain = find_toolchain()
    code = toolchain.translate((HERE / "stan_metrics.stan").read_text(), filename="stan_metrics.stan")
    folder = Path(tempfile.mkdtemp())
    (folder / "all.cpp").write_text(f"{code}\n{(HERE / 'stan_metrics.cpp').read_text()}")
    includes = [part for path in toolchain.include_folders for part in ("-isystem", str(path))]
    static = [str(path) for path in toolchain.libraries if path.suffix == ".a"]
    shared = [str(path) for path in toolchain.libraries if path.suffix != ".a"]
    paths = [f"-Wl,-rpath,{Path(path).parent}" for path in shared]
    subprocess.run(
        [toolchain.require_compiler().path, *compile_flags(toolchain), *includes, "-shared", "-o",
         str(folder / "all.so"), str(folder / "all.cpp"), *static, *static, *shared, *paths],
        check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(folder / "all.so"))
    library.make.restype = ctypes.c_void_p
    library.make.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_int, ctypes.c_void_p]
    library.step.restype = ctypes.c_double
    library.step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32]
    return library


class StanStepper:
    """One of Stan's kernels on one target, frozen; it carries (position, log density)."""

    def __init__(self, library: ctypes.CDLL, target: Target, metric: str, settings: Settings) -> None:
        draws = target.simulate(4000, np.random.default_rng(3))
        inverse = np.asfortranarray(np.cov(draws.T))
        size = STEP * (float(np.sqrt(np.diag(inverse).min())) if metric == "unit" else 1.0)
        self._step = library.step
        self._kernel = library.make(
            TARGETS.index(target.name) + 1, METRICS.index(metric), settings.leapfrogs, size, settings.depth,
            inverse.ctypes.data,
        )  # fmt: skip

    def start(self, position: FloatArray, rng: Generator) -> tuple[FloatArray, float]:
        """Return what a chain carries at its start; Stan holds no density yet."""
        return np.array(position, dtype=np.float64), float("nan")

    def step(self, carry: tuple[FloatArray, float], rng: Generator) -> tuple[FloatArray, float]:
        """Return what it carries after one transition, with a seed from ``rng``."""
        position = carry[0].copy()
        log_density = self._step(self._kernel, position.ctypes.data, int(rng.integers(1, 2**32)))
        return position, log_density

    def position(self, carry: tuple[FloatArray, float]) -> FloatArray:
        """Return the position."""
        return carry[0]

    def log_density(self, carry: tuple[FloatArray, float]) -> float:
        """Return the log density that Stan holds."""
        return carry[1]


def row(name: str, build: Any, target: Target, budget: float, seed: int) -> str:
    """Return the line of one kernel on one target."""
    began = time.perf_counter()
    result = run_battery([BareSubject(target, build(), build=build)], budget=int(budget * BUDGET), seed=seed)
    least = min(result.tests, key=lambda test: np.nan_to_num(test.p_value, nan=2.0))
    said = "bug" if result.alarm else "no bug found"
    turned = "" if result.is_reversible else "not reversible"
    seconds = time.perf_counter() - began
    return f"| {name} | {target.name} | {said} | {result.p_value:.2g} | {least.name} | {turned} | {seconds:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kernels whose name begins so")
    parser.add_argument("--target", default="", help="targets whose name begins so")
    wanted = parser.parse_args()
    library = compiled()
    print(f"Stan {find_toolchain().version}\n\n| kernel | target | verdict | smallest p | its test | | s |", flush=True)
    print("|---|---|---|---|---|---|---|", flush=True)
    for target in default_targets("continuous"):
        if target.name not in TARGETS or not target.name.startswith(wanted.target):
            continue
        for kernel, settings in KERNELS.items():
            for metric in METRICS:
                if kernel.startswith(wanted.only):
                    build = partial(StanStepper, library, target, metric, settings)
                    print(row(f"{kernel}, {metric}", build, target, wanted.budget, wanted.seed), flush=True)


if __name__ == "__main__":
    main()
