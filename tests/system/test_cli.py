"""The command line: arguments, output, and an exit status for every verdict."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.fake_results import constrain, fake_result, model_info, shift_reverse_starts
from tests.support.stan_conjugate import EIGHT_SCHOOLS, SCHOOLS, toolchain

pytest.importorskip("typer")
from typer.testing import Result

import bread
from bread.cli.output import ERROR_STATUS, EXIT_STATUS, INTERRUPTED_STATUS
from bread.errors import InvalidArgumentError
from bread.jobs.progress import STAGES
from bread.report import container as report
from tests.support.cli_runs import returns, run

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def plain(result: Result) -> str:
    """Return the output on one line, without frames and colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", result.output).split())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "model.stan"
    path.write_text(EIGHT_SCHOOLS)
    return path


@pytest.mark.parametrize(
    ("result", "status", "name"),
    [
        (lambda: fake_result(gap=0.01), 0, "converged"),
        (lambda: fake_result(gap=6.0), 3, "not converged"),
        (lambda: fake_result(gap=0.05), 3, "inconclusive"),
        (lambda: fake_result(gap=0.01, observed_extra=8.0, n_forward=179), 4, "mismatch"),
        (lambda: shift_reverse_starts(fake_result(gap=0.01)), 5, "bug"),
        (lambda: fake_result(gap=0.01, posterior_shift=1.5), 6, "disagreement"),
    ],
)
def test_exit_status(
    result: Any, status: int, name: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    returns(monkeypatch, result())
    output = tmp_path / "report.nc"
    done = run("check", program, "--output", output)
    assert done.exit_code == status, done.output
    assert done.output.startswith(name.upper()) and " Bounds " in plain(done) and "…" not in done.output
    lines = done.output.split("\n\n")[0].split("\n")
    assert len(lines) <= 8 and max(map(len, lines)) <= 100
    shown = run("show", output)
    assert shown.exit_code == status and plain(done) == f"{plain(shown)} Report: {''.join(str(output).split())}"


# ---- JSON ----------------------------------------------------------------------------------------------------


def test_exit_statuses_are_those_of_the_documentation_and_the_help() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| (\d+) \| (.*) \|$", page, flags=re.MULTILINE))
    text = plain(run("check", "--help")).partition("Exit status: ")[2]
    listed = dict(re.findall(r"(\d+) ([^;.]+)", text))
    every = [*EXIT_STATUS.items(), ("error", ERROR_STATUS), ("usage", 2), ("interrupted", INTERRUPTED_STATUS)]
    assert set(table) == set(listed) == {str(status) for _, status in every}
    for name, status in every:
        assert name in table[str(status)], name
        assert name.removesuffix("ment") in listed[str(status)], name


def test_draws_are_shown_worst_first(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    returns(monkeypatch, fake_result(gap=0.01, posterior_shift=1.5))
    shown = plain(run("check", program))
    assert "Draws parameter holds limits shift sd ratio error effective" in shown
    mu, exeter = shown.index(" mu 0.5"), shown.index("theta[Exeter] 0.")
    assert mu < exeter and "of which 100 are needed" in shown
    returns(monkeypatch, fake_result(gap=0.01))
    assert "Draws parameter" not in plain(run("check", program))  # nothing was compared


def test_temperatures_of_the_consistency_test_alone_are_not_shown(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    returns(monkeypatch, fake_result(gap=0.4))
    full = bread.summary

    def shown() -> list[str]:
        lines = run("check", program).output.splitlines()
        return [words[0] for words in map(str.split, lines) if words and words[0].isdigit()]

    def without_first(report: Any, **named: Any) -> Any:
        frame = full(report, **named)
        frame.loc[frame.index[0], "n_simulations"] = 0
        return frame

    every = shown()
    monkeypatch.setattr(bread, "summary", without_first)
    assert len(every) > 1 and shown() == every[1:]


def test_arguments_reach_check(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received = returns(monkeypatch, fake_result(gap=0.4))
    run(
        "check", program, "data.json", "--observed", "y", "-y", "z", "--simulate-from", "prior", "-T", 8, "-T", 16,
        "--kernel", "hmc", "--seed", 0, "--hyperparameter", "mu", "--likelihood", 19, "--target", 2,
        "--posterior", "chain-1.csv", "--posterior", "chain-2.csv",
    )  # fmt: skip
    assert received["model"] == program and received["data"] == Path("data.json")
    assert received["observed"] == ["y", "z"] and received["hyperparameters"] == ["mu"]
    assert received["simulate_from"] == "prior" and received["n_temperatures"] == [8, 16]
    assert received["kernel"] == "hmc" and received["random_seed"] == 0 and received["likelihood"] == [19]
    assert received["target"] == 2.0 and received["progressbar"] is True
    assert received["posterior"] == [Path("chain-1.csv"), Path("chain-2.csv")]
    received = returns(monkeypatch, fake_result(gap=0.4))
    run("check", program)
    assert all(
        received[name] is None for name in ("data", "observed", "posterior", "n_temperatures", "random_seed", "cores")
    )
    assert received["simulate_from"] == "auto" and received["kernel"] == "nuts"


def test_defaults_are_those_of_check(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import inspect

    defaults = {name: one.default for name, one in inspect.signature(bread.check).parameters.items()}
    received = returns(monkeypatch, fake_result(gap=0.4))
    run("check", program)
    for name, value in received.items():
        if name not in ("model", "progressbar", "kernel"):
            assert value == defaults[name], name


def test_usage_errors(program: Path, tmp_path: Path) -> None:
    for arguments, match in (
        (["check"], "Missing argument"),
        (["check", program, "--chains", 0], "--chains"),
        (["check", program, "--kernel", "gibbs"], "--kernel"),
        (["check", program, "--output", tmp_path / "none" / "report.nc"], "does not exist"),
        (["chek", program], "No such command"),
        (["show", tmp_path / "none.nc"], "does not exist"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2 and match in plain(done), (arguments, done.output)


def test_an_error_keeps_what_was_finished(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(model: Any, **options: Any) -> Any:
        error = InvalidArgumentError("The data lack 'J'.")
        error.report = report.to_container(fake_result(gap=0.4), constrain)
        raise error

    monkeypatch.setattr(bread, "check", check)
    done = run("check", program, "--output", tmp_path / "report.nc")
    assert done.exit_code == 1 and "error: The data lack 'J'." in plain(done)
    assert (tmp_path / "report.nc").exists()


def test_errors_are_spelt_as_options(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(model: Any, **options: Any) -> Any:
        raise InvalidArgumentError("'model.stan', line 7: `path=1`. Use simulate_from='prior', or observed=[...].")

    monkeypatch.setattr(bread, "check", check)
    done = run("check", program)
    assert done.exit_code == 1
    assert "line 7: `path=1`. Use --simulate-from prior, or --observed NAME." in plain(done)


@pytest.mark.parametrize("backend", ["stan", "pymc"])
def test_a_report_is_told_of_its_own_language(
    backend: str, tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = model_info(backend=backend, notes=("Observed, inferred from the program: y.", "3 draws were made again."))
    made = report.to_container(fake_result(gap=0.01, simulate_from="fitted", info=info), constrain)
    made.to_netcdf(str(tmp_path / "report.nc"))
    shown = plain(run("show", tmp_path / "report.nc"))
    assert ("--posterior" in shown, "posterior=" in shown) == ((True, False) if backend == "stan" else (False, True))
    assert "Path: prior" in shown and "Data sets: fitted, near your data" in shown and "Outcomes: y, inf" in shown
    assert "Note: 3 draws were made again." in shown and shown.startswith("CONVERGED Your draws ")


def test_a_file_that_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "report.nc"
    path.write_text("no report")
    done = run("show", path)
    assert done.exit_code == 1 and "cannot be read as a report" in plain(done)


def test_help_says_what_is_needed() -> None:
    text = plain(run("check", "--help"))
    assert "--observed" in text and "Exit status: 0" in text and "bug in model" in text
    assert f"bread {bread.__version__}" in plain(run("--version"))


def packages_of_core() -> set[str]:
    """Return the packages that come with bread alone, those that they need included."""
    found: set[str] = set()
    wanted = [Requirement(one) for one in PROJECT["dependencies"]]
    while wanted:
        one = wanted.pop()
        name = canonicalize_name(one.name)
        if name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        wanted += [Requirement(text) for text in importlib.metadata.requires(name) or ()]
    return found


@pytest.mark.slow
def test_a_report_is_shown_where_the_extra_for_stan_is_not_installed(tmp_path: Path) -> None:
    core = packages_of_core()
    extra = {canonicalize_name(Requirement(one).name) for one in PROJECT["optional-dependencies"]["stan"]}
    missing = sorted(extra - core)
    assert {"lark", "httpstan"} <= set(missing)
    code = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from bread.__main__ import main
main()
"""
    output = tmp_path / "report.nc"
    report.to_container(fake_result(gap=0.01), constrain).to_netcdf(str(output))
    command = [sys.executable, "-c", code]
    shown = subprocess.run([*command, "show", str(output)], capture_output=True, text=True, check=False)
    assert shown.returncode == 0 and "converged:" in shown.stdout, shown.stderr
    (tmp_path / "model.stan").write_text(EIGHT_SCHOOLS)
    done = subprocess.run(
        [*command, "check", str(tmp_path / "model.stan")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "bread-mcmc[stan]" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.stan
def test_end_to_end(program: Path, tmp_path: Path) -> None:
    toolchain()
    data, output = tmp_path / "data.json", tmp_path / "report.nc"
    data.write_text(json.dumps(SCHOOLS))
    command = [sys.executable, "-m", "bread", "check", program, data, "--observed", "y", "--output", output]
    options = ["--simulations", 4, "--chains", 2, "-T", 4, "-T", 16, "--draws", 4, "--seed", 1, "--cores", 1]
    done = subprocess.run([*map(str, command + options)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert "Bounds" in done.stdout and output.stat().st_size > 0
    lines = done.stderr.splitlines()  # no terminal: a line a stage, and nothing else
    assert [line[:30].strip() for line in lines] == list(STAGES), done.stderr
    assert re.search(r"s  V \S+ \(below \S+\), limit 0\.1$", lines[3]) and max(map(len, lines)) <= 80, done.stderr
    wrong = subprocess.run([*map(str, command[:6]), "-y", "mu"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "error: --observed mu is a parameter ('model.stan', line 8)" in wrong.stderr
