"""C modules of a function, compiled side by side before PyTensor asks for them one after another.

PyTensor writes a C++ file for every operation of a graph, some twenty to sixty, and waits for the compiler each time:
nearly all of the time to a first draw. The files, and what is kept of them, are PyTensor's own; only the order changes.
A header that all of them begin with is read once (a precompiled header of GCC), which halves what is left.

Whatever fails here, PyTensor does again in its own way and reports.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import pytensor
from loky import cpu_count
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.link.c import cmodule
from pytensor.link.c.basic import CLinker
from pytensor.link.c.op import COp
from pytensor.link.vm import VMLinker

from bread.backends.pymc.density.pytensor_fixes.common_headers import begins_alike, precompiled_headers
from bread.scratch import scratch_folder

MOST_AT_ONCE = 16  # compilers, each some 150 MB
ENOUGH = 4  # modules that are worth a precompiled header, which takes as long as two of them


class SideBySide(VMLinker):
    """PyTensor's linker, which finds the modules of a function compiled."""

    def make_all(self, *arguments: Any, **options: Any) -> Any:
        """Compile what is not there yet, then link as PyTensor does."""
        with contextlib.suppress(Exception):
            compile_modules(self.fgraph)
        return super().make_all(*arguments, **options)


def with_modules_side_by_side(mode: Any) -> Any:
    """Return a mode that differs in how modules are compiled; the same mode where it compiles none in this way.

    Parameters
    ----------
    mode : str, Mode or None
        None stands for the default.
    """
    plain = get_mode(mode)
    linker = plain.linker
    if type(linker) is not VMLinker or not linker.use_cloop or linker.c_thunks is False or not pytensor.config.cxx:
        return mode
    side_by_side = SideBySide(
        allow_gc=linker.allow_gc, use_cloop=True, callback=linker.callback, callback_input=linker.callback_input,
        lazy=linker.lazy, schedule=linker.schedule, c_thunks=linker.c_thunks,
        allow_partial_eval=linker.allow_partial_eval,
    )  # fmt: skip
    return Mode(linker=side_by_side, optimizer=plain.provided_optimizer)


def compile_modules(graph: Any) -> int:
    """Compile the C modules that the operations of a graph need and PyTensor's cache lacks; return how many."""
    cache = cmodule.get_module_cache(pytensor.config.compiledir)
    missing: dict[str, _Module] = {}
    for node in graph.toposort():
        if isinstance(node.op, COp):
            with contextlib.suppress(Exception):  # an operation without C code
                module = _Module(node)
                if not module.is_in(cache):
                    missing.setdefault(module.digest, module)
    if len(missing) < 2:
        return 0
    modules = list(missing.values())
    with scratch_folder() as folder:
        _compile(modules, folder)
        for module in modules:
            with contextlib.suppress(Exception):
                module.put_into(cache)
    return sum(module.is_compiled for module in modules)


class _Module:
    """The C module of one operation: its source, and where it was compiled."""

    def __init__(self, node: Any) -> None:
        self._linker = CLinker().accept(FunctionGraph(node.inputs, node.outputs), no_recycling=[])
        self._key = self._linker.cmodule_key()
        self._found: Path | None = None
        if not self._key or not self._key[0]:
            raise ValueError("an operation without a version is not kept")
        for own in self._linker.node_order:
            own.op.prepare_node(own, None, None, "c")

    @property
    def is_compiled(self) -> bool:
        """Whether there is a library."""
        return self._found is not None

    @cached_property
    def digest(self) -> str:
        """Name of the source and what it is compiled with."""
        return str(cmodule.get_module_hash(self.source, self._key))

    @cached_property
    def source(self) -> str:
        """C++ code."""
        return str(self._linker.get_src_code())

    @cached_property
    def arguments(self) -> list[str]:
        """Of the compiler."""
        return list(self._linker.compile_args())

    def is_in(self, cache: Any) -> bool:
        """Return whether PyTensor has it, under its key (then it is loaded) or with the same source."""
        try:
            cache.module_from_key(key=self._key, lnk=_Asking())
        except _NotThereError:
            return self.digest in cache.module_hash_to_key_data
        return True

    def compile(self, folder: Path, headers: Path | None) -> None:
        """Compile it in a folder of its own."""
        module, linker = self._linker.get_dynamic_module(), self._linker
        first = [str(headers)] if headers is not None and begins_alike(self.source) else []
        folder.mkdir()
        linker.c_compiler().compile_str(
            module_name=module.code_hash, src_code=self.source, location=str(folder), lib_dirs=linker.lib_dirs(),
            include_dirs=[*first, *linker.header_dirs()], libs=linker.libraries(), preargs=self.arguments,
            py_module=False,
        )  # fmt: skip
        self._found = folder / f"{module.code_hash}.{cmodule.get_lib_extension()}"

    def put_into(self, cache: Any) -> None:
        """Let PyTensor keep it under its own key."""
        if self._found is not None and self._found.is_file():
            cache.module_from_key(key=self._key, lnk=_Compiled(self._linker, self._found))


class _NotThereError(Exception):
    """PyTensor's cache asks for a source, to compile it."""


class _Asking:
    """What PyTensor's cache takes for a linker, to ask whether it has a module; before it locks or reads its folder."""

    def get_src_code(self) -> str:
        raise _NotThereError


class _Compiled:
    """The same with a library that is there."""

    def __init__(self, linker: Any, library: Path) -> None:
        self._linker, self._library = linker, library

    def get_src_code(self) -> str:
        return str(self._linker.get_src_code())

    def compile_cmodule(self, location: str) -> Any:
        place = Path(location)
        for file in (self._library, self._library.parent / "mod.cpp"):
            shutil.copy(file, place / file.name)
        (place / "__init__.py").touch()
        return cmodule.dlimport(str(place / self._library.name))


def _compile(modules: Sequence[_Module], folder: Path) -> None:
    """Compile each in a folder of its own, as many at a time as there are cores."""
    with ThreadPoolExecutor(min(cpu_count(), MOST_AT_ONCE, len(modules))) as pool:
        kinds: dict[tuple[str, ...], list[_Module]] = {}
        for module in modules:
            if begins_alike(module.source):
                kinds.setdefault(tuple(module.arguments), []).append(module)
        wanted = [arguments for arguments, alike in kinds.items() if len(alike) >= ENOUGH]
        places = [folder / f"headers-{number}" for number in range(len(wanted))]
        headers = dict(zip(wanted, pool.map(precompiled_headers, places, wanted), strict=True))

        def compile_one(number: int) -> None:
            module = modules[number]
            with contextlib.suppress(Exception):
                module.compile(folder / str(number), headers.get(tuple(module.arguments)))

        longest_first = sorted(range(len(modules)), key=lambda number: -len(modules[number].source))
        for _ in pool.map(compile_one, longest_first):
            pass
