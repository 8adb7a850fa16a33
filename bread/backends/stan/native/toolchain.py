"""Where stanc, Stan's headers and the C++ compiler are: a CmdStan installation, else the ones inside httpstan."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bread.backends.stan.language.messages import PROGRAM_NAME, StanProgramError, stanc_reason
from bread.backends.stan.language.source import StancOutput
from bread.errors import InvalidArgumentError, MissingDependencyError
from bread.scratch import scratch_folder

OLDEST_STAN = (2, 33)
STANC_SECONDS = 60.0  # stanc takes a tenth of a second; what takes this long never ends
KEPT_OUTPUTS = 32  # of stanc; a large program's C++ has a megabyte
Source = Literal["CmdStan", "httpstan"]


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler.

    Attributes
    ----------
    path : str
        The program.
    version : str
        First line of its ``--version``, and the machine that it compiles for.
    """

    path: str
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether it takes Clang's flags."""
        return "clang" in self.version


@dataclass(frozen=True)
class Toolchain:
    """Everything that turns a Stan program into a library.

    Attributes
    ----------
    source : {"CmdStan", "httpstan"}
        Where Stan comes from.
    folder : Path
        Its root.
    version : str
        Stan's version, such as "2.39.0".
    stanc : Path
        Translates Stan to C++.
    compiler : Compiler or None
        None where there is none: programs that were compiled before still run.
    include_folders : tuple of Path
        Stan, Stan Math, Eigen, Boost, SUNDIALS, TBB, RapidJSON.
    libraries : tuple of Path
        SUNDIALS (static) and TBB (shared).
    """

    source: Source
    folder: Path
    version: str
    stanc: Path
    compiler: Compiler | None
    include_folders: tuple[Path, ...]
    libraries: tuple[Path, ...]

    def __str__(self) -> str:
        compiler = self.compiler.version if self.compiler else "no compiler"
        return f"Stan {self.version} ({self.source} in {self.folder}), {compiler}"

    def require_compiler(self) -> Compiler:
        """Return the compiler.

        Raises
        ------
        MissingDependencyError
            There is none; the message says what to install.
        """
        return self.compiler or find_compiler()

    def run_stanc(self, text: str, *options: str) -> StancOutput:
        """Run stanc on a program; implements `bread.backends.stan.language.source.Stanc`.

        Parameters
        ----------
        text : str
            Stan code.
        *options : str
            Such as "--info". Without one that prints, the program is only checked.

        Returns
        -------
        StancOutput
            Its return code, and what it wrote; a refused program raises nothing.

        Raises
        ------
        StanProgramError
            stanc does not finish.
        """
        return _stanc_output(self.stanc, text, options)

    def translate(self, program: str, *options: str, filename: str, name: str = PROGRAM_NAME) -> str:
        """Return the C++ of a program.

        Parameters
        ----------
        program : str
            Stan code.
        *options : str
            More options of stanc, such as "--O1".
        filename : str
            Name of the program in messages.
        name : str
            Of the C++ class.

        Returns
        -------
        str

        Raises
        ------
        StanProgramError
            stanc refuses the program; the message is stanc's, on one line.
        """
        named = (f"--name={name}", f"--filename-in-msg={filename}", "--print-cpp")
        done = self.run_stanc(program, *named, *options)
        if done.returncode:
            raise StanProgramError(stanc_reason(done.stderr))
        return done.stdout


@functools.lru_cache(maxsize=KEPT_OUTPUTS)
def _stanc_output(stanc: Path, text: str, options: tuple[str, ...]) -> StancOutput:
    """Run stanc, once for each text and options: a check and the next one on the same program ask for the same."""
    with scratch_folder() as folder:
        path = folder / "program.stan"
        path.write_text(text, encoding="utf-8")
        command = [str(stanc), f"--o={folder / 'program.hpp'}", *options, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=STANC_SECONDS)
        except subprocess.TimeoutExpired:
            raise StanProgramError(
                f"stanc has not finished after {STANC_SECONDS:g} s, where it usually takes less than one: brackets "
                "nested very deeply can take it for ever. Simplify the program."
            ) from None
        stderr = done.stderr.decode(errors="replace").replace(str(path), path.name)
        return StancOutput(done.returncode, done.stdout.decode(errors="replace"), stderr)


def find_toolchain(source: Source | None = None) -> Toolchain:
    """Return the toolchain of this machine: CmdStan as cmdstanpy finds it, else httpstan.

    Parameters
    ----------
    source : {"CmdStan", "httpstan"}, optional
        Take this one, or fail.

    Returns
    -------
    Toolchain
        Detected once for every place that Stan can come from.

    Raises
    ------
    MissingDependencyError
        There is no Stan, or it is older than 2.33; the message says what to install.
    """
    reasons = []
    compiler = None
    with contextlib.suppress(MissingDependencyError):  # needed only for a program that was not compiled before
        compiler = find_compiler()
    for name, find in (("CmdStan", _cmdstan_folder), ("httpstan", _httpstan_folder)):
        if source not in (None, name):
            continue
        found = find()
        if isinstance(found, str):
            reasons.append(found)
            continue
        try:
            return _toolchain(name, found, compiler)
        except InvalidArgumentError as error:
            reasons.append(str(error))
    raise MissingDependencyError(
        "Stan was not found. bread needs CmdStan 2.33 or newer (pip install cmdstanpy; install_cmdstan), or the Stan "
        f"inside httpstan (pip install httpstan). Looked for: {'; '.join(reasons)}."
    )


def find_compiler() -> Compiler:
    """Return the C++ compiler: ``$CXX``, else g++, else clang++.

    Raises
    ------
    MissingDependencyError
        None of them runs.
    """
    wanted = os.environ.get("CXX", "").split()
    names = wanted[:1] or ["g++", "clang++"]
    for name in names:
        path = shutil.which(name)
        if path and (version := _compiler_version(path)):
            return Compiler(path, version)
    tried = " and ".join(repr(name) for name in names)
    raise MissingDependencyError(
        f"No C++ compiler was found: tried {tried}. Stan programs are compiled on your machine, and this one was not "
        "yet; install one (apt install g++; xcode-select --install; conda: conda install cxx-compiler), or set CXX."
    )


@functools.cache
def _compiler_version(path: str) -> str:
    try:
        version, machine = (
            subprocess.run([path, flag], capture_output=True, text=True, check=True, timeout=60).stdout
            for flag in ("--version", "-dumpmachine")
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{version.splitlines()[0]}, {machine.strip()}" if version else ""


def _cmdstan_folder() -> Path | str:
    """Return the folder of CmdStan, or why there is none."""
    if importlib.util.find_spec("cmdstanpy") is None:
        return "cmdstanpy is not installed"
    may_have = os.environ.get("CMDSTAN") or Path("~/.cmdstan").expanduser().exists() or "cmdstanpy" in sys.modules
    if not may_have:  # its import, which takes longest, would find none either
        return "cmdstanpy finds no CmdStan (CMDSTAN is not set, and there is no ~/.cmdstan)"
    import cmdstanpy

    try:
        return Path(cmdstanpy.cmdstan_path())
    except (ValueError, OSError) as error:
        return f"cmdstanpy finds no CmdStan ({' '.join(str(error).split())})"


def _httpstan_folder() -> Path | str:
    """Return the folder of the package httpstan, which is not imported, or why there is none."""
    spec = importlib.util.find_spec("httpstan")
    if spec is None or spec.origin is None:
        return "httpstan is not installed"
    return Path(spec.origin).parent


@functools.cache
def _toolchain(source: Source, folder: Path, compiler: Compiler | None) -> Toolchain:
    if source == "CmdStan":
        stanc, includes, libraries = _cmdstan_layout(folder)
    else:
        stanc = folder / "stanc"
        includes = [folder / "include"]
        libraries = _libraries(folder / "lib")
    missing = [str(path) for path in (stanc, *includes) if not path.exists()]
    if missing or not libraries:
        raise InvalidArgumentError(
            f"{source} in {folder} is not complete: {', '.join(missing) or 'TBB'} is missing. Install it again."
        )
    version = _stan_version(stanc)
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_STAN:
        oldest = ".".join(map(str, OLDEST_STAN))
        raise InvalidArgumentError(
            f"{source} in {folder} is version {version}, and bread needs {oldest} or newer. Install a newer one."
        )
    return Toolchain(source, folder, version, stanc, compiler, tuple(includes), tuple(libraries))


def _cmdstan_layout(folder: Path) -> tuple[Path, list[Path], list[Path]]:
    stan = folder / "stan"
    math = stan / "lib" / "stan_math"
    includes = [stan / "src", math]
    for parent, pattern in (
        (stan / "lib", "rapidjson_*"),
        (math / "lib", "eigen_*"),
        (math / "lib", "boost_*"),
        (math / "lib", "sundials_*/include"),
        (math / "lib", "tbb_*/include"),
    ):
        includes += sorted(parent.glob(pattern))[-1:] or [parent / pattern]
    archives = sorted((math / "lib").glob("sundials_*/lib/*.a"))
    return folder / "bin" / "stanc", includes, archives + _libraries(math / "lib" / "tbb")


def _libraries(folder: Path) -> list[Path]:
    names = ("libtbb.so.12", "libtbb.so.2", "libtbb.so", "libtbb.dylib")
    shared = [folder / name for name in names if (folder / name).exists()]
    return sorted(folder.glob("libsundials*.a")) + shared[:1] if shared else []


def _stan_version(stanc: Path) -> str:
    try:
        done = subprocess.run([str(stanc), "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise InvalidArgumentError(f"{stanc} does not run: {error}. Install it again.") from error
    found = re.search(r"v(\d+\.\d+(?:\.\d+)?)", done.stdout)
    if found is None:
        said = (done.stdout or done.stderr).strip()
        raise InvalidArgumentError(f"{stanc} --version said {said!r}, which is no version. Install it again.")
    return found.group(1)
