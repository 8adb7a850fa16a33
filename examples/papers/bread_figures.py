"""What the scripts of the figures of BREAD (Grosse, Ancha & Roy 2016) share: toys, command line, files."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bread import exact

SEED = 0  # of the random toys: the draws of the paper are not known


def toys(seed: int) -> list[Any]:
    """Return EASY RANDOM, HARD RANDOM and BARRIER, in the order of the paper."""
    return [exact.easy_random(seed), exact.hard_random(seed), exact.barrier()]


def arguments(description: str | None, *more: tuple[str, dict[str, Any]]) -> argparse.Namespace:
    """Read the command line; ``more`` are options of the script's own, with the arguments of ``add_argument``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder for the PNG and the CSV")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the two random toys")
    parser.add_argument("--quick", action="store_true", help="fewer temperatures and draws")
    for name, how in more:
        parser.add_argument(name, **how)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; floats in full."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([repr(float(x)) if isinstance(x, float) else x for x in row] for row in rows)
    print(f"table: {path}")


def save(figure: Any, path: Path) -> None:
    """Write a figure."""
    figure.savefig(path, dpi=130)
    print(f"figure: {path}")
