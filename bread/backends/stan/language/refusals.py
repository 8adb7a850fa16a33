"""What cannot be split or simulated exactly, with the construct, its place, and the way out."""

from __future__ import annotations

from dataclasses import dataclass

from bread.backends.stan.language.source import Place, Source
from bread.backends.stan.language.syntax import Node, line, source_text


@dataclass(frozen=True)
class Refusal:
    """Why a program is not split, or has no simulator.

    Attributes
    ----------
    construct : str
        The piece of the program, on one line.
    reason : str
        The rule that it breaks.
    remedy : str
        What to do about it.
    line : int
        Line of the program with its includes inserted.
    place : Place
        The user's file and line.
    flat : tuple of str
        Parameters without a proper prior, where that is the reason.
    """

    construct: str
    reason: str
    remedy: str
    line: int
    place: Place
    flat: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}: `{self.construct}`: {self.reason} {self.remedy}"


class RefusedError(Exception):
    """Carries a `Refusal` out of a derivation; caught where the program is put together."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def refuse(source: Source, node: Node, reason: str, remedy: str, flat: tuple[str, ...] = ()) -> RefusedError:
    """Make the error that refuses ``node``; see `Refusal`."""
    return RefusedError(Refusal(quote(source, node), reason, remedy, line(node), source.origin(line(node)), flat))


def quote(source: Source, node: Node, length: int = 100) -> str:
    """Return the text of ``node`` on one line without comments, shortened."""
    text = source_text(source, node)
    return text if len(text) <= length else text[: length - 3] + "..."
