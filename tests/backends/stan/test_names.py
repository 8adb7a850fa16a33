"""File names with any character: none becomes code, and every message names the file and the place in it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bread.backends.stan.language.messages import StanProgramError, run_time_reason
from bread.backends.stan.language.places import in_users_files, literal_body, place_of, without_place
from bread.backends.stan.language.source import Source
from bread.backends.stan.model import StanModel
from tests.support.stan_conjugate import opened, toolchain

pytestmark = pytest.mark.stan

# As C++ source, the first ends a literal and its list, and runs a command when the library is loaded.
ATTACK = 'x"}; int pwned = std::system("touch pwned"); const char* rest[] = {".stan'
NAMES = [
    ATTACK,
    'x"); std::system("touch pwned"); (".stan',
    'quote".stan',
    "quote'.stan",
    "both'\".stan",
    "back\\slash.stan",
    "octal\\101 \\x41 \\u0041.stan",
    "ends with \\",
    "é and 日本.stan",
    "two  spaces, line 7, column 2 to column 3.stan",
    "place (in 'other.stan', line 9).stan",
    "bread tempered",
    "percent %s {0}.stan",
    "trigraph ??'.stan",
    "tab\tand bell\a and back\b.stan",
]
MAIN_NAMES = [
    *NAMES,
    "new\nline and return\r.stan",
    "braces {}.stan",
]  # which #include cannot name, or text would not be told from


def every(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names, ids=range(len(names)))


# ---- stanc's errors --------------------------------------------------------------------------------------------


@every(MAIN_NAMES)
def test_an_error_of_stanc_names_the_main_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("parameters {\n  real mu\n}\n")
    with pytest.raises(StanProgramError, match=re.escape(f"Syntax error in {name!r}, line 3, column 0")) as caught:
        opened(tmp_path / name)
    assert "\n" not in str(caught.value)


@every(NAMES)
def test_an_error_of_stanc_names_the_included_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("// a comment\nmu ~ normal(0,\n  nobody);\n")
    (tmp_path / "main.stan").write_text(f"parameters {{ real mu; }}\nmodel {{\n  // prior\n  #include <{name}>\n}}\n")
    with pytest.raises(StanProgramError, match=re.escape(f"error in {name!r}, line 3, column 2 to column 8")):
        opened(tmp_path / "main.stan")


# ---- C++ -------------------------------------------------------------------------------------------------------


def loaded(names: list[str], escape: Callable[[str], str], folder: Path) -> list[str]:
    """Return the places of these files as a C++ compiler reads them from what stanc would write."""
    code = '#include <cstdlib>\nextern "C" { extern const char* places[]; }\nconst char* places[] = {'
    for name in names:
        text = "\" (in 'bread tempered', line 1, column 2 to line 2, column 4)\",\n"
        code += in_users_files(text, "bread tempered", Source.from_text("a\nb", name), escape=escape)
    (folder / "places.cpp").write_text(code + "};\n", encoding="utf-8")
    command = [toolchain().compiler.path, "-std=c++17", "-w", "-shared", "-fPIC", "-o", "places.so", "places.cpp"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    library = ctypes.CDLL(str(folder / "places.so"))
    found = (ctypes.c_char_p * len(names)).in_dll(library, "places")
    return [(text or b"").decode() for text in found]


def test_cpp_reads_every_name_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every character up to U+00FF, too; and messages with these places are read back by the same rule."""
    monkeypatch.chdir(tmp_path)
    names = [*MAIN_NAMES, *(f"a{chr(code)}b" for code in range(1, 256)), "\N{SNOWMAN} \udcff"]
    for name, text in zip(names, loaded(names, literal_body, tmp_path), strict=True):
        place = f"(in {name!r}, line 1, column 2 to line 2, column 4)"
        assert text == f" {place}"
        reason = run_time_reason(f"Exception: mu is\n  -1{text} (in 'outer.stan', line 3)")
        assert reason == f"mu is -1 {place} (in 'outer.stan', line 3)"
        assert place_of(reason) == place
        assert without_place(f"mu is -1 {place}") == "mu is -1"
    assert not (tmp_path / "pwned").exists()


def test_control_an_unescaped_name_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded([ATTACK, "plain.stan"], str, tmp_path)
    assert (tmp_path / "pwned").exists()


def test_the_rule_is_that_of_stanc() -> None:
    """What stanc makes of a name, and of the place in the user's words that it is given as a name."""
    program = "parameters { real t; }\nmodel { t ~ normal(0, 1); }"
    for name in MAIN_NAMES:
        code = toolchain().translate(program, filename=name)
        assert f" (in '{literal_body(name)}', line 2, column 8 to column 25)" in code


# ---- a whole program -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> StanModel:
    """Return one program with all these files; each refuses its own value of ``mode``."""
    folder = tmp_path_factory.mktemp("names")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for mode, name in enumerate(NAMES, start=1):
            (folder / name).write_text(f'// one\n if (mode == {mode}) reject("mode");\n')
        program = (
            "data {\n  int mode;\n  vector[2] y;\n}\nparameters {\n  real mu;\n}\nmodel {\n"
            + "".join(f"  #include <{name}>\n" for name in NAMES)
            + '  mu ~ normal(0, 1); y ~ normal(mu, 1); if (mode == 99) reject("mode");\n}\n'
        )
        (folder / MAIN_NAMES[-1]).write_text(program)
        found = opened(folder / MAIN_NAMES[-1], {"mode": 0, "y": [1.0, 0.5]}, observed="y")
        assert not (folder / "pwned").exists()
    return found


def message(model: StanModel, mode: int) -> str:
    return model.library.instance({**model.data, "mode": mode}).terms(np.array([[0.3]]))[2]


@pytest.mark.slow
@every(NAMES)
def test_a_message_of_the_tempered_program_names_the_included_file(name: str, model: StanModel) -> None:
    mode = NAMES.index(name) + 1
    start = len(f" if (mode == {mode}) ")
    assert f"(in {name!r}, line 2, column {start} to column {start + 15})" in message(model, mode)


@pytest.mark.slow
def test_a_message_of_the_tempered_program_names_the_main_file(model: StanModel) -> None:
    """Text that bread wrote before it on the line does not move the column."""
    place = f"line {9 + len(NAMES)}, column 56 to column 71"
    assert f"(in {MAIN_NAMES[-1]!r}, {place})" in message(model, 99)
    assert message(model, 0) == ""
