"""A whole check of each model of the table of paths, all defaults: python benchmarks/whole_checks.py [NAME ...].

One row a model, from its second check in one process, so that all is compiled and imported: path, T, V with its limits,
gradients, seconds by phase, what surrounds the annealing as a multiple of it, status; and the evidence of the data
beside what it is, where that is known.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

from hard_models import read_row
from measuring import SEED, load, machine
from path_models import PathModel, path_models
from path_truths import log_evidence

import bread

ANNEALING = ("search", "confirm", "curve", "consistency", "draws")  # the phases in which chains are annealed
ONCE = ("compile",)  # once a model, or from the cache
STUDY = ("simulate_from", "hyperparameters")  # settings that a study needs; others are for the comparison of paths
GOALS = {"movielens": {"target": 1.0}}  # 503 parameters


def measure(name: str, model: PathModel, options: argparse.Namespace) -> dict[str, Any]:
    """Check one model, as often as asked for, and return the row of the last check."""
    settings = {key: value for key, value in model.settings.items() if key in STUDY} | GOALS.get(name, {})
    for _ in range(options.checks):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = bread.check(
                model.program, data=model.data, observed=list(model.observed), cores=options.cores,
                random_seed=options.seed, progressbar=False, **settings,
            )  # fmt: skip
        seconds = time.perf_counter() - began
    row = {"model": name, "seconds": round(seconds, 1), "load": load(), **read_row(report)}
    phases = row["phases"]
    annealing = sum(phases.get(phase, 0.0) for phase in ANNEALING)
    row["annealing"] = round(annealing, 1)
    row["overhead"] = round((seconds - annealing - sum(phases.get(phase, 0.0) for phase in ONCE)) / annealing, 2)
    truth = log_evidence(name, model)
    row["log_evidence"] = None if truth is None else round(truth, 3)
    return row


def main() -> None:
    """Print one row a model; with --json append them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models (default: all but the two large ones)")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--checks", type=int, default=2, help="in one process; the last is shown")
    parser.add_argument("--json", type=Path, help="append rows to this file")
    options = parser.parse_args()
    models = path_models()
    print(machine())
    columns = (
        "model", "path", "T", "R", "V", "V_limit", "V_limit_exact", "B", "gradients", "seconds", "annealing",
        "overhead", "status",
    )  # fmt: skip
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for name in options.names or [name for name, model in models.items() if "max_temperatures" not in model.settings]:
        try:
            row = measure(name, models[name], options)
        except bread.BreadError as error:
            print(f"| {name} | {type(error).__name__}: {str(error).splitlines()[0][:120]} |", flush=True)
            continue
        print("| " + " | ".join(str(row[column]) for column in columns) + " |", flush=True)
        print(f"  {row['phases']} {row['load']}", flush=True)
        if row["log_evidence"] is not None:
            print(f"  log evidence {row['log_evidence']}, reported {row['evidence']}", flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
