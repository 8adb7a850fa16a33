"""Seconds from the call of `bread.check` to the first finished annealed chain, cold and warm compile cache.

Run as a script with the name of a model, it prints the seconds of one start, in JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

from measuring import NAMES, ROOT, SEED, build_model, load, median, print_table

WARM_ROUNDS = 3
PARTS = ("compile", "fit", "tune", "start")


def run() -> None:
    """Measure and print."""
    rows = []
    for name in NAMES:
        with tempfile.TemporaryDirectory(prefix="bread-cold-", ignore_cleanup_errors=True) as folder:
            cold = _start(name, folder)
            warm = [_start(name, folder) for _ in range(WARM_ROUNDS)]
        rows.append((name, "cold", *cold.values(), load()))
        rows.append((name, "warm", *(median([each[part] for each in warm]) for part in cold), load()))
    print_table(
        "Seconds to the first finished chain",
        ("model", "compile cache", "first chain", *PARTS, "import", "machine"),
        rows,
        "From the call of `bread.check(model)` with all defaults, in a new process, to the first chain of the search "
        "that returns. Within it: compiling the engine; `pm.sample` on the real data, compilation included; the pilot, "
        "with the start of the workers; the reverse starts. Importing PyMC and bread, and building the model, come "
        f"before the call. Warm: median of {WARM_ROUNDS}.",
    )


def _start(name: str, compile_folder: str) -> dict[str, float]:
    """Return the seconds of one start in a new process whose compile cache is in ``compile_folder``."""
    flags = [flag for flag in os.environ.get("PYTENSOR_FLAGS", "").split(",") if flag]
    environment = {
        **os.environ,
        "PYTENSOR_FLAGS": ",".join([*flags, f"base_compiledir={compile_folder}"]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, __file__, name]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds: dict[str, float] = json.loads(output.splitlines()[-1])
    return seconds


def _measure(name: str) -> dict[str, float]:
    """Start a check, interrupt it at its first annealed chain, return the seconds of its parts."""
    began_import = time.perf_counter()
    import bread
    from bread import progress

    model = build_model(name)
    seen: dict[str, float] = {}
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
        report = bread.check(model, random_seed=SEED, progressbar=False)
    cost = report["cost"].to_dataset() if hasattr(report["cost"], "to_dataset") else report["cost"]
    parts = {part: float(cost["seconds"].sel(phase=part)) for part in PARTS}
    return {"first chain": seen["first chain"] - began, **parts, "import": began - began_import}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
