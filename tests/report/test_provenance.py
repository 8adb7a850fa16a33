"""What a report says on where it was made: the commit of the working folder, and nothing that is not known."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bread.report.compat import read_attributes
from bread.report.container import to_container
from bread.report.provenance import provenance_attributes
from tests.support.fake_results import constrain, fake_result

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@needs_git
def test_the_commit_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert "git_commit" not in provenance_attributes()  # no repository
    git(tmp_path, "init", "--quiet")
    assert "git_commit" not in provenance_attributes()  # nothing committed
    (tmp_path / "model.stan").write_text("a", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "m")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "report.nc").write_text("not tracked", encoding="utf-8")
    assert [provenance_attributes()[name] for name in ("git_commit", "git_is_changed")] == [commit, 0]
    (tmp_path / "model.stan").write_text("b", encoding="utf-8")
    attributes = read_attributes(to_container(fake_result(), constrain))
    assert (attributes["git_commit"], attributes["git_is_changed"]) == (commit, 1)
    assert str(tmp_path) not in str(provenance_attributes())


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 5.0)])
def test_without_git_nothing_is_said(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    assert set(provenance_attributes()) == {"python_version", "platform"}
