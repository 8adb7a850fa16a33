"""The command line, run in this process, with checks that return at once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import bread
from bread.cli.commands import app
from bread.report import container as report
from tests.support.fake_results import constrain


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def returns(monkeypatch: pytest.MonkeyPatch, result: Any) -> dict[str, Any]:
    """Let `bread.check` return the report of a result at once; return the arguments that it gets."""
    received: dict[str, Any] = {}

    def check(model: Any, **options: Any) -> Any:
        received.update(options, model=model)
        return report.to_container(result, constrain)

    monkeypatch.setattr(bread, "check", check)
    return received


def plain(result: Result) -> str:
    """Return the output on one line, without frames and colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", result.output).split())
