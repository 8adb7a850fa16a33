"""Seconds from the call of `bread.check` on a Stan program to its first finished chain, with an empty build cache.

Run as a script, it prints the seconds of one start, in JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from measuring import ROOT, SEED, load, median, print_table
from stan_cases import case

NAME = "eight schools"
WARM_ROUNDS = 5
PARTS = ("compile", "fit", "tune", "start")
LIMITS = {"empty": 60.0, "another program": 60.0, "filled": 3.0}


def run() -> None:
    """Measure and print."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="bread-cache-") as folder:
        starts = {
            "empty": [_start(folder, 0)],
            "filled": [_start(folder, 0) for _ in range(WARM_ROUNDS)],
            "another program": [_start(folder, 1)],
        }
        megabytes = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
    for which, measured in starts.items():
        values = {part: median([each[part] for each in measured]) for part in measured[0]}
        first = values["first chain"]
        rows.append((which, *values.values(), LIMITS[which], "yes" if first < LIMITS[which] else "NO", load()))
    print_table(
        f"Seconds to the first finished chain of a Stan program ({NAME})",
        ("build cache", "first chain", *PARTS, "import", "limit", "below", "machine"),
        rows,
        "From the call of `bread.check` with all defaults, in a new process, to the first chain of the search that "
        "returns. Compile: stanc, C++ and all proofs; an empty cache builds the driver too, on a second core. Fit: "
        f"four chains of Stan's NUTS on the real data. Filled: median of {WARM_ROUNDS}. Another program: the driver is "
        f"there. The cache then takes {megabytes:.0f} MB.",
    )


def _start(folder: str, variant: int) -> dict[str, float]:
    """Return the seconds of one start in a new process with the build cache in ``folder``."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "BREAD_CACHE": folder, "PYTHONPATH": path}
    command = [sys.executable, __file__, str(variant)]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds: dict[str, float] = json.loads(output.splitlines()[-1])
    return seconds


def _measure(variant: int) -> dict[str, float]:
    """Start a check, interrupt it at its first annealed chain, return the seconds of its parts."""
    began_import = time.perf_counter()
    import bread
    from bread import progress

    program, data, observed = case(NAME)
    program = program.replace("mu ~ normal(0, 5)", f"mu ~ normal(0, {5 + variant})")
    seen: dict[str, Any] = {}
    original_phase, original_advance = progress.Display.phase, progress.Display.advance

    def phase(display: Any, name: str, n_chains: int | None = None) -> None:
        seen["annealing"] = name.startswith("T = ")
        original_phase(display, name, n_chains)

    def advance(display: Any, n_chains: int, n_failures: int = 0) -> None:
        original_advance(display, n_chains, n_failures)
        if seen["annealing"]:
            seen["first chain"] = time.perf_counter()
            raise KeyboardInterrupt  # the check returns what is finished

    progress.Display.phase, progress.Display.advance = phase, advance  # type: ignore[method-assign]
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = bread.check(program, data=data, observed=observed, random_seed=SEED, progressbar=False)
    cost = report["cost"].to_dataset() if hasattr(report["cost"], "to_dataset") else report["cost"]
    parts = {part: float(cost["seconds"].sel(phase=part)) for part in PARTS}
    return {"first chain": seen["first chain"] - began, **parts, "import": began - began_import}


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]))))
