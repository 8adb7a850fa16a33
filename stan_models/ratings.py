"""Read ratings of films: MovieLens 100k's own `u.data`, and files like it.

A line holds user, item, rating and timestamp, separated by tabs (`u.data`) or by commas. The timestamp is not read and
may be left out. A header may come first: it names the columns, in any order (`userId`, `movieId`, `rating`); those of
other names are skipped.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("userId", "movieId", "rating")
ALIASES = {  # of columns, in small letters without blanks and underscores
    "user": "userId", "userid": "userId", "item": "movieId", "itemid": "movieId", "movieid": "movieId",
    "rating": "rating",
}  # fmt: skip
LEAST, MOST = 0.5, 5.0  # ratings of all of MovieLens's sets
Ratings = dict[str, NDArray[np.float64]]


def read_ratings(path: Path) -> Ratings:
    """Return the columns `userId`, `movieId` and `rating`.

    Raises
    ------
    ValueError
        The file is no text; a line is not three or four fields, a number is none or out of range, a user rated an item
        twice, the header lacks a column, or the file has no ratings; with the line and what it holds.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [(number, line.strip()) for number, line in enumerate(file, 1)]
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no UTF-8 text. Unpack an archive, and give the file u.data itself.") from None
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise ValueError(f"{path} has no ratings: it is empty. Give a file such as MovieLens 100k's u.data.")
    separator = "\t" if "\t" in lines[0][1] else ","
    rows = [(number, next(csv.reader([line], delimiter=separator))) for number, line in lines]
    places, has_header = _places(path, rows[0][1])
    seen: dict[tuple[int, int], int] = {}
    found = []
    for number, row in rows[has_header:]:
        user, item, rating = _numbers(f"{path}, line {number}", row, places, is_free=not has_header)
        first = seen.setdefault((user, item), number)
        if first != number:
            raise ValueError(
                f"{path}, line {number}: user {user} rates item {item} a second time, after line {first}. The matrix "
                "has one cell for both: leave one of the two lines out."
            )
        found.append((user, item, rating))
    if not found:
        raise ValueError(f"{path} has no ratings: nothing follows the header. Give a file such as u.data.")
    return {name: np.array(values, dtype=float) for name, values in zip(COLUMNS, zip(*found, strict=True), strict=True)}


def _places(path: Path, first: list[str]) -> tuple[tuple[int, ...], bool]:
    """Return where user, item and rating stand, and whether the first line is a header."""
    if any(_is_number(field) for field in first):
        return (0, 1, 2), False
    names = [ALIASES.get(re.sub(r"[\s_]", "", field).lower(), field) for field in first]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise ValueError(
            f"{path}: the first line is neither a rating nor a header with the columns {', '.join(COLUMNS)}: it lacks "
            f"{', '.join(missing)}; it is {first}. Fields are separated by tabs or by commas, the same in all lines."
        )
    return tuple(names.index(name) for name in COLUMNS), True


def _numbers(where: str, row: list[str], places: tuple[int, ...], *, is_free: bool) -> tuple[int, int, float]:
    if len(row) <= max(places) or (is_free and len(row) > 4):
        raise ValueError(
            f"{where}: a line is user, item, rating and, if there is one, a timestamp; this one has {len(row)} "
            f"fields: {row}. Fields are separated by tabs or by commas, the same in all lines."
        )
    user, item = (_identity(where, name, row[place]) for name, place in zip(("user", "item"), places, strict=False))
    field = row[places[2]]
    rating = float(field) if _is_number(field) else math.nan
    if not LEAST <= rating <= MOST:
        raise ValueError(f"{where}: a rating is a number from {LEAST:g} to {MOST:g}, not {field!r}.")
    return user, item, rating


def _identity(where: str, name: str, field: str) -> int:
    if not field.strip().isdecimal():
        raise ValueError(f"{where}: the {name} is a whole number, not {field!r}. Number {name}s, for example from 1.")
    return int(field)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
