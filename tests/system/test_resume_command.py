"""`bread check --checkpoint FOLDER` and `bread resume FOLDER`: what they print, and what they need."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpointed import content
from tests.support.fake_results import constrain, fake_result

pytest.importorskip("typer")
from typer.testing import CliRunner, Result

import bread
from bread.cli.commands import app
from bread.cli.output import ERROR_STATUS
from bread.jobs.store import DATABASE, REPORT
from bread.report import container as report

ROOT = Path(__file__).parents[2]
PROGRAM, DATA = ROOT / "examples" / "eight_schools.stan", ROOT / "examples" / "eight_schools.json"
QUICK = (
    "--observed", "y", "--path", "prior", "--simulate-from", "prior", "--simulations", "3", "--chains", "2", "--tune",
    "10", "--draws", "8", "-T", "64", "--no-progress",
)  # fmt: skip


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_option_reaches_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    received: dict[str, Any] = {}

    def check(model: Any, **options: Any) -> Any:
        received.update(options)
        return report.to_container(fake_result(gap=0.01), constrain)

    monkeypatch.setattr(bread, "check", check)
    assert run("check", PROGRAM, DATA, "--checkpoint", tmp_path / "run").exit_code == 0
    assert received["checkpoint"] == tmp_path / "run"
    assert run("check", PROGRAM, DATA).exit_code == 0
    assert received["checkpoint"] is None


def test_resume_prints_the_report_and_leaves_with_its_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    received: dict[str, Any] = {}

    def resume(checkpoint: Any, **options: Any) -> Any:
        received.update(options, checkpoint=checkpoint)
        return report.to_container(fake_result(gap=6.0), constrain)

    monkeypatch.setattr(bread, "resume", resume)
    done = run("resume", tmp_path / "run", "--cores", "3", "--json", "--no-progress", "--output", tmp_path / "out.nc")
    assert done.exit_code == 3 and json.loads(done.stdout)["status"] == "not converged"
    assert received == {"checkpoint": tmp_path / "run", "cores": 3, "progressbar": False}
    assert (tmp_path / "out.nc").exists()


def test_what_is_no_checkpoint_is_an_error_on_one_line(tmp_path: Path) -> None:
    done = run("resume", tmp_path / "run")
    assert done.exit_code == ERROR_STATUS
    assert "error: There is no checkpoint at" in done.output
    assert not (tmp_path / "run").exists()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").touch()
    done = run("check", PROGRAM, DATA, "--checkpoint", tmp_path / "notes")
    assert done.exit_code == ERROR_STATUS and "is something else" in done.output


@pytest.mark.stan
@pytest.mark.slow
def test_a_stan_check_is_resumed_from_its_folder_alone(tmp_path: Path) -> None:
    """The program and its data are gone by then."""
    for file in (PROGRAM, DATA):
        shutil.copy(file, tmp_path / file.name)
    program, data, folder = tmp_path / PROGRAM.name, tmp_path / DATA.name, tmp_path / "run"
    command = [sys.executable, "-m", "bread"]
    check = [*command, "check", program, data, *QUICK, "--checkpoint", folder, "--output", tmp_path / "whole.nc"]
    whole = subprocess.run([*map(str, check)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert whole.returncode in (0, 3), whole.stderr
    assert (folder / REPORT).exists()
    with sqlite3.connect(folder / DATABASE) as database:
        database.execute("DELETE FROM entries WHERE name = 'report' OR (name LIKE 'task %' AND rowid % 2 = 0)")
        database.execute("UPDATE entries SET checksum = x'00' WHERE name LIKE 'task %' AND rowid % 7 = 1")
    database.close()
    program.unlink()
    data.unlink()
    resume = [*command, "resume", folder, "--no-progress", "--output", tmp_path / "resumed.nc"]
    resumed = subprocess.run([*map(str, resume)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert resumed.returncode == whole.returncode, resumed.stderr
    assert "warning: The checkpoint" in resumed.stderr and "damaged" in resumed.stderr
    assert resumed.stdout.replace("resumed.nc", "whole.nc") == whole.stdout
    import xarray as xr

    with xr.open_datatree(tmp_path / "whole.nc") as first, xr.open_datatree(tmp_path / "resumed.nc") as second:
        assert content(first) == content(second)
