"""A Stan program as the user wrote it: its text, its included files, and where each line came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from bread.errors import InvalidArgumentError, UnsupportedModelError

DEEPEST = 200  # files that include each other: GCC's own limit for C++ (-fmax-include-depth)
MOST_LINES = 1_000_000  # with includes: read in a second; files that include others twice reach any number
_INCLUDE = re.compile(r'^\s*#include\s+(?:"([^"\n]+)"|<([^>\n]+)>|([^\s"<>]+))')
_STRING_OR_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|#[^\n]*', re.DOTALL)


class StancOutput(NamedTuple):
    """What one run of stanc gave back."""

    returncode: int
    stdout: str
    stderr: str


class Stanc(Protocol):
    """Stan's compiler front end, run on a program text with these command-line options."""

    def __call__(self, text: str, *options: str) -> StancOutput:
        """Run stanc; never raises for a rejected program, the return code says so."""
        ...


class Place(NamedTuple):
    """A line of a file of the user's."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file!r}, line {self.line}"


@dataclass(frozen=True)
class Source:
    """A program with its includes inserted.

    Attributes
    ----------
    text : str
        The program; every ``#include`` line is replaced by the lines of its file.
    name : str
        The name that messages use for the program.
    origins : tuple of Place
        Where each line of ``text`` stands in the user's files.
    """

    text: str
    name: str
    origins: tuple[Place, ...] = field(repr=False)

    @classmethod
    def from_text(cls, text: str, name: str = "program.stan", include_paths: Sequence[Path] = ()) -> Source:
        """Read a program from its text; ``#include`` is looked up in ``include_paths``, in order."""
        lines, origins = _Expansion(tuple(include_paths)).expand(text, name, (name,))
        return cls("\n".join(lines), name, tuple(origins))

    @classmethod
    def from_file(cls, path: Path, include_paths: Sequence[Path] = ()) -> Source:
        """Read a program from a ``.stan`` file; its own folder is searched last for included files."""
        try:
            text = _read(path)
        except FileNotFoundError:
            raise InvalidArgumentError(
                f"There is no Stan program at {str(path)!r}. Pass the path of a .stan file, or the text of a program."
            ) from None
        return cls.from_text(text, path.name, (*include_paths, path.parent))

    def origin(self, line: int) -> Place:
        """Return the user's file and line of line ``line`` (from 1) of ``text``."""
        return self.origins[min(max(line, 1), len(self.origins)) - 1]

    @property
    def code(self) -> str:
        """``text`` with comments and line ends as spaces: same offsets, safe to quote on one line."""
        return blank_comments(self.text)


def blank_comments(text: str) -> str:
    """Replace comments and line ends by spaces, leaving every offset as it is."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else " " * len(found)

    return re.sub(r"\s", " ", _STRING_OR_COMMENT.sub(blank, text))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InvalidArgumentError(
            f"The Stan program {str(path)!r} cannot be read: {reason}. Pass the path of a .stan file."
        ) from None


class _Expansion:
    """A program's lines with those of its includes, and how many there are so far."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = paths
        self._n_lines = 0

    def expand(self, text: str, name: str, stack: tuple[str, ...]) -> tuple[list[str], list[Place]]:
        """Return lines and their origins; ``stack``: the files that are being read, the innermost last."""
        lines: list[str] = []
        origins: list[Place] = []
        for number, line in enumerate(text.split("\n"), start=1):
            match = _INCLUDE.match(line)
            self._n_lines += 1
            if self._n_lines > MOST_LINES:
                raise UnsupportedModelError(
                    f"{name!r}, line {number}: with its includes the program has more than {MOST_LINES} lines. Include "
                    "each file once."
                )
            if match is None:
                lines.append(line.rstrip("\r"))
                origins.append(Place(name, number))
                continue
            wanted = next(group for group in match.groups() if group)
            inner_lines, inner_origins = self._included(wanted, f"{name!r}, line {number}: #include {wanted}", stack)
            lines += inner_lines
            origins += inner_origins
        return lines, origins

    def _included(self, wanted: str, what: str, stack: tuple[str, ...]) -> tuple[list[str], list[Place]]:
        if wanted in stack:
            raise UnsupportedModelError(f"{what} includes itself.")
        if len(stack) > DEEPEST:
            raise UnsupportedModelError(f"{what} is nested more than {DEEPEST} deep. Include it from a file above.")
        path = next((folder / wanted for folder in self._paths if (folder / wanted).is_file()), None)
        if path is None:
            searched = ", ".join(repr(str(folder)) for folder in self._paths) or "no folder"
            raise UnsupportedModelError(
                f"{what} was not found (searched: {searched}). Pass the folder in include_paths, as to stanc."
            )
        return self.expand(_read(path).removesuffix("\n"), wanted, (*stack, wanted))
