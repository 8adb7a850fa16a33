"""Places that Stan's messages name, in the user's own files: put into the C++ before it is compiled."""

from __future__ import annotations

import re

from bread.backends.stan.analysis.program import Program
from bread.backends.stan.native.build import ORIGINAL_PLACE, TEMPERED_PLACE

_PLACE = re.compile(
    r"\(in '(?P<file>[^']*)', line (?P<line>\d+)"
    r"(?:, column (?P<column>\d+) to (?:line (?P<last>\d+), )?column (?P<end>\d+))?\)"
)


def in_users_files(code: str, program: Program) -> str:
    """Return C++ whose messages name the user's files, lines and columns.

    stanc counts in the program that it translates, whose lines are those of the program with its includes inserted,
    and whose columns are moved by what bread wrote into them, unless it is the original one.
    """
    tempered, original = (prefix + program.source.name for prefix in (TEMPERED_PLACE, ORIGINAL_PLACE))

    def replace(match: re.Match[str]) -> str:
        if match["file"] not in (tempered, original):
            return match[0]
        line = int(match["line"])
        origin = program.source.origin(line)
        place = f"in '{origin.file}', line {origin.line}"
        if match["column"] is None:
            return f"({place})"
        column, last, end = int(match["column"]), int(match["last"] or line), int(match["end"])
        if match["file"] == tempered:
            column, end = program.user_column(line, column), program.user_column(last, end)
        until = f"line {program.source.origin(last).line}, " if match["last"] else ""
        return f"({place}, column {column} to {until}column {end})"

    return _PLACE.sub(replace, code)
