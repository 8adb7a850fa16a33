"""The headers that all C modules of PyTensor begin with, read once by GCC (a precompiled header)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytensor
from pytensor.link.c import cmodule

HEADERS = ("math.h", "numpy/arrayobject.h", "numpy/arrayscalars.h", "numpy/npy_math.h")
FREE_HEADERS = ("vector", "algorithm")  # of the standard library: where they are not asked for, they do no harm
HEADER = """#ifndef BREAD_HEADERS
#define BREAD_HEADERS
#include_next <Python.h>
{}
#endif
"""
TRIAL = """#include <Python.h>
int trial(PyObject *object) { return object == nullptr || PyArray_Check(object); }
"""


def begins_alike(source: str) -> bool:
    """Return whether a file includes the headers of `precompiled_headers` before anything that could change them."""
    names = list(_first_includes(source))
    return names[:1] == ["Python.h"] and set(HEADERS) <= set(names)


def _first_includes(source: str) -> Iterator[str]:
    for line in source.splitlines():
        if not line.startswith("#include"):
            return
        yield line.removeprefix("#include").strip(' <>"')


def precompiled_headers(place: Path, arguments: Sequence[str]) -> Path | None:
    """Return the folder, where GCC now finds the headers read; None where that is not possible.

    GCC looks for ``Python.h.gch`` in a folder before it looks for ``Python.h``, takes it if it was made with the same
    arguments, and is silent if it was not: then the plain header in this folder leads on to Python's own.
    """
    if sys.platform != "linux" or "g++" not in Path(pytensor.config.cxx).name:
        return None
    place.mkdir()
    header, trial = place / "Python.h", place / "trial.cpp"
    includes = "\n".join(f"#include <{name}>" for name in (*HEADERS, *FREE_HEADERS))
    header.write_text(HEADER.format(includes), encoding="utf-8")
    trial.write_text(TRIAL, encoding="utf-8")
    flags = [cmodule.get_gcc_shared_library_arg(), "-g", *arguments, "-fvisibility=hidden"]
    folders = [f"-I{one}" for one in cmodule.std_include_dirs()]
    steps = (
        [*folders, "-x", "c++-header", str(header), "-o", f"{header}.gch"],
        [f"-I{place}", *folders, "-fsyntax-only", "-Winvalid-pch", "-Werror=invalid-pch", str(trial)],
    )
    for step in steps:
        done = subprocess.run([pytensor.config.cxx, *flags, *step], capture_output=True, check=False)
        if done.returncode != 0:
            return None
    return place
