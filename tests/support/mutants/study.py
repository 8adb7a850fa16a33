"""Power and false alarms of the battery over many seeds, a line of a file for each run as it ends.

    python -m tests.support.mutants.study runs.csv [--minutes 60] [--only nuts,ensemble] [--kind bad] [--seeds 10]

A file that is there goes on: runs that it has are not made again. With `--details` every test of every clean run is
written to a second file. `tests.support.mutants.tables` makes tables of it.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.random import SeedSequence

from bread.debugging.battery import BUDGET
from bread.debugging.results import BatteryResult
from tests.support.mutants import MUTANTS
from tests.support.mutants.case import named
from tests.support.mutants.power import run_on, run_on_model

SHORT = 25_000  # steps of a clean run
SEEDS = range(1, 21)
FEW = 1  # seeds of bugs that cannot be detected: each spends the whole budget


class Piece(NamedTuple):
    """One run: a bug or its good twin, on one target, under one seed."""

    name: str
    target: str
    is_bad: bool
    budget: int
    seed: int

    @property
    def root(self) -> int:
        """Root of the run's random numbers, its own: good twins of many bugs are one kernel.

        Under one seed for all, runs on the same target would draw the same states, and alarms would not be independent.
        """
        name = crc32(f"{self.name}/{self.target}/{self.is_bad}".encode())
        return int(SeedSequence([self.seed, name]).generate_state(1)[0])


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
            if mutant.detectable or seed <= FEW:
                yield Piece(name, mutant.targets[0], True, BUDGET, seed)
        for name, mutant in MUTANTS.items():
            for target in mutant.targets:
                yield Piece(name, target, False, SHORT, seed)


def result_of(piece: Piece) -> BatteryResult:
    """Run the battery once."""
    mutant = MUTANTS[piece.name]
    how = {"is_bad": piece.is_bad, "budget": piece.budget, "seed": piece.root}
    if mutant.breaks == "paths":
        return run_on_model(mutant, **how)
    return run_on(mutant, targets=[named(piece.target)], **how)


def run(piece: Piece) -> tuple[Run, BatteryResult]:
    """Return what one run said, in short and in full."""
    began = time.perf_counter()
    result = result_of(piece)
    tests = sorted({failed.name for failed in result.failed if failed.test.about != "reversibility"})
    if not tests and result.alarm:
        tests = sorted({failed.name for failed in result.failed})
    seconds = time.perf_counter() - began
    short = Run(piece, bool(result.alarm), float(result.p_value), int(result.spent), seconds, "; ".join(tests))
    return short, result


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


def write_details(path: Path, piece: Piece, result: BatteryResult) -> None:
    """Add a line for each test of chance: its p-value among its comparisons, and that of its first comparison."""
    with path.open("a", newline="") as file:
        for one in result.tests:
            made = one.p_values[~np.isnan(one.p_values)]
            if one.test.is_random and made.size:
                csv.writer(file).writerow(
                    [piece.name, piece.target, piece.seed, one.subject, one.name, one.rounds, one.n, made.size,
                     f"{one.finding.p_value:.4g}", f"{made[0]:.6g}"]
                )  # fmt: skip


def main() -> None:
    """Run what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", default="", help="families or names, separated by commas")
    parser.add_argument("--kind", choices=("bad", "good", "both"), default="both")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--details", type=Path, help="file for the tests of clean runs")
    wanted = parser.parse_args()
    only = {word for word in wanted.only.split(",") if word}
    until = time.monotonic() + 60.0 * wanted.minutes
    done = {one.piece for one in written(wanted.path)}
    for piece in pieces(SEEDS[: wanted.seeds]):
        if time.monotonic() > until:
            break
        is_meant = not only or {piece.name, MUTANTS[piece.name].family} & only
        if piece in done or not is_meant or wanted.kind not in ("both", "bad" if piece.is_bad else "good"):
            continue
        short, result = run(piece)
        write(wanted.path, short)
        if wanted.details and not piece.is_bad:
            write_details(wanted.details, piece, result)


if __name__ == "__main__":
    main()
