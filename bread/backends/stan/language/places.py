"""Places in a program as stanc writes them, put into the user's own files, and read back from Stan's messages.

stanc counts in the program that it is given, whose lines are those of the user's with its includes inserted. It never
sees the user's file names: it is given a name of bread's, which is replaced here. A file name may hold any character;
messages quote it as `repr` does, on one line, with quotes and backslashes that can be read back, and C++ holds it as
the literal of that text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bread.backends.stan.language.source import Source

STANC_NAME = "program.stan"  # what stanc calls the program that it checks

_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # as `repr` quotes a text
_SPAN = r"line \d+(?:, column \d+(?: to (?:line \d+, )?column \d+)?)?"
_PLACE = re.compile(rf"\(in {_QUOTED}, {_SPAN}\)")
_PLACE_OR_SPACE = re.compile(rf"({_PLACE.pattern})|\s+")
_LETTERS = {'"': '"', "\\": "\\", "\n": "n", "\t": "t", "\r": "r", "\b": "b"}
_STANC_PLACE = re.compile(
    r"in '(?P<file>[^'\n]*)', line (?P<line>\d+)"
    r"(?:, column (?P<column>\d+)(?: to (?:line (?P<last>\d+), )?column (?P<end>\d+))?)?"
)


def in_users_files(
    text: str,
    name: str,
    source: Source,
    *,
    user_column: Callable[[int, int], int] = lambda line, column: column,
    escape: Callable[[str], str] = str,
) -> str:
    """Return a text of stanc's whose places name the user's files, lines and columns.

    Parameters
    ----------
    text : str
        An error message, or C++.
    name : str
        What stanc was told to call the program; other places are left as they are.
    source : Source
    user_column : callable
        Maps line and column of the translated program to the column in the user's text.
    escape : callable
        How the text writes a place: `literal_body` in C++.
    """

    def replace(match: re.Match[str]) -> str:
        if match["file"] != name:
            return match[0]
        line = int(match["line"])
        place = f"in {source.origin(line)}"
        if match["column"] is not None:
            place += f", column {user_column(line, int(match['column']))}"
        if match["end"] is not None:
            last = int(match["last"] or line)
            until = f"line {source.origin(last).line}, " if match["last"] else ""
            place += f" to {until}column {user_column(last, int(match['end']))}"
        return escape(place)

    return _STANC_PLACE.sub(replace, text)


def literal_body(text: str) -> str:
    r"""Return what stands between the quotes of a C++ literal of ``text`` in UTF-8, escaped as stanc escapes.

    Quotes and backslashes get a backslash; other bytes outside printable ASCII, where C++ has no letter for them, three
    octal digits: ``\303\251`` for é.
    """
    return "".join(_escaped(byte) for byte in text.encode("utf-8"))


def _escaped(byte: int) -> str:
    character = chr(byte)
    if character in _LETTERS:
        return "\\" + _LETTERS[character]
    return character if " " <= character <= "~" else f"\\{byte:03o}"


def place_of(message: str) -> str:
    """Return the place in the program that a run-time message names, innermost first; "" if it names none."""
    found = _PLACE.search(message)
    return found.group(0) if found else ""


def without_place(message: str) -> str:
    """Return a run-time message without its place, which may lie in code that bread wrote."""
    place = place_of(message)
    return message.replace(place, "").strip() if place else message.strip()


def on_one_line(message: str) -> str:
    """Return a run-time message on one line: line ends and runs of spaces become one space, outside of file names."""
    return _PLACE_OR_SPACE.sub(lambda found: found[1] or " ", message).strip()
