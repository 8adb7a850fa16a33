"""`bread.check` end to end on reference models: what runs, what is equal, what survives an interruption."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bread
from bread.errors import DensityError, InvalidArgumentError
from bread.report.container import group_names, read_attributes, read_group
from bread.running.state.ledger import Ledger
from tests.models.reference import AutoregressiveKernel, FaultyNormalMean, HMCKernel, NormalMean, UniformLocation
from tests.support.marks import slow_but
from tests.support.reports import assert_same_report

Y = np.array([0.4, 1.9, 1.1])
AR = NormalMean(Y, prior_mean=0.5, prior_sd=1.5, kernel=AutoregressiveKernel(rho=0.3))
QUICK = {"simulate_from": "prior", "random_seed": 5, "cores": 1, "progressbar": False, "tune_on": "shared", "tune": 20}


def test_grows_until_the_target_and_confirms_on_fresh_simulations() -> None:
    report = bread.check(AR, **QUICK, target=0.5)
    verdict = bread.verdict(report)
    assert verdict.status == "converged"
    assert verdict.ci_upper <= 0.5
    bounds = read_group(report, "bounds")
    temperatures = bounds["n_temperatures"].values
    assert np.all(temperatures[1:] == 2 * temperatures[:-1])
    roles = bounds["role"].values
    assert set(roles) == {"search", "confirm", "forward"}
    n_confirm = int((roles == "confirm").sum())
    assert n_confirm >= 20  # more where that was cheaper than more temperatures
    assert (roles != "search").sum() == max(40, n_confirm)  # confirming and forward-only ones: the consistency test
    finished = read_group(report, "reverse")["finished"].values.all(axis=-1)
    assert np.array_equal(finished[-1] & (roles == "confirm"), roles == "confirm")
    assert not finished[0, roles == "confirm"].any()  # fresh: they had no part in the search
    assert np.isfinite(read_group(report, "consistency")["p_value"].item())


def test_the_error_of_a_probability_decides_by_default() -> None:
    report = bread.check(AR, **QUICK)
    verdict = bread.verdict(report)
    assert verdict.status == "converged" and verdict.bound == "V"
    assert verdict.error < verdict.error_limit <= 0.1 < verdict.error_limit_exact
    certificate = read_group(report, "certificate")
    assert np.all(np.diff(certificate["error"].values) < 0.0)  # it falls with T
    loose = bread.verdict(bread.check(AR, **QUICK, max_error=0.4))
    assert loose.status == "converged" and loose.n_temperatures < verdict.n_temperatures


def test_simulations_are_added_where_that_is_cheaper_than_temperatures() -> None:
    report = bread.check(AR, **QUICK, max_error=0.24, max_temperatures=16, simulations=10)
    roles = read_group(report, "bounds")["role"].values
    n_confirm = int((roles == "confirm").sum())
    assert 10 < n_confirm <= 50
    verdict = bread.verdict(report)
    assert verdict.n_simulations == n_confirm
    level = float(read_group(report, "certificate").attrs["level"])
    assert level > 0.975  # every look spends a part of the error


def test_stops_at_max_temperatures_and_says_so() -> None:
    report = bread.check(AR, **QUICK, target=1e-3, max_temperatures=8, simulations=8)
    assert read_group(report, "bounds")["n_temperatures"].values[-1] == 8
    assert bread.verdict(report).status in ("not converged", "inconclusive")


def test_given_numbers_of_temperatures_are_run_exactly() -> None:
    report = bread.check(AR, **QUICK, n_temperatures=[6, 3], simulations=4)
    bounds = read_group(report, "bounds")
    assert bounds["n_temperatures"].values.tolist() == [3, 6]
    assert set(bounds["role"].values) == {"confirm", "forward"}
    single = bread.check(AR, **QUICK, n_temperatures=5, simulations=4)
    assert "consistency" in read_attributes(single)["warnings"]


def test_array_schedule_fixes_the_number_of_temperatures() -> None:
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    report = bread.check(AR, **QUICK, schedule=betas, simulations=4)
    np.testing.assert_array_equal(read_group(report, "forward")["inverse_temperature"].values.ravel()[:4], betas)


@pytest.mark.parametrize("simulate_from", slow_but(["prior"], ["prior", "fitted"]))
def test_two_cores_give_the_bits_of_one(simulate_from: str) -> None:
    model = dataclasses.replace(AR, kernel=HMCKernel(n_leapfrog=3))
    settings = QUICK | {"simulate_from": simulate_from, "n_temperatures": [4, 8], "simulations": 5, "tune_on": "each"}
    one = bread.check(model, **settings)
    two = bread.check(model, **(settings | {"cores": 2}))
    assert_same_report(one, two)
    other = bread.check(model, **(settings | {"random_seed": 6}))
    with pytest.raises(AssertionError):
        assert_same_report(one, other)


def test_adding_simulations_does_not_change_the_first_ones() -> None:
    few = bread.check(AR, **QUICK, n_temperatures=4, simulations=3)
    many = bread.check(AR, **QUICK, n_temperatures=4, simulations=6)
    np.testing.assert_array_equal(
        read_group(few, "forward")["log_weight"].values, read_group(many, "forward")["log_weight"].values[:, :3]
    )


def test_global_random_state_is_not_touched() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    bread.check(AR, **QUICK, n_temperatures=4, simulations=3)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_one_simulation_is_never_converged() -> None:
    report = bread.check(AR, **QUICK, n_temperatures=64, simulations=1)
    assert bread.verdict(report).status == "inconclusive"


def test_zero_seed_is_a_seed() -> None:
    settings = QUICK | {"random_seed": 0}
    one = bread.check(AR, **settings, n_temperatures=4, simulations=3)
    assert_same_report(one, bread.check(AR, **settings, n_temperatures=4, simulations=3))
    assert str(read_attributes(one)["seed"]) == "0"


def test_settings_are_in_the_report() -> None:
    report = bread.check(AR, **QUICK, n_temperatures=4, simulations=3)
    settings = json.loads(read_attributes(report)["settings"])
    assert settings["tune_on"] == "shared"
    assert settings["hyperparameters"] == ["mu"] or len(settings["hyperparameters"]) == 1


@pytest.mark.parametrize(("path", "what"), [("prior", "likelihood"), ("reference", "joint over reference")])
def test_zero_likelihood_gives_an_infinite_bound_and_a_count(path: str, what: str) -> None:
    model = UniformLocation(np.array([0.2, 0.9]))
    report = bread.check(model, **QUICK | {"path": path}, n_temperatures=[4, 8], simulations=12)
    verdict = bread.verdict(report)
    assert np.isinf(read_group(report, "bounds")["jeffreys"].values).all()
    assert 0.0 < verdict.error < 1.0 and np.isfinite(verdict.error_limit)  # V needs no mean
    assert verdict.status in ("not converged", "inconclusive")
    assert "B is infinite" in verdict.details and f"{what} of zero" in verdict.details


@pytest.mark.parametrize("fault", ["nan", "raise"])
def test_failing_density_is_an_error_that_keeps_what_was_finished(fault: str) -> None:
    model = FaultyNormalMean(Y, fault=fault, limit=2.0, prior_sd=1.5, kernel=HMCKernel(n_leapfrog=3))
    with pytest.raises(DensityError, match="annealed chains failed") as caught:
        bread.check(model, **QUICK, n_temperatures=[4, 8], simulations=6)
    assert caught.value.report is not None
    assert "truth" in group_names(caught.value.report)


@pytest.mark.parametrize("stage", ["simulate", "confirm", "consistency"])
def test_interrupt_returns_what_is_finished(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    original = Ledger.phase

    def interrupt(self, name, phase, n_chains=None):
        if phase == stage:
            raise KeyboardInterrupt
        return original(self, name, phase, n_chains)

    monkeypatch.setattr(Ledger, "phase", interrupt)
    with pytest.warns(UserWarning, match="Interrupted"):
        report = bread.check(AR, **QUICK, target=0.5)
    attributes = read_attributes(report)
    assert int(attributes["is_interrupted"]) == 1
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive"
    assert isinstance(bread.summary(report).shape, tuple)


INTERRUPTED = """
import sys, warnings
import numpy as np
import bread
from tests.models.reference import HMCKernel, NormalMean
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    from bread.jobs.executors import PoolExecutor
    from bread.jobs.task import AnnealTask

    usual = PoolExecutor.run

    def run(self, tasks):
        yield from usual(self, tasks)
        if isinstance(tasks[0], AnnealTask):
            print("T = 4 is done", flush=True)

    PoolExecutor.run = run
    model = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=5))
    report = bread.check(model, simulate_from="prior", random_seed=1, cores=2, progressbar=False, tune=20,
                         n_temperatures=[4, 200000], simulations=6, tune_on="shared")
    from bread.report.container import read_attributes, read_group
    print(read_attributes(report)["is_interrupted"], int(read_group(report, "forward")["finished"].values[0].sum()))
"""


def test_ctrl_c_with_a_pool_of_workers_returns_a_report() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "T = 4 is done"
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    interrupted, finished = output.split()
    assert interrupted == "1"
    assert int(finished) >= 24  # T = 4 was done: 6 simulations of 4 chains


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"simulate_from": "posteriors"},
            "simulate_from must be one of 'auto', 'fitted', 'prior', 'posterior', 'localised', got 'posteriors'",
        ),
        ({"simulations": 0}, "simulations must be a whole number >= 1, got 0"),
        ({"chains": 2.5}, "chains must be a whole number >= 1, got 2.5"),
        ({"max_error": 0.0}, "max_error, the largest error of a probability, must lie between 0 and 1, got 0.0"),
        ({"max_error": float("nan")}, "max_error"),
        ({"target": -1.0}, "target must be None or a positive number of nats, got -1.0"),
        ({"target": float("nan")}, "target must be None or a positive number"),
        ({"schedule": "cosine"}, "schedule must be one of"),
        ({"schedule": [0.0, 0.5]}, "schedule must increase strictly"),
        ({"schedule": [0.0, 0.5, 1.0], "n_temperatures": 7}, "n_temperatures must be 3 or None, got 7"),
        ({"n_temperatures": 1}, "n_temperatures must be a whole number >= 2, got 1"),
        ({"n_temperatures": []}, "got an empty one"),
        ({"max_temperatures": 1}, "max_temperatures must be a whole number >= 2"),
        ({"cores": 0}, "cores must be None or a whole number >= 1, got 0"),
        ({"random_seed": -1}, "random_seed must be None or a whole number >= 0, got -1"),
        ({"random_seed": True}, "random_seed must be None"),
        ({"tune": 0}, "tune must be a whole number >= 10"),
        ({"tune_on": "some"}, "tune_on must be one of"),
        ({"hyperparameters": "nothing"}, "nothing"),
    ],
)
def test_bad_arguments_are_named(settings: dict, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        bread.check(AR, **({"progressbar": False} | settings))


def test_unknown_objects_and_missing_models_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="type 'list'"):
        bread.check([1, 2], progressbar=False)
    with pytest.raises(InvalidArgumentError, match="inside `with model:`"):
        bread.check(progressbar=False)


def test_import_needs_no_optional_package() -> None:
    code = (
        "import sys, bread; bread.check; bread.plot_bounds; "
        "bad = {'pymc', 'pytensor', 'matplotlib', 'jax'} & set(sys.modules); assert not bad, bad"
    )
    # ArviZ 0.x itself imports matplotlib
    if int(__import__("arviz").__version__.split(".")[0]) == 0:
        code = code.replace("'matplotlib', ", "")
    subprocess.run([sys.executable, "-c", code], check=True)
