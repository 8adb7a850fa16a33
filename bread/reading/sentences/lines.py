"""The form of every verdict: a line with the status, then labelled lines; at most eight, of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bread.reading.sentences.printable import printable

WIDTH = 100  # columns of a line
MOST = 8  # lines
LABEL = 17  # columns of the label and what is between it and the text
ROOM = WIDTH - LABEL  # columns of the text
MORE = "verdict.details, bread.plot(report), bread.summary(report)"
_SHORTEST = 12  # letters that a name keeps at least
LETTERS = 24  # of a name in a line that must hold more than it
_CUT = "..."

Row = tuple[str, str]  # label and text; a label "" goes on with the one above


@dataclass(frozen=True)
class Answer:
    """What a verdict says, before it is laid out in lines.

    Attributes
    ----------
    status : str
    finding : str
        What stands behind the status in the first line; "" for nothing.
    rows : tuple of (str, str)
        Labels and texts, each an answer to a question; those without a text are left out.
    warnings : tuple of str
        Counted in the first line; the first one is shown.
    advice : str
        What to do now; where there is nothing to do, the last line says where there is ``more``.
    details : str
        Everything else, as sentences.
    numbers : mapping
        Attributes of the verdict.
    """

    status: str
    finding: str = ""
    rows: tuple[Row, ...] = ()
    warnings: tuple[str, ...] = ()
    advice: str = ""
    more: str = MORE
    details: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def spelt(self, spell: Callable[[str], str]) -> Answer:
        """Return the same with messages spelt for another reader."""
        return replace(
            self,
            finding=spell(self.finding),
            rows=tuple((label, spell(text)) for label, text in self.rows),
            warnings=tuple(map(spell, self.warnings)),
            advice=spell(self.advice),
            more=spell(self.more),
            details=spell(self.details),
        )

    def lines(self) -> tuple[str, ...]:
        """Return at most `MOST` lines of at most `WIDTH` columns, such as a terminal may show."""
        warnings = tuple(one for one in self.warnings if one)
        ending = f", {counted(len(warnings), 'warning')}" if warnings else ""
        first = self.status.upper() + (f": {printable(self.finding)}" if self.finding else "")
        tail = [("Do now", self.advice) if self.advice else ("More", self.more)]
        if warnings:
            others = f" (and {len(warnings) - 1} more: verdict.details)" if len(warnings) > 1 else ""
            tail = [("WARNING", f"{cut(printable(warnings[0]), 2 * ROOM - len(others) - 1)}{others}"), *tail]
        rows = [(label, text) for label, text in self.rows if text]
        if not self.advice and sum(len(_pieces(text)) for _, text in [*rows, *tail]) >= MOST:
            tail.pop()  # the room is needed for what there is to say
        return cut(first, WIDTH - len(ending)) + ending, *_laid_out(rows[: MOST - 1 - len(tail)], tail)


def _pieces(text: str) -> list[str]:
    return textwrap.wrap(printable(text), ROOM, break_on_hyphens=False)


def _laid_out(rows: list[Row], tail: list[Row]) -> list[str]:
    """Return a line or more for each row: while there is room, the last ones first, then from the top."""
    every = [*rows, *tail]
    texts = [_pieces(text) for _, text in every]
    spare = MOST - 1 - len(every)
    shown = [1] * len(every)
    for i in [*range(len(rows), len(every)), *range(len(rows))]:
        more = min(spare, len(texts[i]) - 1)
        shown[i], spare = 1 + more, spare - more
    lines = []
    for (label, _), pieces, number in zip(every, texts, shown, strict=True):
        kept = pieces[:number]
        if number < len(pieces):
            kept[-1] = cut(" ".join(pieces[number - 1 :]), ROOM)
        lines += [f"{label if not i else '':<{LABEL}}{piece}".rstrip() for i, piece in enumerate(kept)]
    return lines


def cut(text: str, room: int) -> str:
    """Return a text of at most so many columns, cut between two words where it is longer."""
    if len(text) <= room:
        return text
    begun = text[: room - len(_CUT)]
    head, _, _ = begun.rpartition(" ")
    return (head if 2 * len(head) > room else begun).rstrip(" ,;:(") + _CUT


def short(name: str, room: int) -> str:
    """Return a name of at most so many letters: beginning and end, which holds indices, with an ellipsis between."""
    name = printable(name)
    if len(name) <= room:
        return name
    end = (room - len(_CUT)) // 2
    return name[: room - len(_CUT) - end] + _CUT + name[len(name) - end :]


def fitted(text: str, *names: str, room: int = ROOM) -> str:
    """Return a text that fits into ``room``, as far as that can be had from shorter ``names`` in it."""
    for name in sorted({name for name in names if name}, key=len, reverse=True):
        excess = len(text) - room
        if excess > 0:
            text = text.replace(name, short(name, max(_SHORTEST, len(name) - excess)))
    return text


def counted(number: int, what: str) -> str:
    """Return "1 warning", "2 warnings"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
