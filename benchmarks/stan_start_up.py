"""Seconds from the call of `bread.check` on a Stan program to its first finished chain, with an empty build cache.

Run as a script, it prints the seconds of one start, in JSON.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from first_chain import PARTS, print_seconds, start
from measuring import load, median, print_table
from stan_cases import case

NAME = "eight schools"
WARM_ROUNDS = 5
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
    return start(__file__, str(variant), {"BREAD_CACHE": folder})


def _prepare() -> Callable[..., Any]:
    import bread

    program, data, observed = case(NAME)
    program = program.replace("mu ~ normal(0, 5)", f"mu ~ normal(0, {5 + int(sys.argv[1])})")
    return partial(bread.check, program, data=data, observed=observed)


if __name__ == "__main__":
    print_seconds(_prepare)
