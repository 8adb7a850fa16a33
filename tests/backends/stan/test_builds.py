"""Builds of Stan programs: what is compiled, what ends the compilers, and what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bread.backends.stan.language.messages import StanBuildError, StanProgramError
from bread.backends.stan.native.build import CXXFLAGS, build_library, translate
from bread.backends.stan.native.cache import MARK, PRECOMPILE
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.runs import Schedule
from bread.backends.stan.native.toolchain import Compiler, Toolchain
from bread.errors import InvalidArgumentError, MissingDependencyError
from tests.support.builds import cache_in, wait_for
from tests.support.stan_engine_programs import CONJUGATE, EXAMPLE, HMC, NUTS, PATH, toolchain

WHOLE = "-DBREAD_WHOLE_STAN_MATH"


@pytest.fixture
def recorder(tmp_path: Path) -> Toolchain:
    """Return the toolchain with a compiler that writes its arguments instead of compiling."""
    script = tmp_path / "compiler"
    script.write_text(
        f"""#!{sys.executable}
import json, os, sys, time
if os.path.exists({str(tmp_path / "sleep")!r}):
    open({str(tmp_path / "sleeping")!r}, "a").write(str(os.getpid()) + "\\n")
    time.sleep(600)
with open({str(tmp_path / "commands")!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if os.path.exists({str(tmp_path / "fail")!r}):
    sys.exit("model.cpp:1: error: no such thing")
if os.path.exists({str(tmp_path / "narrow")!r}) and "-c" in sys.argv and {WHOLE!r} not in sys.argv:
    sys.exit("model.cpp:1: error: was not declared in this scope")
open(sys.argv[sys.argv.index("-o") + 1], "w").write("compiled")
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    real = toolchain()
    compiler = Compiler(str(script), "g++ that keeps a record")
    return replace(real, compiler=compiler)


def sleeping(tmp_path: Path) -> list[int]:
    """Return the compilers that have started and sleep."""
    log = tmp_path / "sleeping"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def is_running(process: int) -> bool:
    """Return whether a process runs; a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def commands(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "commands").read_text().splitlines()]


@pytest.mark.skipif(sys.platform != "linux", reason="an option of linkers on Linux")
def test_a_static_libstdcxx_stays_inside(tmp_path: Path) -> None:
    """Its facets, mixed with those of another version that Python has loaded, crashed where data are read."""
    real = toolchain()
    compiler = real.require_compiler().path
    source, script, words = tmp_path / "part.cpp", tmp_path / "compiler", tmp_path / "linked"
    source.write_text(
        "#include <locale>\nstatic int n() { return std::locale().name().size(); }\nint NAME() { return n(); }"
    )
    script.write_text(
        f"""#!{sys.executable}
import json, os, subprocess, sys
out = sys.argv[sys.argv.index("-o") + 1]
if "-c" in sys.argv:  # a small file in place of Stan's
    name = "of_" + os.path.basename(out).partition(".")[0]
    sys.exit(subprocess.call([{compiler!r}, "-fPIC", "-c", "-DNAME=" + name, "-o", out, {str(source)!r}]))
arguments = [word for word in sys.argv[1:] if "=" not in word and not word.startswith("-Wl,-rpath")]
objects = [word for word in arguments if word.endswith(".o")]
options = [word for word in arguments if word.startswith("-Wl")]
bare, linked = [{compiler!r}, "-shared", "-static-libstdc++", *objects], {str(words)!r}
subprocess.check_call([*bare, "-o", linked])
sys.exit(subprocess.call([*bare, *options, "-o", out]))
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    own = replace(real, compiler=Compiler(str(script), "g++ with its library inside"))
    library = build_library(CONJUGATE, own, cache=cache_in(tmp_path))

    def exported(path: Path) -> bool:
        found = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True)
        return "_ZNSt6locale" in found.stdout

    assert exported(words), "control: without the option"
    assert not exported(library)


@pytest.mark.parametrize("precompiled", [False, True])
def test_driver_and_headers_are_compiled_once_for_all_programs(
    precompiled: bool, recorder: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECOMPILE, "1" if precompiled else "")
    cache = cache_in(tmp_path)
    first = build_library(CONJUGATE, recorder, cache=cache)
    assert build_library(CONJUGATE, recorder, cache=cache) == first
    second = build_library(CONJUGATE.replace("2, 0.5", "3, 0.5"), recorder, cache=cache)
    assert second != first
    sources = [Path(command[-1]).name for command in commands(tmp_path) if "-c" in command]
    headers = ["tempering.hpp"] if precompiled else []
    assert sorted(sources) == ["driver.cpp", "model.cpp", "model.cpp", *headers]
    models = [command for command in commands(tmp_path) if Path(command[-1]).name == "model.cpp"]
    included = {Path(command[command.index("-include") + 1]) for command in models}
    assert len(included) == 1 and (tmp_path in included.pop().parents) == precompiled
    assert sum("-shared" in command for command in commands(tmp_path)) == 2


ODE = """functions {
  vector decay(real t, vector y, real k) {
    return -k * y;
  }
}
parameters {
  real k;
}
model {
  ode_rk45(decay, [1.0]', 0, {1.0}, k)[1] ~ normal(0, 1);
}
"""


@pytest.mark.parametrize("precompiled", [False, True])
def test_programs_with_solvers_are_compiled_with_their_headers(
    precompiled: bool, recorder: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECOMPILE, "1" if precompiled else "")
    for program in (CONJUGATE, ODE):
        build_library(program, recorder, cache=cache_in(tmp_path))
    first, second = (command for command in commands(tmp_path) if Path(command[-1]).name == "model.cpp")
    assert "-DBREAD_SOLVERS" not in first and "-DBREAD_SOLVERS" in second
    assert tmp_path not in Path(second[second.index("-include") + 1]).parents  # precompiled headers lack them


@pytest.mark.parametrize("precompiled", [False, True])
def test_where_the_compiler_misses_a_header_all_are_included(
    precompiled: bool, recorder: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECOMPILE, "1" if precompiled else "")
    (tmp_path / "narrow").touch()
    assert build_library(CONJUGATE, recorder, cache=cache_in(tmp_path)).read_text() == "compiled"
    asked = [(Path(one[-1]).name, WHOLE in one) for one in commands(tmp_path) if "-c" in one]
    first = ("tempering.hpp" if precompiled else "model.cpp", False)
    assert sorted(asked) == sorted([("driver.cpp", False), ("driver.cpp", True), first, ("model.cpp", True)])


@pytest.mark.slow
def test_what_is_left_out_of_the_headers_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Densities, gradients, generated quantities and chains, against a build with all of Stan's headers."""
    monkeypatch.setenv(PRECOMPILE, "")
    cache, results = cache_in(tmp_path), []
    for flags in ("", WHOLE):
        monkeypatch.setenv(CXXFLAGS, flags)
        path = build_library(CONJUGATE, toolchain(), cache=cache)
        results.append((path, everything(StanLibrary(path).instance(EXAMPLE.data))))
    (path, lean), (whole_path, whole) = results
    assert path != whole_path
    for name, value in lean.items():
        assert np.array_equal(value, whole[name]), name
    assert not np.array_equal(lean["NUTS"], lean["HMC"])  # negative control


def everything(instance: StanInstance) -> dict[str, np.ndarray]:
    """Return what a library computes: densities, a gradient, generated quantities, annealed chains of both kernels."""
    states, seeds = EXAMPLE.draw(0.0, 4, np.random.default_rng(1)), np.random.SeedSequence(2).spawn(4)
    ladder = Schedule(np.linspace(0, 1, 9), np.full(9, 0.2), np.ones((9, 2)))
    density, _, gradient = instance.gradient(states[0], 0.5)
    found = {"terms": np.stack(instance.terms(states)[:2]), "gradient": np.append(gradient, density)}
    found["constrained"] = instance.constrained_prior(states)
    found["new"] = instance.constrain(states, "generated", seeds)["y_new"]
    for kernel in (NUTS, HMC):
        found[kernel.name] = np.array(instance.anneal(kernel.struct(PATH), ladder, "forward", states, seeds).log_ratio)
    return found


def test_the_key_knows_program_name_version_and_compiler(recorder: Toolchain, tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    paths = {
        build_library(CONJUGATE, recorder, cache=cache),
        build_library(CONJUGATE, recorder, cache=cache, filename="other.stan"),  # messages name the file
        build_library(CONJUGATE, replace(recorder, version="9.9.9"), cache=cache),
        build_library(CONJUGATE, replace(recorder, compiler=replace(recorder.compiler, version="newer")), cache=cache),
    }
    assert len(paths) == 4


def test_flags_of_the_users_come_last_and_make_another_build(
    recorder: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_in(tmp_path)
    monkeypatch.delenv(CXXFLAGS, raising=False)
    plain = build_library(CONJUGATE, recorder, cache=cache)
    monkeypatch.setenv(CXXFLAGS, "-O1  -DNDEBUG")
    assert build_library(CONJUGATE, recorder, cache=cache) != plain
    model = [command for command in commands(tmp_path) if Path(command[-1]).name == "model.cpp"][-1]
    assert model.index("-O3") < model.index("-O1") < model.index("-DNDEBUG")
    monkeypatch.setenv(CXXFLAGS, "-O2 -ffast-math")
    with pytest.raises(InvalidArgumentError, match="BREAD_CXXFLAGS has '-ffast-math'"):
        build_library(CONJUGATE, recorder, cache=cache)


def test_a_compiler_error_is_one_line_and_leaves_no_entry(recorder: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "fail").touch()
    with pytest.raises(StanBuildError, match=r"status 1 .*error: no such thing") as caught:
        build_library(CONJUGATE, recorder, cache=cache_in(tmp_path))
    assert "\n" not in str(caught.value)
    assert cache_in(tmp_path).keys() == []
    (tmp_path / "fail").unlink()
    assert build_library(CONJUGATE, recorder, cache=cache_in(tmp_path)).read_text() == "compiled"


def test_an_interrupt_ends_the_compilers_too(recorder: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "sleep").touch()

    def interrupt() -> None:
        wait_for(lambda: len(sleeping(tmp_path)) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        build_library(CONJUGATE, recorder, cache=cache_in(tmp_path))
    thread.join()
    wait_for(lambda: not any(map(is_running, sleeping(tmp_path))))
    assert cache_in(tmp_path).keys() == []


BUILDING = """
    import sys
    from dataclasses import replace
    from pathlib import Path
    from bread.backends.stan.native.build import CXXFLAGS, build_library, translate
    from bread.backends.stan.native.cache import BuildCache
    from bread.backends.stan.native.toolchain import Compiler, find_toolchain

    folder = Path(sys.argv[1])
    toolchain = replace(find_toolchain(), compiler=Compiler(str(folder / "compiler"), "g++ that keeps a record"))
    build_library("parameters { real t; } model { t ~ normal(0, 1); }", toolchain, cache=BuildCache(folder, 10**9))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_compilers_end_with_a_parent_that_is_killed(recorder: Toolchain, tmp_path: Path, number: int) -> None:
    (tmp_path / "sleep").touch()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(BUILDING), str(tmp_path)], env=environment)
    wait_for(lambda: len(sleeping(tmp_path)) == 2)
    assert all(map(is_running, sleeping(tmp_path)))
    parent.send_signal(number)
    parent.wait()
    wait_for(lambda: not any(map(is_running, sleeping(tmp_path))))


def test_without_a_compiler_what_was_compiled_is_used(recorder: Toolchain, tmp_path: Path) -> None:
    cache, without = cache_in(tmp_path), replace(recorder, compiler=None)
    path = build_library(CONJUGATE, recorder, cache=cache, original=CONJUGATE)
    assert build_library(CONJUGATE, without, cache=cache, original=CONJUGATE) == path
    mark = path.with_name(MARK)
    earlier = json.loads(mark.read_text())
    del earlier["content"]
    mark.write_text(json.dumps(earlier))  # as an earlier version wrote it: the next use with a compiler tells
    assert build_library(CONJUGATE, recorder, cache=cache, original=CONJUGATE) == path
    assert build_library(CONJUGATE, without, cache=cache, original=CONJUGATE) == path
    # Negative control: nothing else is taken for it, and damage is seen.
    monkey = pytest.MonkeyPatch()
    monkey.setenv("CXX", "no-such-compiler")
    for program, found in (
        (CONJUGATE.replace("2, 0.5", "3, 0.5"), without),
        (CONJUGATE, replace(without, version="9")),
    ):
        with pytest.raises(MissingDependencyError, match="No C\\+\\+ compiler was found.*this one was not yet"):
            build_library(program, found, cache=cache, original=CONJUGATE)
    path.write_text("damaged")
    with pytest.raises(MissingDependencyError, match="No C\\+\\+ compiler was found"):
        build_library(CONJUGATE, without, cache=cache, original=CONJUGATE)
    monkey.undo()


def test_a_refused_program_is_not_compiled(recorder: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(StanProgramError, match=r"'mine.stan', line 4.*Identifier .x. not in scope"):
        program = "parameters { real t;\n}\nmodel {\n  t ~ normal(x, 1);\n}"
        build_library(program, recorder, cache=cache_in(tmp_path), filename="mine.stan")
    assert not (tmp_path / "commands").exists()


REAL = """
    import sys
    from pathlib import Path
    from bread.backends.stan.native.build import CXXFLAGS, build_library, translate
    from bread.backends.stan.native.cache import BuildCache
    from bread.backends.stan.native.toolchain import find_toolchain

    program = Path(sys.argv[1], "program.stan").read_text()
    print(build_library(program, find_toolchain(), cache=BuildCache(Path(sys.argv[1], "cache"), 10**9)))
"""


@pytest.mark.slow
def test_a_real_build_survives_a_kill_and_two_builders(tmp_path: Path) -> None:
    toolchain()
    (tmp_path / "program.stan").write_text(CONJUGATE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(REAL), str(tmp_path)]

    def start() -> subprocess.Popen:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    killed = start()
    wait_for(lambda: list((tmp_path / "cache").glob("building/model-*/model.cpp")))
    time.sleep(2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    builders = [start() for _ in range(2)]
    paths = {builder.communicate(timeout=600)[0].strip() for builder in builders}
    assert len(paths) == 1
    library = StanLibrary(Path(paths.pop()))
    assert library.instance(EXAMPLE.data).dim == 2
    built = sorted(key.partition("-")[0] for key in cache_in(tmp_path).keys())  # noqa: SIM118  (no mapping)
    assert [kind for kind in built if kind != "headers"] == ["driver", "model"]


def test_a_fault_of_the_optimiser_of_stanc_is_gone_round(tmp_path: Path) -> None:
    """With a stanc that fails where it optimises, the program is translated as it stands; a wrong one is refused."""
    right = toolchain()
    stanc = tmp_path / "stanc"
    stanc.write_text(
        '#!/bin/sh\ncase "$*" in *--O1*) echo "Internal compiler error: Wrong type assumed!" >&2; exit 125;; esac\n'
        f'exec "{right.stanc}" "$@"\n'
    )
    stanc.chmod(0o755)
    program = "parameters { real x; } model { x ~ normal(0, 1); }"
    code = translate(program, replace(right, stanc=stanc))
    assert code == right.translate(program, "--allow-undefined", filename="model.stan")
    assert code != translate(program, right)  # negative control: the other one is optimised
    with pytest.raises(StanProgramError, match="Wrong type assumed"):
        replace(right, stanc=stanc).translate(program, "--O1", filename="model.stan")
    with pytest.raises(StanProgramError, match="Identifier .z. not in scope"):
        translate(program.replace("normal(0, 1)", "normal(z, 1)"), replace(right, stanc=stanc))
