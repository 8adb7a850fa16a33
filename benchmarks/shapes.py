"""What shapes of models get an answer: python benchmarks/shapes.py [--only NAME ...] [--kind pymc|stan] [--json FILE].

One row a shape: processor seconds to the first line (`bread.look`, which is also a check's first phase) where nothing
was compiled before, and where it was; seconds of ``bread.check(model, posterior=fit, max_seconds=60)`` in all, status
and protocol, or the refusal in words. The fit is the language's own sampler, with its defaults; its seconds are not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import SEED, machine

import bread
from bread.report.compat import read_attributes, read_group

MAX_SECONDS = 60
SHOWN = ("shape", "cold", "first line", "seconds", "answer", "protocol")


def measure(kind: str, name: str, cores: int) -> dict[str, Any]:
    """Return the row of one shape."""
    row: dict[str, Any] = {"kind": kind, "shape": name}
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            given, fit = (_pymc if kind == "pymc" else _stan)(name, cores)
        except Exception as error:  # another package is missing, or its sampler fails
            return row | {"answer": f"no draws: {type(error).__name__}: {_line(error)}"}
        row["fit seconds"] = round(time.perf_counter() - began, 1)
        common = {"posterior": fit, "cores": cores, "random_seed": SEED, "progressbar": False}
        for times in ("cold", "first line"):
            began = time.process_time()
            row["look seconds"], look, said = _timed(lambda: bread.look(**given, **common))
            row[times] = round(time.process_time() - began, 1)
        row["look"] = said or str(bread.verdict(look))
        row["seconds"], report, said = _timed(lambda: bread.check(**given, **common, max_seconds=MAX_SECONDS))
    return row | ({"answer": f"refused: {said}"} if report is None else read_row(report))


def read_row(report: Any) -> dict[str, Any]:
    """Return what a report says: status, the protocol taken, the error bound, what could not be certified."""
    attributes, verdict = read_attributes(report), bread.verdict(report)
    row = {"answer": verdict.status, "protocol": attributes.get("simulate_from", ""), "verdict": str(verdict)}
    if read_group(report, "certificate") is not None:
        row["V_limit"] = round(float(verdict.error_limit), 3)
    if "not_certified" in attributes:
        row["not_certified"] = attributes["not_certified"]
    return row


def _pymc(name: str, cores: int) -> tuple[dict[str, Any], Any]:
    import pymc as pm
    from shapes_pymc import MODELS

    from bread.backends.pymc.model.bambi import pymc_model

    model = MODELS[name](np.random.default_rng(SEED))
    options = {"random_seed": SEED, "progressbar": False, "cores": cores, "chains": 4}
    if name == "minibatch":  # what such models are written for
        with model:
            return {"model": model}, pm.fit(2000, random_seed=SEED, progressbar=False).sample(2000)
    fit = model.fit(**options) if hasattr(model, "fit") else pm.sample(model=pymc_model(model), **options)
    return {"model": model}, fit


def _stan(name: str, cores: int) -> tuple[dict[str, Any], Any]:
    from shapes_stan import PROGRAMS

    from bread.backends import open_model
    from bread.backends.base import OpenOptions

    program, data, observed = PROGRAMS[name]
    given = {"data": data, "observed": observed}
    opened = open_model(program, OpenOptions(density_only=True, **given))
    return {"model": program, **given}, opened.fit(seed=SEED, cores=cores, progressbar=False).draws


def _timed(call: Callable[[], Any]) -> tuple[float, Any, str]:
    """Return seconds, what was returned (or the report that an error carries), and what an error says."""
    began, report, said = time.perf_counter(), None, ""
    try:
        report = call()
    except bread.errors.BreadError as error:
        report, said = getattr(error, "report", None), f"{type(error).__name__}: {_line(error)}"
    except Exception as error:  # a crash is an answer too, and the worst one
        said = f"CRASH: {type(error).__name__}: {_line(error)}"
    return round(time.perf_counter() - began, 1), report, said


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def main() -> None:
    """Print a table, and append rows to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("pymc", "stan"), action="append")
    parser.add_argument("--only", nargs="*", default=(), help="parts of names")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="append rows to this file")
    options = parser.parse_args()
    print(machine())
    for kind in options.kind or ("pymc", "stan"):
        for name in _names(kind):
            if options.only and not any(part in name for part in options.only):
                continue
            row = measure(kind, name, options.cores)
            print(" | ".join(str(row.get(key, "")) for key in SHOWN), flush=True)
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def _names(kind: str) -> list[str]:
    if kind == "pymc":
        from shapes_pymc import MODELS

        return list(MODELS)
    from shapes_stan import PROGRAMS

    return list(PROGRAMS)


if __name__ == "__main__":
    main()
