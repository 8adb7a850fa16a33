"""What a stranger's report names: text of the terminal, whatever it holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bread
from bread.cli.commands import app
from bread.reading.sentences.printable import printable
from bread.report import container as report
from bread.report.compat import group_names, make_container, read_attributes, read_group
from tests.support.fake_results import constrain, fake_result

NAMES = (  # markup, an emoji of Rich, commands to a terminal, line ends, the direction of writing
    "[/x]", "[red]", ":smile:", "\x1b]0;mine\x07", "\x9b2J", "a\rb", "a\u202eb", "a\nb",
)  # fmt: skip
COMMANDS = set("\x1b\x07\x9b\r\u202e")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose parameters, model and notes bear such names."""
    result = fake_result(temperatures=(4, 8), n_search=2, n_confirm=10, n_forward=0, n_draws=200, posterior_shift=3.0)
    made = report.to_container(result, constrain)
    groups = {name: read_group(made, name) for name in group_names(made)}
    others = [str(name) for name in groups["agreement"]["parameter"].values[len(NAMES) :]]
    names = [*NAMES, *others][: groups["agreement"].sizes["parameter"]]
    groups["agreement"] = groups["agreement"].assign_coords(parameter=np.array(names, dtype=np.str_))
    path = tmp_path_factory.mktemp("stranger") / "report.nc"
    attributes = read_attributes(made) | {"model": "".join(NAMES), "notes": json.dumps(NAMES)}
    make_container(groups, attributes).to_netcdf(str(path))
    return path


@pytest.mark.parametrize("option", [None, "--markdown"])
def test_names_are_shown_as_they_are_and_command_no_terminal(file: Path, option: str | None) -> None:
    done = CliRunner().invoke(app, ["show", str(file), *([option] if option else [])])
    assert isinstance(done.exception, SystemExit), done.exception
    assert not COMMANDS & set(done.stdout)
    for name in NAMES if option is None else ():
        assert f"Note: {printable(name)}\n" in done.stdout
    assert option or ("[/x]  " in done.stdout and "[red]  " in done.stdout)  # as parameters


def test_a_verdict_commands_no_terminal(file: Path) -> None:
    verdict = bread.verdict(file)
    assert not COMMANDS & set(verdict) and not (COMMANDS | {"\n"}) & set(verdict.details) and "[/x]" in verdict.details


def test_letters_of_all_languages_stay() -> None:
    text = "Grüße, ελληνικά, עברית, हिन्दी, 日本語, 👩\u200d🔬 x\u00b2"
    assert printable(text) == text
    assert printable("\x1b[2J\u2066\ud800") == r"\x1b[2J\u2066\ud800"
