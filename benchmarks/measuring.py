"""What every benchmark shares: the models, medians, the machine's load, plain markdown tables."""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import ArrayLike

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
NAMES = ("eight schools", "logistic 532 x 7")


def build_model(name: str) -> Any:
    """Return a model of the examples on its real data; the eight schools non-centred with HalfNormal(5)."""
    if str(ROOT / "examples") not in sys.path:
        sys.path.insert(0, str(ROOT / "examples"))
    import models

    builders: dict[str, Callable[[], Any]] = {
        "eight schools": lambda: models.eight_schools(is_centred=False),
        "eight schools centred": lambda: models.eight_schools(is_centred=True),
        "logistic 532 x 7": models.pima,
    }
    return builders[name]()


def machine() -> str:
    """Return one line on what the figures were measured with."""
    found = []
    for name in ("pymc", "pytensor", "arviz", "httpstan", "numpy", "blackjax", "simuk"):
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    packages = ", ".join(found)
    return f"Python {platform.python_version()}, {packages}; {os.cpu_count()} cores, {load()}"


def load() -> str:
    """Return the load of the machine: wall times are right only where it is below the number of cores."""
    return f"load {os.getloadavg()[0]:.1f}"


def median(values: ArrayLike) -> float:
    """Return the median."""
    return float(np.median(np.asarray(values, dtype=float)))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
    """Print a markdown table; numbers with three significant digits."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(_cell(value) for value in row) + " |")
    if note:
        print("\n" + textwrap.fill(note, 116))
    print(flush=True)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def fit(model: Any) -> Any:
    """Sample the real data, once for all checks of a benchmark."""
    import pymc as pm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("pymc").setLevel(logging.ERROR)
        return pm.sample(500, chains=4, cores=1, model=model, random_seed=SEED, progressbar=False, nuts_sampler="pymc")


def check(model: Any, *, stop_before: str = "", **settings: Any) -> Any:
    """Run `bread.check` with fixed seed, without progress bar and warnings; end it before a phase, if one is named."""
    import bread
    from bread.jobs.progress import Display

    original = Display.phase

    def phase(display: Display, name: str, n_chains: int | None = None, phase: str = "") -> None:
        if stop_before and name.startswith(stop_before):
            raise KeyboardInterrupt  # the check then returns what is finished
        original(display, name, n_chains, phase)

    with warnings.catch_warnings(), patch.object(Display, "phase", phase):
        warnings.simplefilter("ignore")
        return bread.check(model, path="prior", random_seed=SEED, progressbar=False, **settings)


def seconds_of_a_pair(forward: Any, reverse: Any, n_temperatures: int) -> float:
    """Return wall seconds of one forward and one reverse chain, the median over data sets."""
    groups = (forward.sel(n_temperatures=n_temperatures), reverse.sel(n_temperatures=n_temperatures))
    return float(np.sum([np.nanmedian(group["seconds"]) for group in groups])) / int(forward.sizes["chain"])


def read_is_long(description: str | None) -> bool:
    """Read ``--long`` from the command line, and print what machine this is."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    print(machine())
    return bool(options.long)
