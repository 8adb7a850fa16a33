"""The command line writes pages and Markdown, and refuses before it computes what it could not write."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_runs import run
from tests.support.fake_results import constrain, fake_result
from tests.support.pages import Page

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
from typer.testing import Result

import bread
from bread.cli.output import ERROR_STATUS
from bread.errors import BreadError
from bread.report import container as report


def plain(result: Result) -> str:
    """Return the output on one line, without frames and colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", result.output).split())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "model.stan"
    path.write_text("", encoding="utf-8")
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let `bread.check` return one report at once."""
    found = report.to_container(fake_result(gap=6.0, n_draws=0), constrain)
    monkeypatch.setattr(bread, "check", lambda model, **options: found)
    return found


def test_check_and_show_write_the_same_page(program: Path, tmp_path: Path, made: Any) -> None:
    output, html, again = tmp_path / "report.nc", tmp_path / "report.html", tmp_path / "again.html"
    done = run("check", program, "--output", output, "--html", html)
    assert done.exit_code == 3 and "Page:" in done.output, done.output
    page = Page(html.read_text(encoding="utf-8"))
    assert page.is_whole and "Not converged" in page.text
    shown = run("show", output, "--html", again, "--json")
    assert shown.exit_code == 3 and again.read_bytes() == html.read_bytes()
    assert json.loads(shown.stdout)["page"] == str(again) and json.loads(shown.stdout)["report"] is None
    assert bread.to_html(made) == html.read_text(encoding="utf-8")


def test_markdown_alone_on_stdout(program: Path, made: Any) -> None:
    done = run("check", program, "--markdown")
    assert done.exit_code == 3 and done.stdout == bread.to_markdown(made)
    refused = run("check", program, "--markdown", "--json")
    assert refused.exit_code == 2 and "give --json or --markdown" in plain(refused)


def test_a_page_that_cannot_be_written_is_refused_first(
    program: Path, tmp_path: Path, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "report.nc"
    made.to_netcdf(output)
    before = output.read_bytes()
    assert run("show", output, "--html", output).exit_code == 2

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr(bread, "check", never)
    for html in (output, tmp_path, tmp_path / "none" / "page.html", program):
        program.write_text("data {}", encoding="utf-8")
        done = run("check", program, "--output", output, "--html", html)
        assert done.exit_code == 2 and "--html" in plain(done), done.output
    assert output.read_bytes() == before and program.read_text(encoding="utf-8") == "data {}"


def test_a_check_that_fails_with_something_to_show(
    program: Path, tmp_path: Path, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(model: Any, **options: Any) -> None:
        error = BreadError("the density failed")
        error.report = made
        raise error

    monkeypatch.setattr(bread, "check", fails)
    monkeypatch.setattr("bread.cli.output.page_of", lambda *_: "<!doctype html>\n")
    html = tmp_path / "page.html"
    done = run("check", program, "--html", html)
    assert done.exit_code == ERROR_STATUS and html.is_file() and "the density failed" in done.output
