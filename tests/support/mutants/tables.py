"""What `study` found, added up and as Markdown: power by bug, false alarms by kernel.

    python -m tests.support.mutants.tables [runs.csv] [--update] [--details details.csv]

With a file of runs `power.csv`, which stands beside this module, is made anew; with `--update` the runs of a bug, or of
its good twin, take the place of those in it where they are as many or more. Without a file its tables are printed.
docs/debugging.md has that by class, and that of what cannot be detected.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from bread.debugging.battery import LEVEL
from tests.support.mutants import MUTANTS
from tests.support.mutants.study import Run, written

POWER = Path(__file__).with_name("power.csv")
SHOWN = 3  # tests that a row names
SURE = 0.99
LOOSE = (0.05, 0.1, 0.2, 0.5)  # levels at which clean runs are counted too


class Row(NamedTuple):
    """All runs of one bug and of its good twin.

    ``steps`` is the median of what its runs spent. ``tests`` has the runs in which each test failed, "name: number"
    joined by ";". ``clean`` are runs of the good twin on all its targets, ``alarms`` those that rang, ``below`` those
    with a p-value of at most each level of `LOOSE`.
    """

    name: str
    found: int
    runs: int
    steps: int
    tests: str
    alarms: int
    clean: int
    below: tuple[int, ...]


def add_up(runs: Sequence[Run]) -> list[Row]:
    """Return a row for each bug that has runs."""
    rows = []
    for name in MUTANTS:
        bad = [one for one in runs if one.piece.is_bad and one.piece.name == name]
        good = [one for one in runs if not one.piece.is_bad and one.piece.name == name]
        if not bad and not good:
            continue
        seen = Counter(test for one in bad for test in one.tests.split("; ") if test)
        often = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        rows.append(
            Row(
                name,
                sum(one.alarm for one in bad),
                len(bad),
                int(np.median([one.spent for one in bad])) if bad else 0,
                ";".join(f"{test}: {n}" for test, n in often),
                sum(one.alarm for one in good),
                len(good),
                tuple(sum(one.p_value <= level for one in good) for level in LOOSE),
            )
        )
    return rows


def save(rows: Sequence[Row], path: Path = POWER) -> None:
    """Write the sums."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*Row._fields[:-1], *(f"p <= {level}" for level in LOOSE)])
        out.writerows([*row[:-1], *row.below] for row in rows)


def load(path: Path = POWER) -> list[Row]:
    """Read them back."""
    with path.open(newline="") as file:
        return [
            Row(name, int(found), int(runs), int(steps), tests, int(alarms), int(clean), tuple(map(int, below)))
            for name, found, runs, steps, tests, alarms, clean, *below in list(csv.reader(file))[1:]
        ]


def updated(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Return for each bug its runs, and those of its good twin, from whichever has more of them; ``new`` if as many."""
    first, second = {row.name: row for row in old}, {row.name: row for row in new}
    rows = []
    for name in MUTANTS:
        found = [rows_of[name] for rows_of in (second, first) if name in rows_of]
        if found:
            bad, good = max(found, key=lambda row: row.runs), max(found, key=lambda row: row.clean)
            rows.append(bad._replace(alarms=good.alarms, clean=good.clean, below=good.below))
    return rows


def power_table(rows: Sequence[Row]) -> str:
    """Return each bug that can be detected with its power, its work, and the tests that saw it most often."""
    lines = ["| bug | class | what is wrong | found | median steps | tests that fail, in so many runs |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        mutant = MUTANTS[row.name]
        if mutant.detectable and row.runs:
            tests = ", ".join(row.tests.replace(": ", " ").split(";")[:SHOWN])
            lines.append(f"| {row.name} | {mutant.family} | {mutant.defect} | {row.found} of {row.runs} | "
                         f"{row.steps:,} | {tests} |")  # fmt: skip
    return "\n".join(lines)


def class_table(rows: Sequence[Row]) -> str:
    """Return by class how many bugs can be detected, runs in which they were, and alarms in runs without one."""
    lines = ["| class | bugs | such as | runs that found one | alarms without one |", "|---|---|---|---|---|"]
    for family in dict.fromkeys(MUTANTS[row.name].family for row in rows):
        of_class = [row for row in rows if MUTANTS[row.name].family == family]
        bugs = [row for row in of_class if MUTANTS[row.name].detectable]
        lines.append(f"| {family} | {len(bugs)} | {MUTANTS[bugs[0].name].defect} | "
                     f"{sum(row.found for row in bugs)} of {sum(row.runs for row in bugs)} | "
                     f"{sum(row.alarms for row in of_class)} of {sum(row.clean for row in of_class)} |")  # fmt: skip
    return "\n".join(lines)


def undetectable_table(rows: Sequence[Row]) -> str:
    """Return those that cannot, with the reason, and the alarms that rang all the same."""
    lines = ["| bug | class | what is wrong | alarms | why |", "|---|---|---|---|---|"]
    for row in rows:
        mutant = MUTANTS[row.name]
        if not mutant.detectable and row.runs:
            lines.append(
                f"| {row.name} | {mutant.family} | {mutant.defect} | {row.found} of {row.runs} | {mutant.why} |"
            )
    return "\n".join(lines)


def clean_table(rows: Sequence[Row]) -> str:
    """Return false alarms by class of kernel, and in how many runs the smallest p-value was below looser levels."""
    sums: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2 + len(LOOSE), dtype=int))
    kernels = Counter(MUTANTS[row.name].family for row in rows if row.clean)
    for row in rows:
        if row.clean:
            for key in (MUTANTS[row.name].family, "all"):
                sums[key] += [row.clean, row.alarms, *row.below]
    kernels["all"] = sum(kernels.values())
    order = [*(key for key in sums if key != "all"), "all"]
    most = {key: (int(binom.ppf(SURE, sums[key][0], LEVEL)), [int(binom.ppf(SURE, sums[key][0], p)) for p in LOOSE])
            for key in order}  # fmt: skip
    shown = " | ".join(f"p <= {level}" for level in LOOSE)
    lines = [f"| class | kernels | runs | alarms | {shown} |", "|---|---|---|---|" + "---|" * len(LOOSE)]
    for key in order:
        n, alarms, *below = sums[key]
        counts = " | ".join(f"{count} ({limit})" for count, limit in zip(below, most[key][1], strict=True))
        lines.append(f"| {key} | {kernels[key]} | {n} | {alarms} ({most[key][0]}) | {counts} |")
    return "\n".join(lines)


def detail_table(path: Path) -> str:
    """Return, for each test of chance, how p-values of clean runs lie against uniform ones."""
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with path.open(newline="") as file:
        for line in csv.reader(file):
            values[line[4]].append((float(line[8]), float(line[9])))
    lines = ["| test | runs | corrected p <= 0.01 | <= 0.1 | one comparison p <= 0.01 | <= 0.1 | <= 0.5 |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for test, pairs in values.items():
        corrected, one = np.array(pairs).T
        cells = [f"{(p <= level).sum()} ({binom.ppf(SURE, len(p), level):.0f})" for p, levels in
                 ((corrected, (0.01, 0.1)), (one, (0.01, 0.1, 0.5))) for level in levels]  # fmt: skip
        lines.append(f"| {test} | {len(pairs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables; make the sums anew if a file of runs is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="?")
    parser.add_argument("--update", action="store_true", help="keep runs of bugs of which the file has fewer")
    parser.add_argument("--details", type=Path)
    wanted = parser.parse_args()
    if wanted.runs:
        rows = add_up(written(wanted.runs))
        save(updated(load(), rows) if wanted.update else rows)
    rows = load()
    print("\n\n".join([class_table(rows), power_table(rows), undetectable_table(rows), clean_table(rows)]))
    if wanted.details:
        print("\n" + detail_table(wanted.details))


if __name__ == "__main__":
    main()
