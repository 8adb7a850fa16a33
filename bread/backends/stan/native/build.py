"""From a Stan program to a library: stanc, the C++ compiler, the driver, the cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bread.backends.stan.language.messages import (
    ORIGINAL_NAME,
    PROGRAM_NAME,
    StanBuildError,
    StanProgramError,
    compiler_reason,
)
from bread.backends.stan.native.cache import PRECOMPILE, BuildCache, default_cache
from bread.backends.stan.native.toolchain import Toolchain
from bread.errors import InvalidArgumentError

CXXFLAGS = "BREAD_CXXFLAGS"  # environment variable: more flags of the compiler, such as "-O1" or "-march=native"
_NO_ARITHMETIC = ("-Ofast", "-ffast-math", "-ffinite-math-only", "-funsafe-math-optimizations")
# O1 of stanc makes gradients 17 to 30 % faster and changes no result.
STANC_OPTIONS = ("--O1", "--allow-undefined")
# Where the compiler links libstdc++ statically, its facets of a locale must not be mixed with those of the libstdc++
# that Python's extensions have loaded: of another version they have other numbers, and reading data crashes.
_LINKED = ("-Wl,--exclude-libs,ALL",) if sys.platform == "linux" else ()
ORIGINAL = "bread_original"
# What stanc calls the two programs, until places in C++ are those of the user's files. stanc never sees the user's
# file names, which may hold any character.
ORIGINAL_PLACE, TEMPERED_PLACE = "bread original", "bread tempered"
SOURCES = Path(__file__).with_name("cpp")
_DRIVER_FILES = (
    "state.hpp",
    "math.hpp",
    "mixture.hpp",
    "factors.hpp",
    "nested.hpp",
    "rotated.hpp",
    "reference.hpp",
    "paths.hpp",
    "density.hpp",
    "samplers.hpp",
    "kernels.hpp",
    "chains.hpp",
    "overlay.hpp",
    "random.hpp",
    "layout.hpp",
    "driver.cpp",
)
_HEADER = "tempering.hpp"  # it includes Stan's headers, into which most of a build goes
_MODEL_FILES = ("state.hpp", "left_out.hpp", "model_base.hpp", _HEADER)
# What a build leaves out of Stan's headers; it is compiled with all of them where the compiler misses any.
_WHOLE, _SOLVERS = "-DBREAD_WHOLE_STAN_MATH", "-DBREAD_SOLVERS"
_SOLVES = re.compile(r"\b(ode_|integrate_|dae|solve_|algebra_solver|hcubature|wiener|laplace)\w*\s*\(")
# Runs a command, and kills its process group when the other end of standard input is closed: by the end of this
# process, however it comes. Nothing else reaches a compiler in a session of its own.
_SUPERVISOR = """exec 3<&0 </dev/null
(read -r line <&3; kill -KILL 0) &
"$@"
status=$?
kill -KILL $! 2>/dev/null
exit $status"""


def build_library(
    program: str,
    toolchain: Toolchain,
    *,
    original: str | None = None,
    cache: BuildCache | None = None,
    filename: str = "model.stan",
    places: Callable[[str], str] | None = None,
) -> Path:
    """Compile a Stan program, with the driver, into a shared library; take it from the cache if it is there.

    The first build on a machine compiles the driver too, at the same time; later ones link it.

    Parameters
    ----------
    program : str
        Stan code. Contributions of the likelihood are wrapped in ``bread_temper``, which the functions block declares;
        a program without it has a likelihood of 1.
    toolchain : Toolchain
    original : str, optional
        A second program in the same library, to compare with: data that hold `ORIGINAL` make an instance of it. It
        costs a few seconds, because most of a build goes into Stan's headers. stanc does not optimise it, because
        optimised programs name the place of an earlier statement.
    cache : BuildCache, optional
        Default: the user's.
    filename : str
        Name of the program in messages, without ``places``.
    places : callable, optional
        Puts the user's files into the places that the C++ holds for its messages; there the two programs are called
        `TEMPERED_PLACE` and `ORIGINAL_PLACE`. See `bread.backends.stan.places.in_users_files`.

    Returns
    -------
    Path
        The library, for `bread.backends.stan.native.library.StanLibrary`.

    Raises
    ------
    StanProgramError
        stanc refuses the program.
    StanBuildError
        The compiler fails.
    MissingDependencyError
        There is no compiler, and the program was not compiled before.
    BreadError
        The cache cannot be written, and the program is not in it.
    """
    code = translate(program, toolchain, original=original, filename=filename, places=places)
    return build_code(code, toolchain, cache)


def translate(
    program: str,
    toolchain: Toolchain,
    *,
    original: str | None = None,
    filename: str = "model.stan",
    places: Callable[[str], str] | None = None,
) -> str:
    """Return the C++ of a program, or of two; arguments and errors of stanc are those of `build_library`."""
    # The C++ stands for the program in the key: it names the version and the options of stanc.
    tempered_name, original_name = filename, filename
    if places is not None:
        tempered_name, original_name = TEMPERED_PLACE, ORIGINAL_PLACE
    with ThreadPoolExecutor(1) as pool:
        other = None
        if original is not None:  # at the same time
            options = {"filename": original_name, "name": ORIGINAL_NAME}
            other = pool.submit(toolchain.translate, original, "--allow-undefined", **options)
        try:
            code = toolchain.translate(program, *STANC_OPTIONS, filename=tempered_name)
        except StanProgramError:  # stanc's optimiser fails on some programs that it accepts ("Wrong type assumed!")
            code = toolchain.translate(program, "--allow-undefined", filename=tempered_name)
        if other is not None:
            code = _two_programs(code, other.result())
    return code if places is None else places(code)


def build_code(code: str, toolchain: Toolchain, cache: BuildCache | None = None) -> Path:
    """Compile what `translate` returned; cache and errors are those of `build_library`."""
    cache = cache or default_cache()
    content = _content(toolchain, code)
    if toolchain.compiler is None:
        compiled = cache.find(content, "model.so")
        if compiled is not None:
            return compiled
    toolchain = replace(toolchain, compiler=toolchain.require_compiler())
    driver_key = _key("driver", toolchain, _DRIVER_FILES)
    model_key = _key("model", toolchain, _MODEL_FILES, driver_key, code)

    def build(folder: Path) -> None:
        (folder / "model.cpp").write_text(code, encoding="utf-8")
        stopped = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            try:
                driver = pool.submit(_get_driver, cache, driver_key, toolchain, stopped)
                _compile_program(cache, toolchain, code, folder, stopped)
                linked = [folder / "model.o", driver.result(), *_ordered(toolchain)]
            except BaseException:
                stopped.set()
                raise
        link = [toolchain.require_compiler().path, "-shared", *_LINKED, "-o", str(folder / "model.so")]
        _run([*link, *map(str, linked), *_rpaths(toolchain)], stopped)
        (folder / "model.o").unlink()

    return cache.get(model_key, "model.so", build, content=content)


def _two_programs(tempered: str, original: str) -> str:
    """Return the C++ of both, and of the function that makes an instance of one of them.

    USING_R leaves out stanc's own definition of that function; stan_model is a name that both define.
    """
    return f"""#define USING_R
{tempered}
#define stan_model {ORIGINAL_NAME}stan_model
{original}
#undef stan_model
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages) {{
  if (data.contains_i("{ORIGINAL}")) {{
    return *new {ORIGINAL_NAME}_namespace::{ORIGINAL_NAME}(data, seed, messages);
  }}
  return *new {PROGRAM_NAME}_namespace::{PROGRAM_NAME}(data, seed, messages);
}}
stan::math::profile_map& get_stan_profile_data() {{ return {PROGRAM_NAME}_namespace::profiles__; }}
"""


def _compile_program(
    cache: BuildCache, toolchain: Toolchain, code: str, folder: Path, stopped: threading.Event
) -> None:
    """Compile ``model.cpp`` in a folder to ``model.o``."""
    source, output = folder / "model.cpp", folder / "model.o"
    included = ["-include", str(SOURCES / _HEADER)]
    try:
        if _SOLVES.search(code):
            _compile(toolchain, source, output, [_SOLVERS, *included], stopped)
        else:
            _compile(toolchain, source, output, ["-include", str(_headers(cache, toolchain, stopped))], stopped)
    except StanBuildError:
        if stopped.is_set():
            raise
        _compile(toolchain, source, output, [_WHOLE, *included], stopped)


def _get_driver(cache: BuildCache, key: str, toolchain: Toolchain, stopped: threading.Event) -> Path:
    def build(folder: Path) -> None:
        source, output = SOURCES / "driver.cpp", folder / "driver.o"
        try:
            _compile(toolchain, source, output, [], stopped)
        except StanBuildError:
            if stopped.is_set():
                raise
            _compile(toolchain, source, output, [_WHOLE], stopped)

    return cache.get(key, "driver.o", build, is_stopped=stopped.is_set)


def _headers(cache: BuildCache, toolchain: Toolchain, stopped: threading.Event) -> Path:
    """Return what every program includes first; where `PRECOMPILE` is set, with its precompiled form beside it."""
    if not os.environ.get(PRECOMPILE) or toolchain.require_compiler().is_clang:
        return SOURCES / _HEADER

    def build(folder: Path) -> None:
        for name in _MODEL_FILES:
            shutil.copyfile(SOURCES / name, folder / name)
        _compile(toolchain, folder / _HEADER, folder / f"{_HEADER}.gch", ["-x", "c++-header"], stopped)

    return cache.get(_key("headers", toolchain, _MODEL_FILES), _HEADER, build, is_stopped=stopped.is_set)


def compile_flags(toolchain: Toolchain) -> list[str]:
    """Return the compiler's flags, includes apart. Not tuned to the processor: a cache may be shared by machines.

    Symbols are hidden, and on g++ not unique, so that two libraries in one process never share their state. The user's
    own flags (environment variable BREAD_CXXFLAGS) come last.
    """
    flags = [
        "-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS",
        "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION", "-w",
    ]  # fmt: skip
    added = os.environ.get(CXXFLAGS, "").split()
    if refused := [flag for flag in added if flag in _NO_ARITHMETIC]:
        raise InvalidArgumentError(
            f"{CXXFLAGS} has {refused[0]!r}, with which a compiler may drop what happens at infinity and NaN, where "
            f"densities are zero or fail. Leave it out: flags such as '-O1' or '-march=native' are safe."
        )
    return [*flags, *added] if toolchain.require_compiler().is_clang else [*flags, "-fno-gnu-unique", *added]


def _key(kind: str, toolchain: Toolchain, files: Sequence[str], *texts: str) -> str:
    compiler = toolchain.require_compiler()
    described = [toolchain.version, toolchain.source, str(toolchain.folder), compiler.path, compiler.version]
    return f"{kind}-{_digest([*described, *compile_flags(toolchain), *_LINKED, *texts], files)[:32]}"


def _content(toolchain: Toolchain, code: str) -> str:
    """Return what identifies a library that runs here, whichever compiler made it."""
    described = [toolchain.version, toolchain.source, str(toolchain.folder), sys.platform, platform.machine(), *_LINKED]
    return _digest([*described, code], sorted({*_DRIVER_FILES, *_MODEL_FILES}))


def _digest(texts: Sequence[str], files: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in (*texts, *((SOURCES / name).read_text(encoding="utf-8") for name in files)):
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


def _compile(toolchain: Toolchain, source: Path, output: Path, prefix: Sequence[str], stopped: threading.Event) -> None:
    includes = [flag for folder in toolchain.include_folders for flag in ("-isystem", str(folder))]
    command = [toolchain.require_compiler().path, *compile_flags(toolchain), *includes, *prefix]
    _run([*command, "-c", "-o", str(output), str(source)], stopped)


def _ordered(toolchain: Toolchain) -> list[Path]:
    """Return the libraries so that static ones find each other in one pass, twice over."""
    static = [path for path in toolchain.libraries if path.suffix == ".a"]
    return static + static + [path for path in toolchain.libraries if path.suffix != ".a"]


def _rpaths(toolchain: Toolchain) -> list[str]:
    return [f"-Wl,-rpath,{path.parent}" for path in toolchain.libraries if path.suffix != ".a"]


def _run(command: Sequence[str], stopped: threading.Event) -> None:
    """Run a compiler; it and its children end when this process is interrupted, is killed, or another part fails."""
    alive, held = os.pipe()
    try:
        _supervise(command, alive, stopped)
    finally:
        os.close(alive)
        os.close(held)


def _supervise(command: Sequence[str], alive: int, stopped: threading.Event) -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", _SUPERVISOR, "sh", *command], stdin=alive, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            while True:
                try:
                    _, stderr = process.communicate(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    if stopped.is_set():
                        raise StanBuildError("The build was stopped.") from None
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.returncode:
        text = stderr.decode(errors="replace")
        raise StanBuildError(
            f"{command[0]} failed with status {process.returncode} (a status of 137 is often a lack of memory: a build "
            f"needs about 2 GB): {compiler_reason(text)}"
        )
