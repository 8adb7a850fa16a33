"""Finding stanc, Stan's headers and a compiler; what is said when one of them is missing."""

from __future__ import annotations

import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

from bread.backends.stan.language.messages import (
    StanProgramError,
    compiler_reason,
    run_time_reason,
    stanc_reason,
)
from bread.backends.stan.language.places import place_of
from bread.backends.stan.native import toolchain as module
from bread.backends.stan.native.toolchain import find_compiler, find_toolchain
from bread.errors import MissingDependencyError
from tests.support.stan_engine_programs import toolchain

CMDSTAN_FOLDERS = (
    "bin", "stan/src", "stan/lib/rapidjson_1.1.0", "stan/lib/stan_math/lib/eigen_3.4.0",
    "stan/lib/stan_math/lib/boost_1.84.0",
    "stan/lib/stan_math/lib/sundials_6.1.1/include", "stan/lib/stan_math/lib/sundials_6.1.1/lib",
    "stan/lib/stan_math/lib/tbb_2020.3/include", "stan/lib/stan_math/lib/tbb",
)  # fmt: skip


@pytest.fixture
def cmdstan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes a folder laid out like CmdStan, which cmdstanpy then finds."""

    def make(version: str = "2.36.0", without: str = "") -> Path:
        root = tmp_path / f"cmdstan-{version}{without.replace('/', '-')}"
        for folder in CMDSTAN_FOLDERS:
            if folder != without:
                (root / folder).mkdir(parents=True)
        (root / "stan/lib/stan_math/lib/tbb/libtbb.so.2").touch()
        (root / "stan/lib/stan_math/lib/sundials_6.1.1/lib/libsundials_cvodes.a").touch()
        stanc = root / "bin" / "stanc"
        stanc.write_text(f"#!/bin/sh\necho 'stanc3 v{version} (Unix)'\n")
        stanc.chmod(stanc.stat().st_mode | stat.S_IXUSR)
        fake = types.SimpleNamespace(cmdstan_path=lambda: str(root))
        monkeypatch.setitem(sys.modules, "cmdstanpy", fake)
        monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: types.SimpleNamespace(origin=None))
        return root

    return make


def test_the_toolchain_says_what_it_is() -> None:
    found = toolchain()
    assert found is find_toolchain()
    assert str(found).startswith(f"Stan {found.version} ({found.source} in ")
    assert found.compiler.version in str(found)
    assert all(folder.is_dir() for folder in found.include_folders)
    assert found.libraries[-1].name.startswith("libtbb")


def test_cmdstan_comes_first(cmdstan) -> None:
    root = cmdstan()
    found = find_toolchain()
    assert (found.source, found.folder, found.version) == ("CmdStan", root, "2.36.0")
    assert [folder.name for folder in found.include_folders] == [
        "src", "stan_math", "rapidjson_1.1.0", "eigen_3.4.0", "boost_1.84.0", "include", "include",
    ]  # fmt: skip
    assert [path.name for path in found.libraries] == ["libsundials_cvodes.a", "libtbb.so.2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "2.32.2"}, r"version 2\.32\.2, and bread needs 2\.33 or newer"),
        ({"without": "stan/src"}, r"not complete: .*stan/src is missing"),
        ({"version": "of another kind"}, "--version said"),
    ],
)
def test_an_unusable_cmdstan_is_named(cmdstan, options: dict, message: str) -> None:
    cmdstan(**options)
    with pytest.raises(MissingDependencyError, match=message) as caught:
        find_toolchain()
    assert "pip install httpstan" in str(caught.value)


def test_without_stan_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"install_cmdstan.*pip install httpstan.*not installed"):
        find_toolchain()


def test_without_a_compiler_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingDependencyError, match=r"tried 'no-such-compiler'.*apt install g\+\+.*set CXX"):
        find_compiler()
    found = find_toolchain()
    assert found.compiler is None and str(found).endswith("no compiler")  # what was compiled before still runs
    with pytest.raises(MissingDependencyError, match="no-such-compiler"):
        found.require_compiler()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingDependencyError, match=r"'g\+\+' and 'clang\+\+'"):
        find_compiler()


def test_cxx_chooses_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    path = find_compiler().path
    monkeypatch.setenv("CXX", f"{path} -march=native")
    assert find_compiler().path == path


# ---- stanc ---------------------------------------------------------------------------------------------------

ERRORS = [
    ("data { int N }", r"^Syntax error in 'mine\.stan', line 1, column 13 to column 14.*;"),
    ("model { real x = y; }", r"^Semantic error in 'mine\.stan', line 1, column 17.* 18: Identifier .y. not in scope"),
    ("model { int x = 1.5; }", r"^Semantic error in 'mine\.stan', line 1.*Ill-typed"),
]


@pytest.mark.parametrize(("program", "message"), ERRORS)
def test_a_refused_program_is_one_line_with_place_and_reason(program: str, message: str) -> None:
    with pytest.raises(StanProgramError, match=message) as caught:
        toolchain().translate(program, filename="mine.stan")
    assert "\n" not in str(caught.value)
    assert "---" not in str(caught.value)


def test_stanc_runs_with_any_options_and_never_raises() -> None:
    done = toolchain().run_stanc("parameters { vector[3] beta; }", "--info")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"beta"' in done.stdout
    refused = toolchain().run_stanc("parameters { vector[3 beta; }")
    assert refused.returncode == 1
    assert "line 1" in refused.stderr


def test_a_program_that_stanc_does_not_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of stanc grows with the cube of the depth of these brackets: minutes here."""
    monkeypatch.setattr(module, "STANC_SECONDS", 0.5)
    deep = "[" * 1000 + "1" + "][1]" * 1000
    with pytest.raises(StanProgramError, match="stanc has not finished after 0.5 s"):
        toolchain().run_stanc(f"parameters {{ real<lower={deep}> x; }}")


def test_translation_keeps_the_name_of_the_program() -> None:
    code = toolchain().translate("parameters { real t; }\nmodel { t ~ normal(0, 1); }", filename="mine.stan")
    assert "(in 'mine.stan', line 2, column 8 to column 25)" in code
    assert "namespace bread_m__namespace" in code


# ---- words ---------------------------------------------------------------------------------------------------


def test_run_time_messages_lose_the_names_of_generated_code() -> None:
    raw = "Exception: bread_m__namespace::log_prob: sigma is -1, not positive! (in 'm.stan', line 5, column 2)"
    assert run_time_reason(raw) == "sigma is -1, not positive! (in 'm.stan', line 5, column 2)"
    nested = "Exception: Exception: no (in 'm.stan', line 2, column 4 to column 9) (in 'm.stan', line 7, column 1)"
    assert place_of(run_time_reason(nested)) == "(in 'm.stan', line 2, column 4 to column 9)"
    assert place_of("no place") == ""


def test_an_excerpt_of_stanc_is_left_out() -> None:
    raw = "Semantic error in 'm.stan', line 1:\n   ---\n  1:  model { x }\n   ^\n ---\n\nIdentifier 'x' not in scope.\n"
    assert stanc_reason(raw) == "Semantic error in 'm.stan', line 1: Identifier 'x' not in scope."


def test_compiler_errors_are_the_first_three() -> None:
    text = "note: here\n" + "\n".join(f"a.cpp:{i}: error: {i}" for i in range(5))
    assert compiler_reason(text) == "a.cpp:0: error: 0 | a.cpp:1: error: 1 | a.cpp:2: error: 2"
    assert compiler_reason("killed") == "killed"


def test_importing_the_engine_finds_nothing_yet() -> None:
    code = (
        "import bread.backends.stan.posterior, bread.backends.stan.native.build, sys\n"
        "print('cmdstanpy' in sys.modules, 'httpstan' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_stanc_runs_once_for_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    found, runs = toolchain(), []
    run = subprocess.run

    def counted(command, **options):
        runs.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    text = "parameters { real once_for_a_text; }"
    first = found.run_stanc(text, "--info")
    assert found.run_stanc(text, "--info") == first and len(runs) == 1
    assert found.run_stanc(text) != first and len(runs) == 2
    assert "another" in found.run_stanc(text.replace("once_for_a_text", "another"), "--info").stdout and len(runs) == 3
