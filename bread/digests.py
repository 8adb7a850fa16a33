"""Digests of values that are the same in every process: of tasks, models and arguments.

A pickle will not do: it tells objects that are shared from equal ones, and keeps the order of sets. Here a value is
taken apart, equal parts give equal digests, and what an object has merely cached does not count.
"""

from __future__ import annotations

import enum
import hashlib
import struct
from collections.abc import Iterable
from functools import cached_property
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.random import SeedSequence

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def digest(value: Any) -> str:
    """Return a digest of a value (64 hexadecimal digits): equal in every process for equal values.

    Arrays count by type, shape and content; functions by their code, what they enclose, and the numbers and functions
    of their own module that they use; objects by their class and what they would pickle.
    """
    return _Parts().digest(value).hex()


class _Parts:
    """Digests of parts, and the objects that are being taken apart: one of them inside itself counts by its depth."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}

    def digest(self, value: Any) -> bytes:
        if isinstance(value, enum.Enum):
            return _joined("enum", [_name(type(value)), value.name.encode()])
        if type(value) in _PLAIN:
            return _joined(type(value).__name__, [_plain(value)])
        if isinstance(value, (type, ModuleType, BuiltinFunctionType, np.ufunc)):
            return _joined("name", [_name(value)])
        if id(value) in self._open:
            return _joined("again", [str(self._open[id(value)]).encode()])
        self._open[id(value)] = len(self._open)
        try:
            return self._taken_apart(value)
        finally:
            del self._open[id(value)]

    def _all(self, values: Iterable[Any]) -> list[bytes]:
        return [self.digest(value) for value in values]

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> list[bytes]:
        return sorted(b"".join(self._all(item)) for item in items)

    def _taken_apart(self, value: Any) -> bytes:
        kind = type(value)
        if kind in (tuple, list):
            return _joined(kind.__name__, self._all(value))
        if kind in (set, frozenset):
            return _joined(kind.__name__, sorted(self._all(value)))
        if kind is dict:
            return _joined("dict", self._pairs(value.items()))
        if isinstance(value, (np.ndarray, np.generic)) and kind.__module__ == "numpy":
            return self._array(np.asarray(value), kind.__name__)
        if kind is SeedSequence:
            return _joined("seeds", self._pairs({**value.state, "pool": value.pool}.items()))
        if kind is MethodType:
            return _joined("method", self._all([value.__func__, value.__self__]))
        if kind is FunctionType:
            return self._function(value)
        if kind is CodeType:
            return self._code(value)
        return self._object(value)

    def _array(self, value: np.ndarray[Any, Any], kind: str) -> bytes:
        content = b"".join(self._all(value.ravel())) if value.dtype.hasobject else np.ascontiguousarray(value).tobytes()
        return _joined(kind, [value.dtype.str.encode(), str(value.shape).encode(), content])

    def _function(self, function: FunctionType) -> bytes:
        enclosed = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        parts = [function.__defaults__, function.__kwdefaults__, enclosed, self._used(function)]
        return _joined("function", [_name(function), self._code(function.__code__), *self._all(parts)])

    def _used(self, function: FunctionType) -> dict[str, Any]:
        """Return the global numbers, texts and arrays that a function uses, and functions of the same module."""
        values = ((name, function.__globals__.get(name)) for name in function.__code__.co_names)
        return {
            name: value
            for name, value in values
            if type(value) in (*_PLAIN, np.ndarray)
            or (isinstance(value, FunctionType) and value.__module__ == function.__module__)
        }

    def _code(self, code: CodeType) -> bytes:
        constants = [one for one in code.co_consts if not isinstance(one, str) or one != code.co_name]
        return _joined("code", [code.co_code, *self._all([code.co_names, code.co_varnames, constants])])

    def _object(self, value: Any) -> bytes:
        kind = type(value)
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # what cannot be pickled
            return _joined(
                "object", [_name(kind), self.digest(_state(kind, vars(value)) if _has_dict(value) else None)]
            )
        if isinstance(reduced, str):
            return _joined("name", [_name(kind), reduced.encode()])
        function, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        parts = [function, arguments, _state(kind, state), list(items or ()), dict(pairs or ())]
        return _joined("object", [_name(kind), *self._all(parts)])


def _joined(kind: str, parts: Iterable[bytes]) -> bytes:
    """Return a digest of parts, each with its length, so that no two lists of parts read alike."""
    found = hashlib.sha256(kind.encode())
    for part in parts:
        found.update(struct.pack("<q", len(part)))
        found.update(part)
    return found.digest()


def _plain(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return repr(value).encode()


def _name(value: Any) -> bytes:
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", getattr(value, "__name__", ""))
    return f"{module}.{name}".encode()


def _state(kind: type, state: Any) -> Any:
    """Return the state of an object without what it has cached."""
    if type(state) is not dict:
        return state
    return {name: item for name, item in state.items() if not isinstance(_member(kind, name), cached_property)}


def _member(kind: type, name: Any) -> Any:
    return getattr(kind, name, None) if isinstance(name, str) else None


def _has_dict(value: Any) -> bool:
    return hasattr(value, "__dict__")


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # of a function that is still being defined
        return False
