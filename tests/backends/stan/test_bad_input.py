"""Bad input of every kind: an error on one line with Stan's own words and the place in the user's file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import BreadError, InvalidArgumentError, MissingDependencyError
from tests.support.stan_bad_input_table import (
    BLOCKS,
    DATA,
    DATA_CASES,
    INCLUDED,
    OPTIONS,
    POSTERIORS,
    PROGRAM,
    PROGRAMS,
    SIMULATORS,
    THROWN,
    Bad,
)
from tests.support.stan_conjugate import opened, toolchain

pytestmark = pytest.mark.stan


def check(case: Bad, folder: Path, **more: Any) -> None:
    """Open the bad input from files of the user's; compare the error."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    program, data = case.program, case.data
    if isinstance(program, (str, bytes)):
        (folder / "user.stan").write_bytes(program if isinstance(program, bytes) else program.encode())
        program = Path("user.stan")
    data = folder / data if isinstance(data, Path) else data
    with pytest.raises(BreadError) as caught:
        opened(folder / program, data, **{**case.options, **more})
    message = str(caught.value)
    assert isinstance(caught.value, case.kind), type(caught.value)
    assert re.search(case.words, message), message
    assert re.search(case.place, message), message
    assert "\n" not in message
    assert not re.search(r"bread_[a-z]_|_namespace|bread-stan-|bread (original|tempered)", message), message


# Each needs a build of its own; cases beside them show the same kind of error.
SLOW = {
    "likelihood is a prior", "a program that lacks a parameter", "a program with other data", "a program that rejects",
    "a program with another shape",
}  # fmt: skip


def every(cases: dict[Any, Any]) -> pytest.MarkDecorator:
    rows = [pytest.param(case, id=str(name), marks=[pytest.mark.slow] * (name in SLOW)) for name, case in cases.items()]
    return pytest.mark.parametrize("case", rows)


@every(PROGRAMS)
def test_bad_programs(case: Bad, tmp_path: Path) -> None:
    check(case, tmp_path)


@every(DATA_CASES)
def test_bad_data(case: Bad, tmp_path: Path) -> None:
    check(case, tmp_path)


@every(OPTIONS)
def test_bad_options(case: Bad, tmp_path: Path) -> None:
    check(case, tmp_path)


@every(SIMULATORS)
def test_bad_simulators(case: Bad, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.parametrize("mode", THROWN)
def test_each_block_throws(mode: int, tmp_path: Path) -> None:
    """The words come out with the place of the statement that failed."""
    words, place, kind = THROWN[mode]
    data = {"mode": mode, "N": 3, "y": [1.0, 0.2, -1.0]}
    files: dict[str, str | bytes] = {"positive.stan": INCLUDED}
    check(Bad(words, place, BLOCKS, data, files, {"observed": "y"}, kind), tmp_path)


@pytest.mark.parametrize("mode", [0, 13])
def test_a_program_that_does_not_throw(mode: int, tmp_path: Path) -> None:
    """Control: the same program opens. Its generated quantities, which throw in mode 13, are not run."""
    (tmp_path / "positive.stan").write_text(INCLUDED)
    (tmp_path / "user.stan").write_text(BLOCKS)
    model = opened(tmp_path / "user.stan", {"mode": mode, "N": 3, "y": [1.0, 0.2, -1.0]}, observed="y")
    assert "The program's generated quantities are not computed." in model.info.identity.notes


def test_a_program_that_rejects_half_of_its_draws(tmp_path: Path) -> None:
    """Mode 12: the included file refuses positive mu. Draws are made again as a whole; the note has the words."""
    (tmp_path / "positive.stan").write_text(INCLUDED)
    (tmp_path / "user.stan").write_text(BLOCKS)
    model = opened(tmp_path / "user.stan", {"mode": 12, "N": 3, "y": [1.0, 0.2, -1.0]}, observed="y")
    assert any("the included file refuses positive mu" in note for note in model.info.identity.notes)
    assert (model.simulate(20, fixed=None, seed=np.random.SeedSequence(1)).parameters["mu"] <= 0).all()


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain()
    monkeypatch.setenv("BREAD_CACHE", str(tmp_path / "cache"))  # what was compiled before needs no compiler
    for compiler in ("no-such-compiler", "/bin/false"):
        monkeypatch.setenv("CXX", compiler)
        check(
            Bad(f"No C\\+\\+ compiler was found: tried '{compiler}'.*install one", kind=MissingDependencyError),
            tmp_path,
        )


@pytest.mark.parametrize(("posterior", "words"), POSTERIORS.values(), ids=list(POSTERIORS))
def test_bad_posteriors(posterior: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "user.stan").write_text(PROGRAM)
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        bread.check(tmp_path / "user.stan", data=DATA, posterior=posterior, cores=1, progressbar=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "place"),
    [(4, "'user.stan', line 38, column 4 to column 54"), (12, "'positive.stan', line 2, column 2 to column 57")],
)
def test_messages_of_chains_name_the_users_files(mode: int, place: str, tmp_path: Path) -> None:
    """The tempered program, too: its lines are those of the inserted file, its columns are moved by what was added."""
    (tmp_path / "positive.stan").write_text(INCLUDED)
    (tmp_path / "user.stan").write_text(BLOCKS)
    model = opened(tmp_path / "user.stan", {"mode": 0, "N": 3, "y": [1.0, 0.2, -1.0]}, observed="y")
    instance = model.library.instance({**model.data, "mode": mode})
    assert f"(in {place})" in instance.terms(np.array([[1.0, 0.0]]))[2]
