"""Checks that go on after any end: bit-equal reports, nothing run twice, other calls told what differs."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import BreadError, CheckpointWarning, InvalidArgumentError
from bread.jobs.remote import Missing
from bread.jobs.store import DATABASE, REPORT, Store
from bread.report.container import read_attributes
from tests.models.reference import HMCKernel, NormalMean
from tests.support.checkpointed import ROOT, content, killed

MODEL = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=3))
QUICK: dict[str, Any] = {
    "simulate_from": "prior", "path": "prior", "tune_on": "shared", "simulations": 3, "chains": 2, "tune": 10,
    "draws": 8, "n_temperatures": [4, 8], "random_seed": 3, "progressbar": False, "cores": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def expected():
    return content(bread.check(MODEL, **QUICK))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A checkpoint of a check that has finished, and the digest of its report."""
    folder = tmp_path_factory.mktemp("checkpoints") / "run"
    return folder, content(bread.check(MODEL, checkpoint=folder, **QUICK))


@pytest.fixture
def run(finished, tmp_path):
    """A copy of that checkpoint."""
    (tmp_path / "run").mkdir()
    for file in finished[0].iterdir():
        (tmp_path / "run" / file.name).write_bytes(file.read_bytes())
    return tmp_path / "run"


def forget(folder: Path, where: str) -> int:
    """Remove entries; return how many tasks are left."""
    with sqlite3.connect(folder / DATABASE) as database:
        database.execute(f"DELETE FROM entries WHERE name = 'report' OR ({where})")
        (left,) = database.execute("SELECT count(*) FROM entries WHERE name LIKE 'task %'").fetchone()
    database.close()
    return int(left)


class Counts:
    """An executor that runs tasks here and counts them; after ``last`` of them it is gone."""

    def __init__(self, last: int = 10**9) -> None:
        self.n_tasks, self._last = 0, last

    def map(self, function, items):
        for item in items:
            number, packed = function(item)
            self.n_tasks += not isinstance(pickle.loads(packed), Missing)
            if self.n_tasks > self._last:
                raise ConnectionError("the cluster is gone")
            yield number, packed


def test_a_checkpoint_changes_no_bit_of_a_report(finished, expected):
    folder, digest = finished
    assert digest == expected
    assert sorted(path.name for path in folder.iterdir()) == [DATABASE, REPORT]
    assert bread.verdict(folder / REPORT).status  # the report is a file like others
    assert str(bread.verdict(folder)) == str(bread.verdict(folder / REPORT))


def test_the_same_call_of_a_finished_check_returns_its_report(run, finished):
    again = bread.check(MODEL, checkpoint=str(run), executor=Counts(last=0), **QUICK)
    assert content(again) == finished[1]
    first = bread.check(MODEL, checkpoint=str(run), executor=Counts(last=0), **QUICK)
    assert read_attributes(first)["created_at"] == read_attributes(again)["created_at"]


def test_every_task_runs_once_wherever_the_check_was_stopped(run, tmp_path, finished):
    n_tasks = forget(run, "0")
    whole = Counts()
    folder, stops = tmp_path / "stopped", (3, n_tasks // 2)
    total = 0
    for last in stops:
        executor = Counts(last)
        with pytest.raises(BreadError, match="the cluster is gone") as stopped:
            bread.check(MODEL, checkpoint=folder, executor=executor, **QUICK)
        assert read_attributes(stopped.value.report)["is_interrupted"] == 1
        total += last
    assert content(bread.check(MODEL, checkpoint=folder, executor=whole, **QUICK)) == finished[1]
    assert total + whole.n_tasks == n_tasks


@pytest.mark.parametrize("where", ["rowid % 2 = 0 AND name LIKE 'task %'", "name = 'specification'"])
def test_what_is_missing_runs_again(run, finished, where):
    forget(run, where)
    assert content(bread.check(MODEL, checkpoint=run, **QUICK)) == finished[1]


def test_a_checkpoint_that_does_not_say_what_it_is_of_is_refused(run):
    forget(run, "name LIKE 'specification%'")
    with pytest.raises(InvalidArgumentError, match=r"damaged: it does not say which call it is of"):
        bread.check(MODEL, checkpoint=run, **QUICK)


def test_damaged_entries_run_again(run, finished):
    forget(run, "0")
    with sqlite3.connect(run / DATABASE) as database:
        database.execute(
            "UPDATE entries SET value = zeroblob(length(value)) WHERE rowid % 3 = 0 AND name LIKE 'task %'"
        )
    database.close()
    with pytest.warns(CheckpointWarning, match=r"damaged: of at least one entry its checksum is wrong.*again") as said:
        report = bread.check(MODEL, checkpoint=run, **QUICK)
    assert len(said) == 1
    assert content(report) == finished[1]


def test_a_seed_that_was_drawn_is_kept(tmp_path):
    quick = {**QUICK, "random_seed": None, "n_temperatures": 4}
    first = bread.check(MODEL, checkpoint=tmp_path / "run", **quick)
    forget(tmp_path / "run", "rowid % 2 = 0 AND name LIKE 'task %'")
    again = bread.check(MODEL, checkpoint=tmp_path / "run", **quick)
    assert content(again) == content(first)
    seed = int(read_attributes(first)["seed"])
    with pytest.raises(InvalidArgumentError, match=rf"random_seed \({seed} in the checkpoint, 4 now\)"):
        bread.check(MODEL, checkpoint=tmp_path / "run", **{**quick, "random_seed": 4})


def other_kernel(n_leapfrog):
    return NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=n_leapfrog))


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (MODEL, {"simulations": 4}, ["simulations (3 in the checkpoint, 4 now)"]),
        (MODEL, {"random_seed": 4}, ["random_seed (3 in the checkpoint, 4 now)"]),
        (MODEL, {"draws": None, "tune": 11}, ["tune (10", "draws (8 in the checkpoint, None now)"]),
        (MODEL, {"n_temperatures": 8}, ["n_temperatures ([4, 8] in the checkpoint, 8 now)"]),
        (MODEL, {"posterior": {"mean": np.ones((1, 500))}}, ["posterior (none in the checkpoint, draws "]),
        (other_kernel(4), {}, ["model (its program or graph)"]),
        (NormalMean(np.array([0.4, 1.8]), kernel=HMCKernel(3)), {}, ["model", "data 'y' (other values)"]),
        (
            NormalMean(np.array([0.4, 1.8, 1]), kernel=HMCKernel(3)), {},
            ["model", "data 'y' (shape (2,) in the checkpoint, (3,) now)", "coordinates 'observation'"],
        ),
    ],
)  # fmt: skip
def test_another_call_is_told_what_differs(run, model, options, said):
    before = (run / DATABASE).read_bytes()
    with pytest.raises(InvalidArgumentError, match="is of another call") as refused:
        bread.check(model, checkpoint=run, **{**QUICK, **options})
    for words in said:
        assert words in str(refused.value)
    assert str(refused.value).count(";") == len(said) - 1  # and nothing else
    assert (run / DATABASE).read_bytes() == before


def test_what_changes_no_result_is_no_other_call(run, finished):
    same = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=3))
    quick = {**QUICK, "cores": 2, "simulations": np.int64(3)}
    assert content(bread.check(same, checkpoint=run, **quick)) == finished[1]


def test_another_version_is_another_call(run):
    store = Store(run)
    found = store.get("specification")
    assert found is not None
    found.value["versions"]["numpy"] = "1.0.0"
    store.put("specification", found.value)
    store.close()
    with pytest.raises(
        InvalidArgumentError, match=rf"version of numpy \(1.0.0 in the checkpoint, {np.__version__} now\)"
    ):
        bread.check(MODEL, checkpoint=run, **QUICK)


USERS = """
import numpy as np

def spread(states):
    return states / SCALE

class Law:
    def sample(self, n, rng):
        return 0.7 + SCALE * rng.standard_normal((n, 1))

    def log_density(self, states):
        return -0.5 * (spread(states - 0.7)[:, 0] ** 2 + np.log(2 * np.pi * SCALE**2))

    def gradient(self, states):
        return -(states - 0.7) / SCALE**2
"""


def users_law(scale: float, edit: tuple[str, str] = ("n", "n")) -> Any:
    """Return an object of a class of the user's as a process has it whose module has been edited."""
    namespace: dict[str, Any] = {"__name__": "users", "SCALE": scale}
    exec(USERS.replace(*edit), namespace)
    return namespace["Law"]()


def test_code_that_was_edited_is_another_call(tmp_path):
    """The report of the old code came back: nothing of a class but its name was compared."""
    quick = {**QUICK, "path": users_law(1.0), "n_temperatures": 4}
    first = content(bread.check(MODEL, checkpoint=tmp_path / "run", **quick))
    assert content(bread.check(MODEL, checkpoint=tmp_path / "run", **{**quick, "path": users_law(1.0)})) == first
    for edited in (
        users_law(1.5),
        users_law(1.0, ("0.7", "0.9")),
        users_law(1.0, ("/ SCALE\n", "/ 1\n")),
    ):
        with pytest.raises(
            InvalidArgumentError, match=r"of another call: path \(of the same type, with other content\)\."
        ):
            bread.check(MODEL, checkpoint=tmp_path / "run", **{**quick, "path": edited})


def test_what_cannot_be_compared_begins_anew(tmp_path):
    quick = {**QUICK, "n_temperatures": 4}
    quick["path"] = users_law(1.0, ("/ SCALE\n", "* eval('1 / SCALE')\n"))
    said = r"every call begins anew"
    with pytest.warns(CheckpointWarning, match=said):
        first = bread.check(MODEL, checkpoint=tmp_path / "run", **quick)
    with pytest.warns(CheckpointWarning, match=said) as warned:
        again = bread.check(MODEL, checkpoint=tmp_path / "run", **quick)
    assert len(warned) == 1 and "users.spread (it uses eval)" in str(warned[0].message)
    assert content(again) == content(first)
    assert read_attributes(again)["created_at"] != read_attributes(first)["created_at"]  # it ran again


def test_another_linear_algebra_or_package_of_the_users_is_another_call(run):
    store = Store(run)
    found = store.get("specification")
    assert found is not None and any(name in found.value["versions"]["BLAS"] for name in ("openblas", "mkl", "blis"))
    found.value["versions"] |= {"BLAS": "mkl 2024.1", "lifelines": "0.27"}
    store.put("specification", found.value)
    store.close()
    with pytest.raises(InvalidArgumentError, match=r"version of BLAS \(mkl 2024.1 in .*; version of lifelines \(0.27"):
        bread.check(MODEL, checkpoint=run, **QUICK)


def test_a_checkpoint_in_use_is_refused_before_the_model_is_read(run):
    store = Store(run)
    with pytest.raises(InvalidArgumentError, match="in use by another check"):
        bread.check(object(), checkpoint=run, **QUICK)
    store.close()


@pytest.mark.parametrize("wanted", [3, b"run", "", ["run"]])
def test_what_is_no_path_is_refused(wanted):
    with pytest.raises(InvalidArgumentError, match="checkpoint must be None or the path of a folder"):
        bread.check(MODEL, checkpoint=wanted, **QUICK)


def test_a_path_begins_at_home_where_it_says_so(run, finished, monkeypatch):
    monkeypatch.setenv("HOME", str(run.parent))
    assert content(bread.check(MODEL, checkpoint="~/run", executor=Counts(last=0), **QUICK)) == finished[1]
    assert content(bread.resume("~/run", progressbar=False)) == finished[1]
    assert str(bread.verdict("~/run")) == str(bread.verdict(run))


def test_a_finished_checkpoint_that_cannot_be_written_gives_its_report(run, finished, monkeypatch):
    usual = os.access
    monkeypatch.setattr(os, "access", lambda file, mode: not str(file).startswith(str(run)) and usual(file, mode))
    assert content(bread.check(MODEL, checkpoint=run, executor=Counts(last=0), **QUICK)) == finished[1]
    forget(run, "rowid = 9")
    with pytest.raises(InvalidArgumentError, match=r"cannot be written, and its check has not finished\. Copy it"):
        bread.check(MODEL, checkpoint=run, **QUICK)


def test_resume_needs_the_checkpoint_alone(run, finished, tmp_path):
    forget(run, "rowid % 2 = 0 AND name LIKE 'task %'")
    assert content(bread.resume(run, progressbar=False)) == finished[1]
    assert content(bread.resume(run, progressbar=False)) == finished[1]  # of one that has finished
    with pytest.raises(InvalidArgumentError, match="There is no checkpoint at"):
        bread.resume(tmp_path / "nowhere")


def test_a_call_that_cannot_be_kept_can_be_made_again(tmp_path, finished):
    folder = tmp_path / "run"
    quick = {**QUICK, "posterior": None, "executor": Counts(last=3)}
    store = Store(folder)
    store.close()
    with pytest.raises(InvalidArgumentError, match=r"cannot be read .*Make that call of bread.check again"):
        bread.resume(folder, progressbar=False)
    with pytest.raises(BreadError, match="the cluster is gone"):
        bread.check(MODEL, checkpoint=folder, **quick)
    assert content(bread.check(MODEL, checkpoint=folder, **QUICK)) == finished[1]


def test_results_that_are_not_asked_for_are_said(run):
    forget(run, "0")
    store = Store(run)
    store.put("task AnnealTask 0123", 1)
    store.close()
    with pytest.warns(CheckpointWarning, match=r"1 results of the checkpoint .* were not asked for"):
        bread.check(MODEL, checkpoint=run, **QUICK)


def test_a_full_disk_costs_no_report(tmp_path, finished):
    """The limit on the size of files makes writes fail as a full disk does."""
    script = (
        "import resource, sys, warnings\n"
        "import numpy as np, bread\n"
        "from tests.models.reference import HMCKernel, NormalMean\n"
        "from tests.support.checkpointed import content\n"
        "bread.check\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        f"    report = bread.check(NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=3)), "
        f"checkpoint=sys.argv[1], **{QUICK!r})\n"
        "print(content(report), sum('cannot be written' in str(one.message) for one in said))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "run"], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    digest, n_said = done.stdout.split()
    assert digest == finished[1] and int(n_said) == 2  # of the checkpoint, and of the report beside it
    assert content(bread.check(MODEL, checkpoint=tmp_path / "run", **QUICK)) == finished[1]


@pytest.mark.parametrize(
    ("kind", "cores", "n_kills", "whom"),
    [
        ("reference", 1, 4, "parent"),
        pytest.param("reference", 1, 6, "write", marks=pytest.mark.slow),
        pytest.param("reference", 1, 40, "parent", marks=pytest.mark.slow),
        pytest.param("reference", 1, 40, "write", marks=pytest.mark.slow),
        pytest.param("reference", 2, 40, "parent", marks=[pytest.mark.slow, pytest.mark.study]),
        pytest.param("reference", 2, 40, "worker", marks=[pytest.mark.slow, pytest.mark.study]),
        pytest.param("stan", 2, 6, "parent", marks=[pytest.mark.slow, pytest.mark.study, pytest.mark.stan]),
        pytest.param("pymc", 2, 4, "parent", marks=[pytest.mark.slow, pytest.mark.pymc]),
    ],
)
def test_a_check_that_is_killed_again_and_again_gives_the_report_of_one_that_is_not(
    tmp_path, kind, cores, n_kills, whom
):
    outcome = killed(tmp_path / "run", kind, cores, n_kills, whom)
    assert outcome["found"]["content"] == outcome["whole"]["content"]
    assert outcome["n_killed"] >= max(1, n_kills // 4)  # others came after its end: machines are not evenly quick
    assert not [said for said in outcome["found"]["warnings"] if "checkpoint" in said]  # nothing was damaged
