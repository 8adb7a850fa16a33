"""Table and figure of what `benchmarks/paths.py --json FILE` measured: python benchmarks/paths_table.py FILE [FIGURE].

A cell is the median over seeds of thousands of gradient evaluations, fit included, until a bound of 1 nat was
confirmed, with the smallest and the largest. "Ratio" compares "auto", seed by seed, with the cheapest other path whose
two-sided bound reached the target with that seed: median and largest.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

PATHS = ("prior", "reference", "auto")
COLOURS = {"prior": "C0", "reference": "C2", "auto": "0.2"}
Rows = dict[str, dict[str, dict[int, dict[str, Any]]]]


def read(file: Path) -> Rows:
    """Return rows by model, path and seed; the last one measured counts."""
    rows: Rows = defaultdict(lambda: defaultdict(dict))
    for line in file.read_text().splitlines():
        row = json.loads(line)
        rows[row["model"]][row["path"]][row["seed"]] = row
    return rows


def reached(row: dict[str, Any]) -> bool:
    """Return whether the two-sided bound reached the target."""
    return bool(row["bound"] == "jeffreys" and row["upper"] <= 1.0)


def cell(runs: dict[int, dict[str, Any]]) -> str:
    """Return the cost of one path, and what it reached where that is not the two-sided target."""
    if not runs:
        return ""
    costs = np.array([row["gradients"] for row in runs.values()]) / 1000
    text = f"{np.median(costs):.0f}"
    if len(costs) > 1:
        text += f" ({costs.min():.0f} to {costs.max():.0f})"
    one_sided = sum(row["bound"] != "jeffreys" for row in runs.values())
    missed = sum(row["upper"] > 1.0 for row in runs.values())
    notes = [f"{one_sided} one-sided"] * (one_sided > 0) + [f"{missed} not reached"] * (missed > 0)
    return ", ".join([text, *notes])


def ratio(paths: dict[str, dict[int, dict[str, Any]]]) -> str:
    """Return median and largest ratio of "auto" to the best other path, and what it took."""
    ratios = []
    for seed, auto in paths["auto"].items():
        others = [paths[path][seed] for path in PATHS[:2] if seed in paths[path] and reached(paths[path][seed])]
        if others and reached(auto):
            ratios.append(auto["gradients"] / min(row["gradients"] for row in others))
    took = ", ".join(sorted({row["taken"] for row in paths["auto"].values()}))
    return f"{np.median(ratios):.2f}, {max(ratios):.2f} ({took})" if ratios else f"({took})"


def draw(rows: Rows, figure: Path) -> None:
    """Draw B against gradient evaluations, a panel a model and a line a seed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    n_columns = 4
    n_rows = -(-len(rows) // n_columns)
    canvas, axes = plt.subplots(n_rows, n_columns, figsize=(3.2 * n_columns, 2.4 * n_rows), layout="constrained")
    for axis, (name, paths) in zip(axes.flat, rows.items(), strict=False):
        for path in PATHS:
            for index, row in enumerate(paths[path].values()):
                _, bound, _, spent, is_two_sided = (np.array(column) for column in zip(*row["curve"], strict=True))
                style = "-" if is_two_sided.all() else ":"
                label = path if index == 0 else None
                axis.plot(spent, np.maximum(bound, 0.01), style, marker=".", color=COLOURS[path], lw=1, label=label)
        axis.axhline(1.0, color="0.7", lw=0.8)
        axis.set(xscale="log", yscale="log", title=name.replace("_", " "))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.title.set_size(9)
    for axis in axes.flat[len(rows) :]:
        axis.axis("off")
    for axis in axes[-1]:
        axis.set_xlabel("gradient evaluations")
    for axis in axes[:, 0]:
        axis.set_ylabel("bound, nats")
    axes.flat[0].legend(fontsize=7)
    canvas.savefig(figure, dpi=100)


def main() -> None:
    """Print the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("figure", type=Path, nargs="?")
    options = parser.parse_args()
    rows = read(options.file)
    print("| model | prior | reference | auto | ratio |\n|---|---|---|---|---|")
    for name, paths in rows.items():
        print(f"| {name} | " + " | ".join(cell(paths[path]) for path in PATHS) + f" | {ratio(paths)} |")
    if options.figure is not None:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
