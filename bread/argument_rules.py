"""What the value of an argument must be, and how a message names the one that was received."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from bread.errors import InvalidArgumentError

MOST = 2**31 - 1  # of a count: the largest int of C, in which processes and Stan count
_LONGEST = 200  # characters of a value in a message of one line


def received(value: Any) -> str:
    """Return a value on one line: cut where it is long, by its type where it has more lines or cannot be shown."""
    try:
        text = repr(value)
    except Exception:  # the user's own
        text = ""
    if not text or len(text.splitlines()) > 1:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number (True and False are not)."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # beyond every float
        return False


def is_count(value: Any, least: int, most: int | None = MOST) -> bool:
    """Return whether a value is a whole number from ``least`` to ``most`` (True and False are not)."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and least <= int(value) and (most is None or int(value) <= most)


def elements(value: Any) -> tuple[Any, ...] | None:
    """Return what a sequence, a set or an array holds; None for text, a dict and what holds nothing."""
    if isinstance(value, (str, bytes, Mapping, type)):
        return None
    try:
        return tuple(value)
    except TypeError:  # an array without dimensions too
        return None


def require_count(name: str, value: Any, least: int, also: str = "") -> None:
    """Raise InvalidArgumentError unless ``value`` is a whole number of at least ``least``; ``also``: what else goes."""
    if not is_count(value, least):
        most = f" and <= {MOST}" if is_count(value, least, None) else ""
        raise InvalidArgumentError(f"{name} must be {also}a whole number >= {least}{most}, got {received(value)}.")


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise InvalidArgumentError unless ``value`` is one of ``choices``."""
    if not (isinstance(value, str) and value in choices):
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, got {received(value)}.")


def require_call(name: str, function: Any, arguments: Sequence[str]) -> None:
    """Raise InvalidArgumentError unless ``function`` can be called with these arguments, named for the message."""
    text = f"{name} must be a function that is called as f({', '.join(arguments)})"
    if not callable(function):
        raise InvalidArgumentError(f"{text}, got {received(function)}.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InvalidArgumentError(f"{text}, got one that takes {signature}.") from None


def require_flag(name: str, value: Any) -> None:
    """Raise InvalidArgumentError unless ``value`` is True or False (of NumPy too), 1 or 0."""
    if type(value).__name__ not in ("bool", "bool_") and not is_count(value, 0, 1):
        raise InvalidArgumentError(f"{name} must be True or False, got {received(value)}.")
