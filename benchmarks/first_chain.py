"""Seconds from the call of `bread.check` to its first finished annealed chain, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

from measuring import ROOT, SEED

PARTS = ("compile", "fit", "tune", "start")


def start(script: str, argument: str, variables: Mapping[str, str]) -> dict[str, float]:
    """Run a script in a new process with these environment variables; return the seconds that it prints."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    output = subprocess.run(
        [sys.executable, script, argument],
        env={**os.environ, **variables, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    seconds: dict[str, float] = json.loads(output.splitlines()[-1])
    return seconds


def print_seconds(prepare: Callable[[], Callable[..., Any]]) -> None:
    """Start a check, interrupt it at its first annealed chain, and print the seconds of its parts in JSON.

    Parameters
    ----------
    prepare : callable
        Imports and builds what comes before the call, and returns `bread.check` of a model.
    """
    began_import = time.perf_counter()
    from bread.jobs.progress import Display

    check = prepare()
    seen: dict[str, float] = {}
    original_phase, original_advance = Display.phase, Display.advance

    def phase(display: Display, name: str, n_chains: int | None = None, phase: str = "") -> None:
        seen["annealing"] = name.startswith("T = ")
        original_phase(display, name, n_chains, phase)

    def advance(display: Display, n_chains: int, n_failures: int = 0) -> None:
        original_advance(display, n_chains, n_failures)
        if seen["annealing"]:
            seen["first chain"] = time.perf_counter()
            raise KeyboardInterrupt  # the check returns what is finished

    with warnings.catch_warnings(), patch.object(Display, "phase", phase), patch.object(Display, "advance", advance):
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        report = check(random_seed=SEED, progressbar=False)
    cost = report["cost"].to_dataset() if hasattr(report["cost"], "to_dataset") else report["cost"]
    parts = {part: float(cost["seconds"].sel(phase=part)) for part in PARTS}
    print(json.dumps({"first chain": seen["first chain"] - began, **parts, "import": began - began_import}))
