"""What was made last, kept for the next call: an instance of a program is dear where its data are large."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")

MOST = 4  # values of one kind: the nodes of a fit test at one state


class Recent:
    """The values that were asked for last, by kind and key. Copies and pickles of it are empty."""

    def __init__(self) -> None:
        self._kept: dict[str, OrderedDict[Hashable, Any]] = {}

    def get(self, kind: str, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now if it is not among the last `MOST` of its kind.

        Parameters
        ----------
        kind : str
            What is kept: keys of different kinds are told apart.
        key : hashable
            All that the value depends on.
        make : callable
            Returns it. What it raises passes, and nothing is kept.
        """
        kept = self._kept.setdefault(kind, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            value: Value = kept[key]
            return value
        value = make()
        kept[key] = value
        while len(kept) > MOST:
            kept.popitem(last=False)
        return value

    def __reduce__(self) -> tuple[type[Recent], tuple[()]]:
        return Recent, ()
