"""What a page is made of, as plain text: nothing here is escaped, and nothing knows HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["good", "open", "caution", "alarm"]


@dataclass(frozen=True)
class Banner:
    """The verdict in a word and a line; ``tone`` is the colour that goes with it."""

    word: str
    tone: Tone
    line: str


@dataclass(frozen=True)
class Number:
    """One of the three numbers: what it is called, its value as it is read, and the line that says what it means."""

    name: str
    value: str
    line: str


@dataclass(frozen=True)
class Table:
    """A table; ``is_text`` says which columns hold words."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_text: tuple[bool, ...]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A plot: SVG with ids of its own, what it shows in words, and how to read it."""

    name: str
    title: str
    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Contents:
    """Everything that a page says.

    Attributes
    ----------
    lines : tuple of str
        The verdict's.
    details : str
        What stands behind them.
    chips : tuple of str
        What else a reader must know at first sight: that the check was interrupted.
    made : tuple of (str, str)
        How the check was made: path, protocol, what was held, what was inferred.
    notes : tuple of str
    settings, provenance : tuple of (str, str)
        The arguments; versions, seed, commit and digest of the data.
    figures, not_drawn : tuple
        Plots, and why those that are missing are.
    """

    kind: Literal["check", "debug"]
    model: str
    banner: Banner
    lines: tuple[str, ...]
    details: str
    chips: tuple[str, ...]
    numbers: tuple[Number, ...]
    figures: tuple[Figure, ...]
    not_drawn: tuple[str, ...]
    tables: tuple[Table, ...]
    made: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, str], ...]
