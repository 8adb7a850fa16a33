"""Power and false alarms of the battery over many seeds, a line of a file for each run as it ends.

    python -m tests.support.mutants.study runs.csv [--minutes 60] [--only nuts,ensemble] [--kind bad]

A file that is there goes on: runs that it has are not made again. `table` reads it back.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bread.debugging.battery import BUDGET
from tests.support.mutants import MUTANTS
from tests.support.mutants.case import named
from tests.support.mutants.power import run_on, run_on_model

SHORT = 25_000  # steps of a clean run
SEEDS = range(1, 21)


class Piece(NamedTuple):
    """One run: a bug or its good twin, on one target, under one seed."""

    name: str
    target: str
    is_bad: bool
    budget: int
    seed: int


class Run(NamedTuple):
    """What one run said; of a clean run an alarm is false."""

    piece: Piece
    alarm: bool
    p_value: float
    spent: int
    seconds: float
    tests: str


def pieces(seeds=SEEDS) -> Iterator[Piece]:
    """Return all runs, seed by seed: bugs on their first target, good twins on each of theirs."""
    for seed in seeds:
        for name, mutant in MUTANTS.items():
            yield Piece(name, mutant.targets[0], True, BUDGET, seed)
        for name, mutant in MUTANTS.items():
            for target in mutant.targets:
                yield Piece(name, target, False, SHORT, seed)


def run(piece: Piece) -> Run:
    """Run the battery once."""
    mutant = MUTANTS[piece.name]
    how = {"is_bad": piece.is_bad, "budget": piece.budget, "seed": piece.seed}
    began = time.perf_counter()
    if mutant.breaks == "paths":
        result = run_on_model(mutant, **how)
    else:
        result = run_on(mutant, targets=[named(piece.target)], **how)
    tests = sorted({failed.name for failed in result.failed if failed.test.about != "reversibility"})
    if not tests and result.alarm:
        tests = sorted({failed.name for failed in result.failed})
    seconds = time.perf_counter() - began
    return Run(piece, bool(result.alarm), float(result.p_value), int(result.spent), seconds, "; ".join(tests))


def written(path: Path) -> list[Run]:
    """Return the runs that a file has."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Run(Piece(name, target, kind == "bad", int(budget), int(seed)), alarm == "1", float(p_value), int(spent),
                float(seconds), tests)
            for name, target, kind, budget, seed, alarm, p_value, spent, seconds, tests in csv.reader(file)
        ]  # fmt: skip


def write(path: Path, one: Run) -> None:
    """Add a run to a file."""
    name, target, is_bad, budget, seed = one.piece
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(
            [name, target, "bad" if is_bad else "good", budget, seed, int(one.alarm), f"{one.p_value:.4g}", one.spent,
             f"{one.seconds:.1f}", one.tests]
        )  # fmt: skip


def table(runs: list[Run]) -> str:
    """Return lines of Markdown: each bug with its power, its work, and the tests that saw it."""
    lines = ["| bug | found | median steps | tests |", "|---|---|---|---|"]
    for name in MUTANTS:
        bad = [one for one in runs if one.piece.is_bad and one.piece.name == name]
        if bad:
            seen = [test for one in bad for test in one.tests.split("; ") if test]
            often = sorted(set(seen), key=lambda test: (-seen.count(test), test))[:3]
            spent = int(np.median([one.spent for one in bad]))
            lines.append(f"| {name} | {sum(one.alarm for one in bad)} of {len(bad)} | {spent} | {', '.join(often)} |")
    clean = [one for one in runs if not one.piece.is_bad]
    lines.append(f"\n{sum(one.alarm for one in clean)} alarms in {len(clean)} clean runs")
    return "\n".join(lines)


def main() -> None:
    """Run what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", default="", help="families or names, separated by commas")
    parser.add_argument("--kind", choices=("bad", "good", "both"), default="both")
    wanted = parser.parse_args()
    only = {word for word in wanted.only.split(",") if word}
    until = time.monotonic() + 60.0 * wanted.minutes
    done = {one.piece for one in written(wanted.path)}
    for piece in pieces():
        if time.monotonic() > until:
            break
        is_meant = not only or {piece.name, MUTANTS[piece.name].family} & only
        if piece in done or not is_meant or wanted.kind not in ("both", "bad" if piece.is_bad else "good"):
            continue
        write(wanted.path, run(piece))
    print(table(written(wanted.path)))


if __name__ == "__main__":
    main()
