"""Twenty hard PyMC models, each answered or told why not: python benchmarks/hard_models.py [--only NAME ...].

One row a model: path, T, V with its limits, gradients, seconds by phase, status; where the evidence of the data is
known, what it is and what the report says. A model whose check takes longer than ``--max-seconds``, with compilation,
is interrupted as by Ctrl-C, and says what it has.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import hard_posteriors
from measuring import SEED, machine

import bread
from bread.report.compat import read_attributes, read_group


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Check one model and return its row."""
    began = time.perf_counter()
    row: dict[str, Any] = {"model": name}
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, options.max_seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            report = bread.check(
                hard_posteriors.MODELS[name](), random_seed=options.seed, cores=options.cores, progressbar=False,
                simulate_from=options.simulate_from, path=options.path, kernel=options.kernel,
            )  # fmt: skip
        except bread.errors.BreadError as error:
            report = getattr(error, "report", None)
            row["error"] = str(error)[:300]
        except KeyboardInterrupt as stop:  # nothing was computed yet
            report, row["error"] = None, str(stop)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    row["seconds"] = round(time.perf_counter() - began, 1)
    if report is not None:
        row |= read_row(report)
    if not options.no_truth:
        truth = hard_posteriors.log_evidence(name, hard_posteriors.MODELS[name]())
        row["log_evidence"] = None if truth is None else round(truth, 3)
    return row


def read_row(report: Any) -> dict[str, Any]:
    """Return what a report says, as a row."""
    verdict, cost = bread.verdict(report), read_group(report, "cost")
    phases = [] if cost is None else [str(phase) for phase in cost["phase"].values]
    row: dict[str, Any] = {
        "path": read_attributes(report)["path"],
        "T": verdict.n_temperatures,
        "R": verdict.n_simulations,
        "V": round(verdict.error, 4),
        "V_limit": round(verdict.error_limit, 4),
        "V_limit_exact": round(verdict.error_limit_exact, 4),
        "B": round(verdict.jeffreys, 3),
        "status": verdict.status,
        "gradients": 0 if cost is None else int(cost["n_gradients"].sum()),
        "phases": {phase: round(float(cost["seconds"].sel(phase=phase)), 1) for phase in phases},
        "verdict": str(verdict),
    }
    try:
        found = bread.evidence(report)
        row["evidence"] = [round(value, 3) for value in (found.log_evidence, found.lower, found.upper)]
    except bread.errors.BreadError:
        row["evidence"] = None
    return row


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def main() -> None:
    """Print one row a model; with --json append them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(hard_posteriors.MODELS), metavar="NAME", help="these models")
    parser.add_argument("--max-seconds", type=float, default=90.0, help="interrupt a check that takes longer")
    parser.add_argument("--simulate-from", choices=["fitted", "localised", "prior"], default="fitted")
    parser.add_argument("--path", choices=["auto", "prior", "reference"], default="auto")
    parser.add_argument("--kernel", help='such as "independence"; by default what pm.sample would assign')
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--no-truth", action="store_true", help="do not compute evidences")
    parser.add_argument("--json", type=Path, help="append rows to this file")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    print(machine())
    print("| model | path | T | R | V | limit | exact limit | B | gradients | seconds | status |")
    print("|" + "---|" * 11)
    for name in options.only or hard_posteriors.MODELS:
        row = measure(name, options)
        cells = [row.get(key, "-") for key in ("model", "path", "T", "R", "V", "V_limit", "V_limit_exact", "B")]
        cells += [row.get(key, "-") for key in ("gradients", "seconds", "status")]
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
        print(f"  {row.get('phases', '')} {row.get('error', '')}", flush=True)
        if row.get("log_evidence") is not None:
            print(f"  log evidence {row['log_evidence']}, reported {row.get('evidence')}", flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
