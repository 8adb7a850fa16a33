"""Files that the command line writes: tried before the check, and a verdict whatever becomes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import bread
from bread.report import container as report
from tests.support.cli_runs import plain, returns, run
from tests.support.fake_results import constrain, fake_result


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "model.stan"
    path.write_text("parameters { real x; } model { x ~ std_normal(); }")
    return path


@pytest.mark.parametrize("option", ["--output", "--html"])
def test_a_file_that_cannot_be_written_is_refused_before_the_check(
    option: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = returns(monkeypatch, fake_result(gap=0.01))
    (tmp_path / "taken").mkdir()
    for file, why in (
        (tmp_path / "none" / "report.nc", "does not exist"),
        (tmp_path / "taken", "is a folder"),
        (tmp_path / ("r" * 253 + ".nc"), "can be written"),  # too long a name
        (Path("/proc/self/report.nc"), "can be written"),  # a folder that takes no files, of root's neither
    ):
        done = run("check", program, option, file)
        assert done.exit_code == 2 and why in plain(done) and not received, (file, done.output)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model.stan", "taken"]
    done = run("check", program, option, tmp_path / "report.out")
    assert done.exit_code == 0 and received and (tmp_path / "report.out").stat().st_size > 1000


def test_a_report_without_a_package_that_writes_is_refused_before_the_check(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = returns(monkeypatch, fake_result(gap=0.01))
    made = type(report.to_container(fake_result(gap=0.4), constrain))

    def no_engine(*_: Any, **__: Any) -> None:
        raise ValueError("cannot write NetCDF files because none of the suitable backend libraries are installed")

    monkeypatch.setattr(made, "to_netcdf", no_engine)
    done = run("check", program, "--output", tmp_path / "report.nc")
    assert done.exit_code == 2 and "backend" in plain(done) and not received


@pytest.mark.parametrize("is_json", [False, True])
def test_a_folder_that_goes_meanwhile_costs_neither_verdict_nor_report(
    is_json: bool, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results"
    folder.mkdir()

    def check(*_: Any, **__: Any) -> Any:
        shutil.rmtree(folder)
        return report.to_container(fake_result(gap=0.01), constrain)

    monkeypatch.setattr(bread, "check", check)
    arguments = ["--json"] if is_json else []
    done = run("check", program, "--output", folder / "report.nc", "--html", folder / "page.html", *arguments)
    kept = next(tmp_path.glob("report-*.nc"))
    assert done.exit_code == 1 and f"It is in {kept.name}" in plain(done).replace(f"{tmp_path}/", "")
    assert "error: The folder" in plain(done)  # of the page
    assert bread.verdict(kept).status == "converged"
    if is_json:
        found = json.loads(done.stdout)
        assert found["status"] == "converged" and found["report"] == str(kept) and found["page"] is None
        assert found["exit_status"] == 1
    else:
        assert "CONVERGED Your draws " in plain(done)


def test_a_report_that_nothing_takes_costs_no_verdict(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = type(report.to_container(fake_result(gap=0.4), constrain))

    def check(*_: Any, **__: Any) -> Any:
        monkeypatch.setattr(made, "to_netcdf", lambda *_: (_ for _ in ()).throw(RuntimeError("HDF error\n-101")))
        return report.to_container(fake_result(gap=0.01), constrain)

    monkeypatch.setattr(bread, "check", check)
    done = run("check", program, "--output", tmp_path / "report.nc")
    assert done.exit_code == 1 and "CONVERGED Your draws " in plain(done)
    assert "cannot be written to" in plain(done) and "HDF error -101. It is not kept" in plain(done)
