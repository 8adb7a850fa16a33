"""Seconds from the call of `bread.check` to the first finished annealed chain, cold and warm compile cache.

Run as a script with the name of a model, it prints the seconds of one start, in JSON.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from first_chain import PARTS, print_seconds, start
from measuring import NAMES, build_model, load, median, print_table

WARM_ROUNDS = 3


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
    return start(__file__, name, {"PYTENSOR_FLAGS": ",".join([*flags, f"base_compiledir={compile_folder}"])})


def _prepare() -> Callable[..., Any]:
    import bread

    return partial(bread.check, build_model(sys.argv[1]))


if __name__ == "__main__":
    print_seconds(_prepare)
