"""Digests of values that are the same in every process: of tasks, models and arguments.

A pickle will not do: it tells objects that are shared from equal ones, and keeps the order of sets; and of functions
and classes it holds but the names. Here a value is taken apart, equal parts give equal digests, what an object has
merely cached does not count, and code of the user's does, with all that it refers to (`bread.own_code`).

Values that refer to each other form a graph. Each group that goes round in circles gets its digests together: every
member begins with what it is by itself, and takes in the digests of those it refers to until no two members part any
more; all of these together then say what the group is. So it does not matter where one begins, nor what is shared.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import hashlib
import struct
import weakref
from collections.abc import Iterable, Sequence
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.own_code import binary, enclosed, is_library, is_library_code, is_named, referred

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_GLOBAL_STATE = getattr(np.random.mtrand, "_rand", None)  # of NumPy's, which no check depends on
# Of a class: what Python keeps beside what was written, and how it is documented.
_BESIDE = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotate__",
    "__annotate_func__", "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__slotnames__",
    "_abc_impl",
}  # fmt: skip


def digest(value: Any) -> str:
    """Return a digest of a value (64 hexadecimal digits): equal in every process for equal values.

    Arrays count by type, shape and content. Functions and classes of the user's by their code, what they enclose and
    all that they refer to; those of libraries by name. Objects by their class and what they would pickle.
    """
    return Digests().of(value)


@functools.singledispatch
def described(value: Any) -> Any:
    """Return what stands for a value: itself, but where a backend has registered what its language's objects are."""
    return value


class _Node:
    """A value that is being taken apart: what it is by itself, and its parts."""

    def __init__(self, value: Any, place: int, head: bytes, parts: Sequence[Any], is_ordered: bool) -> None:
        self.value = value  # kept, so that nothing else gets its id
        self.place = self.low = place
        self.head, self.left, self.is_ordered = head, iter(parts), is_ordered
        self.parts: list[bytes | _Node] = []
        self.digest: bytes | None = None

    def joined(self, others: dict[int, bytes]) -> bytes:
        """Return the digest with those of the parts, or what stands for them so far."""
        parts = [part if isinstance(part, bytes) else part.digest or others[part.place] for part in self.parts]
        return _joined("node", [self.head, *(parts if self.is_ordered else sorted(parts))])


class Digests:
    """Digests of several values.

    Attributes
    ----------
    unknown : dict
        What could not be taken apart, in words: it counts by its kind alone.
    packages : set of str
        Packages whose classes and functions were met.
    """

    def __init__(self) -> None:
        self.unknown: dict[str, None] = {}
        self.packages: set[str] = set()
        self._nodes: dict[int, _Node] = {}
        self._circle: list[_Node] = []

    def of(self, value: Any) -> str:
        """Return the digest of a value."""
        found = self._known(value)
        if isinstance(found, bytes):
            return found.hex()
        path = [found or self._begun(value)]
        while path:
            node = path[-1]
            for part in node.left:
                known = self._known(part)
                child = known or self._begun(part)
                node.parts.append(child)
                if known is None:
                    path.append(child)  # type: ignore[arg-type]
                    break
                if isinstance(known, _Node) and known.digest is None:
                    node.low = min(node.low, known.place)
            else:
                path.pop()
                if path:
                    path[-1].low = min(path[-1].low, node.low)
                if node.low == node.place:
                    self._finish(node)
        first = self._nodes[id(value)].digest
        assert first is not None
        return first.hex()

    def _known(self, value: Any) -> bytes | _Node | None:
        """Return the digest of what has no parts, or the node of what was met before."""
        if type(value) in _PLAIN:
            return _joined(type(value).__name__, [_plain(value)])
        return self._nodes.get(id(value))

    def _begun(self, value: Any) -> _Node:
        try:
            head, parts, is_ordered = self._taken_apart(value)
        except Exception as error:  # whatever code of the user's raises
            kind = type(value)
            named = _name(value).decode() if isinstance(value, (FunctionType, type)) else ""
            said = f" ({str(error).splitlines()[0]})" if str(error) else ""
            self.unknown[f"{named or 'a value of type ' + _name(kind).decode()}{said}"] = None
            head, parts, is_ordered = _joined("unknown", [_name(kind)]), (), True
        node = self._nodes[id(value)] = _Node(value, len(self._nodes), head, parts, is_ordered)
        self._circle.append(node)
        return node

    def _finish(self, first: _Node) -> None:
        """Give their digests to all that go round in circles with this one."""
        place = self._circle.index(first)
        members, self._circle = self._circle[place:], self._circle[:place]
        found = {node.place: node.head for node in members}
        n_before = 0
        while len(set(found.values())) > n_before:
            n_before = len(set(found.values()))
            found = {node.place: node.joined(found) for node in members}
        whole = sorted(set(found.values()))  # what is far away has not come round yet
        for node in members:
            node.digest = _joined("circle", [found[node.place], *whole]) if len(members) > 1 else found[node.place]

    # -- what a value is, and its parts -----------------------------------------------------------------------

    def _taken_apart(self, value: Any) -> tuple[bytes, Sequence[Any], bool]:
        kind = type(value)
        if kind in (tuple, list):
            return _head(kind.__name__), value, True
        if kind in (set, frozenset):
            return _head(kind.__name__), list(value), False
        if kind in (dict, MappingProxyType):
            return _items(dict(value))
        if isinstance(value, (np.ndarray, np.generic)) and kind.__module__ == "numpy":
            return _array(np.asarray(value), kind.__name__)
        if kind is SeedSequence:
            return _items({**value.state, "pool": value.pool})
        if kind is MethodType:
            return _head("method"), [value.__func__, value.__self__], True
        if kind is CodeType:
            return _code(value)
        if isinstance(value, weakref.ReferenceType):
            return _head("reference"), [value()], True
        if isinstance(value, (staticmethod, classmethod)):
            return _head(kind.__name__), [value.__func__], True
        if isinstance(value, property):
            return _head("property"), [value.fget, value.fset, value.fdel], True
        if isinstance(value, functools.cached_property):
            return _head("cached property"), [value.func], True
        if isinstance(value, (MemberDescriptorType, GetSetDescriptorType)):
            return _head("slot", value.__name__), (), True
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, enum.Enum):
            return _head("enum", value.name), [kind, value.value], True
        stands_for = described(value)
        return (_head("as", kind), [stands_for], True) if stands_for is not value else self._object(value)

    def _function(self, function: FunctionType) -> tuple[bytes, Sequence[Any], bool]:
        if is_named(function):
            return self._library(function)
        parts = [function.__defaults__, function.__kwdefaults__, vars(function)]
        if is_library_code(function.__code__):  # made by a library, often for a function of the user's
            self._note(function.__module__)
            return _head("inner", function), [*parts, enclosed(function)], True
        return _head("function", function), [*parts, function.__code__, referred(function)], True

    def _class(self, kind: type) -> tuple[bytes, Sequence[Any], bool]:
        if is_named(kind):
            return self._library(kind)
        own = {name: value for name, value in vars(kind).items() if name not in _BESIDE}
        return _head("class", kind), [type(kind), kind.__bases__, own, binary(kind.__module__)], True

    def _module(self, module: ModuleType) -> tuple[bytes, Sequence[Any], bool]:
        name = module.__name__
        if is_library(name):
            self._note(name)
            return _head("name", name), (), True
        own = {name: value for name, value in vars(module).items() if not name.startswith("__")}
        return _head("module", name), [own, binary(name)], True

    def _library(self, value: Any) -> tuple[bytes, Sequence[Any], bool]:
        self._note(value.__module__)
        return _head("name", value), (), True

    def _note(self, module: str | None) -> None:
        self.packages.add((module or "").partition(".")[0])

    def _object(self, value: Any) -> tuple[bytes, Sequence[Any], bool]:
        kind = type(value)
        if value is _GLOBAL_STATE:
            return _head("name", "numpy.random"), (), True
        if kind is BuiltinFunctionType:
            owner = None if isinstance(value.__self__, (ModuleType, type)) else value.__self__
            return _head("name", value), [owner, binary(value.__module__)], True
        if kind.__module__ in ("ctypes", "_ctypes"):
            raise TypeError("it is at an address of this process")
        wrapped = _attribute(value, "__wrapped__")
        if isinstance(value, np.ufunc):
            return _ufunc(value)
        reduce = copyreg.dispatch_table.get(kind)
        reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
        if isinstance(reduced, str):
            if wrapped is None and not is_library(getattr(value, "__module__", kind.__module__)):
                raise TypeError("it is known by its name alone")
            return _head("name", kind, reduced), [wrapped], True
        function, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        parts = [function, arguments, _state(kind, state), list(items or ()), dict(pairs or ())]
        return _head("object", kind), [kind, wrapped, *parts], True


def _items(values: dict[Any, Any]) -> tuple[bytes, Sequence[Any], bool]:
    """Return the items of a dict, whose order does not count."""
    if all(type(key) is str for key in values):
        names = sorted(values)
        return _joined("dict", [_plain(name) for name in names]), [values[name] for name in names], True
    return _head("items"), list(values.items()), False


def _array(value: np.ndarray[Any, Any], kind: str) -> tuple[bytes, Sequence[Any], bool]:
    is_held = value.dtype.hasobject or value.dtype.kind == "T"  # the array holds addresses
    content = b"" if is_held else np.ascontiguousarray(value).tobytes()
    head = _joined(kind, [repr(value.dtype).encode(), str(value.shape).encode(), content])
    return head, value.ravel().tolist() if is_held else (), True


def _code(code: CodeType) -> tuple[bytes, Sequence[Any], bool]:
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    head = _joined("code", [code.co_code, code.co_exceptiontable, repr((counts, names)).encode()])
    return head, code.co_consts, True


def _ufunc(value: np.ufunc) -> tuple[bytes, Sequence[Any], bool]:
    """Return the name of a function of a library; one that NumPy made of a function of the user's hides it."""
    if "(vectorized)" in value.__name__:
        raise TypeError("NumPy does not show the function in it")
    return _head("ufunc", value.__name__), (), True


def _head(kind: str, *named: Any) -> bytes:
    return _joined(kind, [one.encode() if isinstance(one, str) else _name(one) for one in named])


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
    return f"{module}.{name}".encode("utf-8", "surrogatepass")


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute that an object has, not one that it would make."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


def _state(kind: type, state: Any) -> Any:
    """Return the state of an object without what it has cached."""
    if type(state) is not dict:
        return state
    return {
        name: item
        for name, item in state.items()
        if not (isinstance(name, str) and isinstance(getattr(kind, name, None), functools.cached_property))
    }
