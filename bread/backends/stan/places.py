"""Places that Stan's messages name, in the user's own files."""

from __future__ import annotations

import re

from bread.backends.stan.build import ORIGINAL_PLACE
from bread.backends.stan.program import Program

_PLACE = re.compile(
    r"\(in '(?P<file>[^']*)', line (?P<line>\d+)"
    r"(?:, column (?P<column>\d+) to (?:line (?P<last>\d+), )?column (?P<end>\d+))?\)"
)


def in_users_files(message: str, program: Program) -> str:
    """Return a run-time message with the user's files, lines and columns.

    Stan counts in the program that was compiled, whose lines are those of the program with its includes inserted, and
    whose columns are moved by what bread wrote into them, unless it is the original one.
    """

    def replace(match: re.Match[str]) -> str:
        if match["file"].removeprefix(ORIGINAL_PLACE) != program.source.name:
            return match[0]
        line = int(match["line"])
        place = f"in {program.source.origin(line)}"
        if match["column"] is None:
            return f"({place})"
        column, last, end = int(match["column"]), int(match["last"] or line), int(match["end"])
        if not match["file"].startswith(ORIGINAL_PLACE):
            column, end = program.user_column(line, column), program.user_column(last, end)
        until = f"line {program.source.origin(last).line}, " if match["last"] else ""
        return f"({place}, column {column} to {until}column {end})"

    return _PLACE.sub(replace, message)
