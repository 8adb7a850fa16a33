"""Gradient evaluations to reach the target along every path, model by model: python benchmarks/paths.py [NAME ...].

Counted: pilots, fits of references, the choice, and annealed chains of search and confirmation. Not counted: what is
the same for every path (fit on the real data, reverse starts, consistency, draws).
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any

from path_models import PathModel, path_models

import bread
from bread.report.compat import read_attributes, read_group

PATHS = ("prior", "reference", "auto")
COUNTED = ("tune", "race", "search", "confirm")


def curve(report: Any, spent: int) -> list[list[float]]:
    """Return T, bound, its upper limit (nats) and the gradient evaluations until then, ``spent`` before the search."""
    table = bread.summary(report, kind="bounds").query("n_simulations > 0")
    forward, reverse = (read_group(report, name) for name in ("forward", "reverse"))
    is_bound = reverse["finished"]  # the forward chains of the other simulations are the consistency test's
    rows = []
    for n_temperatures, row in table.iterrows():
        at = {"n_temperatures": n_temperatures}
        for group in (forward, reverse):
            spent += int(group["n_gradients"].sel(at).where(is_bound.sel(at), 0).sum())
        names = ("jeffreys", "upper") if row["reliable"] else ("kl_exact_approx", "kl_exact_approx_upper")
        rows.append([n_temperatures, *(float(row[name]) for name in names), spent, bool(row["reliable"])])
    return rows


def measure(model: PathModel, path: str, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Check a model along one path and return what the table shows."""
    names = ("simulate_from", "target", "simulations", "chains", "max_temperatures")
    given = {name: getattr(options, name) for name in names}
    settings = given | model.settings
    if options.simulate_from != "fitted" and settings["simulate_from"] == "fitted":
        settings["simulate_from"] = options.simulate_from
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = bread.check(
            model.program, data=model.data, observed=list(model.observed), path=path, draws=0, cores=options.cores,
            random_seed=seed, progressbar=False, **settings,
        )  # fmt: skip
    verdict = bread.verdict(report)
    cost = read_group(report, "cost")["n_gradients"]
    phases = {str(phase): int(cost.sel(phase=phase)) for phase in cost["phase"].values if phase in COUNTED}
    before = phases.get("tune", 0) + phases.get("race", 0)
    return {
        "seed": seed,
        "path": path,
        "taken": read_attributes(report)["path"],
        "bound": verdict.bound,
        "status": verdict.status,
        "T": verdict.n_temperatures,
        "B": round(verdict.estimate, 3),
        "upper": round(verdict.ci_upper, 3),
        "gradients": sum(phases.values()),
        "tune": phases["tune"],
        "curve": curve(report, before),
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    """Print one row per model and path; with --json append them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models (default: all)")
    parser.add_argument("--paths", nargs="+", choices=PATHS, default=list(PATHS))
    parser.add_argument("--simulate-from", choices=["fitted", "localised", "prior"], default="fitted")
    parser.add_argument("--target", type=float, default=1.0, help="nats")
    parser.add_argument("--simulations", type=int, default=20)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--max-temperatures", type=int, default=1024)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    models = path_models()
    columns = ("T", "bound", "upper", "gradients", "s")
    print(f"{'model':22} {'path':10} {'taken':10} {columns[0]:>5} {columns[1]:>8} {columns[2]:>8} {columns[3]:>12} s")
    for name in options.names or models:
        for path, seed in itertools.product(options.paths, options.seeds):
            try:
                row = measure(models[name], path, options, seed)
            except bread.BreadError as error:
                print(f"{name:22} {path:10} {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)
                continue
            mark = "" if row["bound"] == "jeffreys" else " (one-sided)"
            print(
                f"{name:22} {path:10} {row['taken']:10} {row['T']:5d} {row['B']:8.3g} {row['upper']:8.3g} "
                f"{row['gradients']:12,d} {row['seconds']:6.1f}  {row['status']}{mark}",
                flush=True,
            )
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps({"model": name} | row) + "\n")


if __name__ == "__main__":
    main()
