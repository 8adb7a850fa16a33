"""Which code is the user's own, and what a function of theirs refers to when it runs."""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_OURS = "bread"
_SITES = {"site-packages", "dist-packages"}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_ENCLOSED = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_UNSEEN = {
    "eval",
    "exec",
    "globals",
    "locals",
    "__import__",
    "import_module",
    "modules",
}  # what they reach is in no code
_THEIRS = {"builtins", "importlib", "sys"}
_HEAP = 1 << 9  # of classes that are written in Python, or made at run time
_MISSING = object()


def is_library(module: str | None) -> bool:
    """Return whether a module belongs to Python, to bread or to an installed package: its version says what it is."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top == _OURS:
        return True
    files = (_file(sys.modules.get(name)) for name in (module or "", top))
    return any(file is not None and _is_installed(file) for file in files)


def is_library_code(code: CodeType) -> bool:
    """Return whether a function's code is of a library, whatever its function calls itself."""
    return code.co_filename.startswith("<frozen") or _is_installed(code.co_filename)


def is_named(value: Any) -> bool:
    """Return whether a class or function is what its library has under its name."""
    module, found = getattr(value, "__module__", None), _MISSING
    if isinstance(module, str) and is_library(module):
        if isinstance(value, type) and not value.__flags__ & _HEAP:  # such as that of functions, which has no name
            return True
        found = sys.modules.get(module, _MISSING)
        for name in getattr(value, "__qualname__", "").split("."):
            found = getattr(found, name, _MISSING)
    return found is value


def is_own(kind: type) -> bool:
    """Return whether a class is the user's, or was made for something of the user's."""
    return not is_named(kind)


def binary(module: str | None) -> bytes:
    """Return a digest of the file of a compiled module; nothing for others."""
    file = _file(sys.modules.get(module or ""))
    return b"" if file is None or file.endswith((".py", ".pyc")) else _digest_of_file(file)


def referred(function: FunctionType) -> dict[str, Any]:
    """Return what a function refers to outside its own code: globals, enclosed values, imports, by their names.

    Of a module of the user's only what is taken from it by name, if nothing else is done with the module.

    Raises
    ------
    TypeError
        The code reaches what cannot be seen in it.
    """
    code, namespace = function.__code__, function.__globals__
    cells = enclosed(function)
    found: dict[str, Any] = {}
    for scope, name, attributes in _loads(code):
        if scope == "import":
            value = _imported(name, namespace, attributes)
        elif scope == "global":
            if name in _UNSEEN and name not in namespace:
                raise TypeError(f"it uses {name}")
            value = namespace.get(name, _MISSING)
        else:
            value = cells.get(name, _MISSING)
        if value is not _MISSING:
            found |= {f"{scope} {path}": one for path, one in _taken(name, value, attributes)}
    passed_on = {f"enclosed {name}": value for name, value in cells.items() if not isinstance(value, ModuleType)}
    return found | passed_on


def enclosed(function: FunctionType) -> dict[str, Any]:
    """Return what a function encloses, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # of a function that is still being defined
            found[name] = cell.cell_contents
    return found


def _taken(name: str, value: Any, attributes: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield what code takes from a module of the user's by these attributes; any other value as it is."""
    while attributes and isinstance(value, ModuleType) and not is_library(value.__name__):
        inner = getattr(value, attributes[0], _MISSING)
        if inner is _MISSING:  # a module may make its attributes as they are asked for
            break
        name, value, attributes = f"{name}.{attributes[0]}", inner, attributes[1:]
    if isinstance(value, ModuleType) and value.__name__ in _THEIRS and _UNSEEN & set(attributes[:1]):
        raise TypeError(f"it uses {name}.{attributes[0]}")
    yield name, value


def _imported(name: str, namespace: dict[str, Any], wanted: tuple[str, ...]) -> Any:
    """Return the module that an import inside a function gives; missing where it gives none."""
    with suppress(ImportError, ValueError):
        full = importlib.util.resolve_name(name, namespace.get("__package__"))
        if is_library(full):
            return sys.modules.get(full, _MISSING)
        module = importlib.import_module(full)
        for one in wanted:
            if not hasattr(module, one):
                importlib.import_module(f"{full}.{one}")
        return module
    return _MISSING


@functools.lru_cache(maxsize=4096)
def _loads(code: CodeType) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return what code loads: (scope, name, attributes taken at once), with the code of functions inside it."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG")]
    for place, one in enumerate(instructions):
        scope = "global" if one.opname in _GLOBAL else "enclosed" if one.opname in _ENCLOSED else ""
        if one.opname == "IMPORT_NAME":
            names, name = instructions[place - 1].argval, "." * instructions[place - 2].argval + str(one.argval)
            if names:
                found += [("import", name, (wanted,)) for wanted in names]
            else:  # "import a.b" gives a
                found.append(("import", name.partition(".")[0], ()))
                found.append(("import", name, ()))
        elif scope:
            attributes = []
            for following in instructions[place + 1 :]:
                if following.opname not in _ATTRIBUTE:
                    break
                attributes.append(following.argval)
            found.append((scope, str(one.argval), tuple(attributes)))
    inner = [_loads(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return tuple(dict.fromkeys([*found, *(one for loads in inner for one in loads)]))


def _file(module: Any) -> str | None:
    found = getattr(module, "__file__", None)
    if isinstance(found, str):
        return found
    try:
        places = list(getattr(module, "__path__", ()))  # a package without a file
    except TypeError:
        return None
    return str(places[0]) if places else None


@functools.lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    path = Path(file)
    if _SITES & set(path.parts):
        return True
    places = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    return any(path.is_relative_to(place) for place in (*places, Path(__file__).parent))


@functools.lru_cache(maxsize=64)
def _digest_of_file(file: str) -> bytes:
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:
        return b""
