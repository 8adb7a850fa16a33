"""CPU seconds of each step from a Stan program to an opened model: the compiler's, and this process's own.

Each start is a process of its own, with a build cache of its own: with the driver or without, with what is compiled or
without. CPU seconds of children are counted, which a busy machine changes less than wall time.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from first_chain import start
from measuring import ROOT, load, print_table
from stan_cases import case

LARGER = ROOT / "tests" / "support" / "stan_corpus" / "brms_multilevel"
PROGRAMS = ("eight schools", "brms, two levels")
STEPS = ("driver", "headers", "stanc", "program", "link", "own")
SETTINGS = {
    "default": {},
    "BREAD_CXXFLAGS=-O1": {"BREAD_CXXFLAGS": "-O1"},
    "BREAD_PRECOMPILE=1": {"BREAD_PRECOMPILE": "1"},
}


def run(settings: tuple[str, ...] = tuple(SETTINGS)) -> None:
    """Measure and print."""
    rows = []
    for setting in settings:
        with tempfile.TemporaryDirectory(prefix="bread-cache-") as folder:
            variables = {"BREAD_CACHE": folder, **SETTINGS[setting]}
            for cache in ("empty", "filled"):
                for name in PROGRAMS:
                    seconds = start(__file__, name, variables)
                    rows.append((setting, cache, name, *(round(seconds.get(step, 0.0), 2) for step in STEPS), load()))
            megabytes = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
        print(f"{setting}: the cache takes {megabytes:.0f} MB", flush=True)
    print_table(
        "CPU seconds until a Stan program is opened",
        ("setting", "build cache", "program", *STEPS, "machine"),
        rows,
        "The first program with an empty cache builds the driver, and the headers where they are precompiled. Own: "
        "what this process computes: reading, loading, the proofs of an opening.",
    )


def measure(name: str) -> dict[str, float]:
    """Open a program and return the CPU seconds of each step."""
    from bread.backends import open_model
    from bread.backends.base import OpenOptions
    from bread.backends.stan.native import build
    from bread.backends.stan.native.cache import default_cache
    from bread.backends.stan.native.toolchain import find_toolchain

    seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def children(step: str) -> Iterator[None]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[step] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    toolchain, original_run = find_toolchain(), build._run
    program, data, observed = _case(name)
    stopped = threading.Event()
    key = build._key("driver", toolchain, build._DRIVER_FILES)
    with children("driver"):  # alone, as it would share its seconds with the program
        build._get_driver(default_cache(), key, toolchain, stopped)
    with children("headers"):
        build._headers(default_cache(), toolchain, stopped)

    def run_compiler(command: Any, stopped: Any) -> None:
        with children("link" if "-shared" in command else "program"):
            original_run(command, stopped)

    began = time.process_time()
    with patch.object(build, "_run", run_compiler), children("stanc"):
        open_model(program, OpenOptions(data=data, observed=observed))
    seconds["own"] = time.process_time() - began
    seconds["stanc"] -= seconds["program"] + seconds["link"]
    return dict(seconds)


def _case(name: str) -> tuple[str, Any, Any]:
    if name in PROGRAMS[1:]:
        return LARGER.with_suffix(".stan").read_text(), json.loads(LARGER.with_suffix(".json").read_text()), ["Y"]
    return case(name)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
