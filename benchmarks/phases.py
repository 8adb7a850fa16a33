"""CPU seconds of every phase of a whole check, as shares of it: what surrounds the annealing, and what it costs.

Run as a script with the name of a model, it prints the CPU seconds of one check by phase, in JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from typing import Any
from unittest.mock import patch

from measuring import NAMES, ROOT, SEED, build_model, print_table

ANNEALING = ("T = ", "consistency", "draws", "starts", "try ")  # how the names of such phases begin
STAN = "eight schools, Stan"


def run() -> None:
    """Measure every model in a process of its own, and print."""
    for name in (*NAMES, STAN):
        seconds = _seconds(name)
        total = sum(seconds.values())
        annealing = sum(spent for phase, spent in seconds.items() if phase.startswith(ANNEALING))
        rows = [
            (phase, spent, f"{100.0 * spent / total:.1f} %")
            for phase, spent in sorted(seconds.items(), key=lambda item: -item[1])
            if spent >= 0.001 * total
        ]
        print_table(
            f"Where {name} spends its time",
            ("phase", "CPU s", "share"),
            [*rows, ("all", total, "100 %")],
            "One check with all defaults in one process, compile caches as they are. What surrounds annealing takes "
            f"{(total - annealing) / max(annealing, 1e-9):.2g} times as long as the annealing.",
        )


def _seconds(name: str) -> dict[str, float]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    output = subprocess.run(
        [sys.executable, __file__, name],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    seconds: dict[str, float] = json.loads(output.splitlines()[-1])
    return seconds


def _spent() -> float:
    """Return the CPU seconds of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _measure(name: str) -> None:
    settings: dict[str, Any] = {}
    if name == STAN:
        data = json.loads((ROOT / "examples" / "eight_schools.json").read_text())
        model: Any = str(ROOT / "examples" / "eight_schools.stan")
        settings = {"data": data, "observed": ["y"]}
    else:
        model = build_model(name)
    print(json.dumps(by_phase(model, **settings)))


def by_phase(model: Any, **settings: Any) -> dict[str, float]:
    """Return the CPU seconds of each phase of one check with all defaults, in one process, reading included."""
    import bread
    from bread.jobs.progress import Display

    original, original_done = Display.phase, Display.done
    seconds: dict[str, float] = {}
    now = ["opening", _spent()]

    def switch(phase: str) -> None:
        before, began = now
        ended = _spent()
        seconds[str(before)] = seconds.get(str(before), 0.0) + ended - float(began)
        now[:] = [phase, ended]

    def phase(display: Display, title: str, n_chains: int | None = None, of: str = "") -> None:
        switch(title)
        original(display, title, n_chains, of)

    def done(display: Display) -> None:
        switch("between phases")
        original_done(display)

    with warnings.catch_warnings(), patch.object(Display, "phase", phase), patch.object(Display, "done", done):
        warnings.simplefilter("ignore")
        report = bread.check(model, random_seed=SEED, cores=1, progressbar=False, **settings)
    switch("reading")
    bread.verdict(report)
    bread.summary(report)
    switch("end")
    return seconds


if __name__ == "__main__":
    _measure(sys.argv[1])
