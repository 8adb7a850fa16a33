"""JSON of the command line, and the evidence of a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_results import constrain, fake_result
from tests.support.stan_conjugate import EIGHT_SCHOOLS

pytest.importorskip("typer")
from typer.testing import Result

import bread
from bread.cli.output import ERROR_STATUS
from bread.errors import InvalidArgumentError
from bread.report import container as report
from tests.support.cli_runs import returns, run


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "model.stan"
    path.write_text(EIGHT_SCHOOLS)
    return path


def loaded(done: Result) -> dict[str, Any]:
    """Return the object that stdout is, strictly read: NaN and infinity are no JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    assert done.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(done.stdout, parse_constant=refuse)
    return found


@pytest.mark.parametrize(
    ("options", "status", "name"),
    [
        ({"gap": 6.0}, 3, "not converged"),
        ({"gap": 0.01, "posterior_shift": 1.5}, 6, "disagreement"),
    ],
)
def test_json_holds_the_verdict_and_its_numbers(
    options: dict[str, Any], status: int, name: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    returns(monkeypatch, fake_result(**options))
    output = tmp_path / "report.nc"
    done = run("check", program, "--json", "--output", output)
    found = loaded(done)
    assert (done.exit_code, found["exit_status"], found["status"]) == (status, status, name)
    shown = run("show", output, "--json")
    assert shown.exit_code == status and loaded(shown) == {**found, "report": None} and found["report"] == str(output)
    verdict, summary = bread.verdict(output), bread.summary(output, kind="bounds")
    row = summary.loc[found["n_temperatures"]]
    assert found["V"]["error_limit"] == row["error_limit"] and found["V"]["max_error"] == 0.1
    assert [found["B"][key] for key in ("jeffreys", "lower", "upper")] == [row["jeffreys"], row["lower"], row["upper"]]
    assert found["agreement"] is verdict.agreement and found["verdict"] == str(verdict)
    assert found["p_values"]["consistency"] == verdict.consistency_p_value
    assert (found["p_values"]["agreement"] is None) == ("posterior_shift" not in options)
    assert found["p_values"]["direct"] is None  # NaN: not tested
    assert [one["n_temperatures"] for one in found["temperatures"]] == list(summary.index)
    assert found["versions"]["bread"] == bread.__version__ and found["path"] == "prior" and found["held"] == []


def test_evidence_is_printed_with_every_estimator(tmp_path: Path) -> None:
    output = tmp_path / "report.nc"
    report.to_container(fake_result(), constrain).to_netcdf(output)
    printed, found = run("evidence", output), bread.evidence(output)
    assert printed.exit_code == 0 and printed.stdout.strip() == str(found).strip()
    as_json = loaded(run("evidence", output, "--level", "0.9", "--json"))
    assert as_json["level"] == 0.9 and found.lower < as_json["lower"] < as_json["upper"] < found.upper
    assert [row["estimator"] for row in as_json["estimators"]] == list(found.table.index)
    assert as_json["estimators"][5]["log_evidence"] is None  # of reverse chains, which real data have none of
    wrong = run("evidence", output, "--level", "95", "--json")
    assert wrong.exit_code == ERROR_STATUS and "level" in loaded(wrong)["error"]


def test_json_of_a_report_in_which_nothing_is_finished_or_finite(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = bread.summary
    returns(monkeypatch, fake_result(gap=0.4))

    def infinite(report: Any, **named: Any) -> Any:
        return full(report, **named).assign(upper=float("inf"), lower=float("-inf"), jeffreys=float("nan"))

    monkeypatch.setattr("bread.reading.as_json.summary", infinite)
    found = loaded(run("check", program, "--json"))
    assert (found["B"]["jeffreys"], found["B"]["lower"], found["B"]["upper"]) == (None, "-Infinity", "Infinity")
    monkeypatch.setattr("bread.reading.as_json.summary", lambda report, **named: full(report, **named).iloc[:0])
    found = loaded(run("check", program, "--json"))
    assert found["V"] is None and found["B"] is None and found["temperatures"] == []


def test_errors_are_json_where_it_is_asked_for(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(model: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(bread, "check", check)
    for error, status in (
        (InvalidArgumentError("The data lack 'J'."), 1),
        (KeyboardInterrupt("Nothing is done."), 130),
    ):
        done = run("check", program, "--json")
        assert done.exit_code == status and done.stderr == ""
        assert loaded(done) == {"status": "error", "error": str(error), "exit_status": status}
    path = tmp_path / "report.nc"
    path.write_text("no report")
    assert "cannot be read as a report" in loaded(run("show", path, "--json"))["error"]
