"""Run a check and print what matters: verdict, T, B with its interval, consistency, cost."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import bread


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the command line that all examples share."""
    reader = argparse.ArgumentParser(description=description)
    reader.add_argument("--output", type=Path, default=Path("output"), help="folder for reports and plots")
    reader.add_argument("--seed", type=int, default=1, help="random seed")
    reader.add_argument("--cores", type=int, default=None, help="processes (default: all)")
    return reader


def read(reader: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line and make the folder for reports."""
    options = reader.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def arguments(description: str | None) -> argparse.Namespace:
    """Read a command line that has nothing of its own."""
    return read(parser(description))


def run(name: str, model: Any, options: argparse.Namespace, **settings: Any) -> Any:
    """Check ``model``, print a card, write the report and four plots; return the report."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    print(f"\n== {name}", flush=True)
    began = time.perf_counter()
    report = bread.check(model, random_seed=options.seed, cores=options.cores, **settings)
    seconds = time.perf_counter() - began
    print(bread.summary(report, kind="bounds").to_string())
    print(f"wall time {seconds:.1f} s")
    verdict = bread.verdict(report)
    print(f"[{verdict.status}] {verdict}", flush=True)
    stem = options.output / name.replace(" ", "_")
    report.to_netcdf(f"{stem}.nc")
    figure = bread.plot_report(report).figure
    figure.suptitle(name)
    figure.savefig(f"{stem}.png", dpi=110)
    plt.close(figure)
    print(f"report and plots: {stem}.nc, {stem}.png")
    return report
