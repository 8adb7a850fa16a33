"""Pilots whose chains run side by side: the bits of a pilot that runs its own, each chain once, in any checkpoint."""

from __future__ import annotations

import sqlite3
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.digests import digest
from bread.errors import DensityError
from bread.fitting.search.reference_fit import FitRequest
from bread.jobs.executors import open_executor
from bread.jobs.store import DATABASE
from bread.running.pilots.parallel_pilots import run_side_by_side
from bread.running.pilots.tasks import FitTask, PilotChainTask, PilotTask
from bread.running.state.ledger import in_order
from bread.running.state.plan import PathRequest
from tests.models.reference import AbsoluteMean, HMCKernel
from tests.support.checkpointed import content

MODEL = AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMCKernel(5))
REQUEST = PathRequest("reference", None, FitRequest(1, np.zeros(1, dtype=bool), 60))
NEAR_ZERO = np.array([0.1, -0.2, 0.1, 0.0])  # one mode
TASKS = [
    PilotTask(simulation, {"y": y}, request, 3, 60, False, "", may_fail=True)
    for simulation, y, request in (
        (-2, MODEL.y, REQUEST),
        (-3, NEAR_ZERO, REQUEST),
        (-4, NEAR_ZERO, PathRequest("prior")),
    )
]


class Here:
    """Runs tasks here and counts them."""

    def __init__(self, model=MODEL, change=lambda task: task):
        self.model, self.change, self.kinds = model, change, Counter()

    def __call__(self, tasks):
        self.kinds.update(type(task) for task in tasks)
        return [self.change(task).run(self.model) for task in tasks]


@pytest.fixture(scope="module")
def alone():
    return [task.run(MODEL) for task in TASKS]


@pytest.mark.parametrize("cores", [1, 2])
def test_pilots_are_those_that_run_their_own_chains(alone, cores):
    with open_executor(MODEL, cores) as executor:
        found = run_side_by_side(TASKS, lambda tasks: in_order(executor.run, tasks))
    for one, other in zip(found[:2], alone[:2], strict=True):
        np.testing.assert_array_equal(one.fit.draws, other.fit.draws)
        assert (one.fit.family, one.fit.criterion) == (other.fit.family, other.fit.criterion)
        assert (one.n_gradients, one.fit.n_evaluations) == (other.n_gradients, other.fit.n_evaluations)
    assert digest(found) == digest(alone)


def test_each_chain_runs_once(alone):
    here = Here()
    run_side_by_side(TASKS, here)
    n_chains = [pilot.fit.n_chains for pilot in alone[:2]]
    assert n_chains == [4, 2], "half of the chains are enough where there is one mode"
    assert here.kinds[PilotChainTask] == sum(n_chains) and here.kinds[PilotTask] == len(TASKS)
    assert here.kinds[FitTask] == 3 + 2, "begun, after half of the chains, after all of them"


def test_a_chain_with_other_random_numbers_is_noticed(alone):
    """Negative control."""
    found = run_side_by_side(
        TASKS,
        Here(
            change=lambda task: replace(task, index=9) if isinstance(task, PilotChainTask) and task.index == 3 else task
        ),
    )
    assert [digest(one) == digest(other) for one, other in zip(found, alone, strict=True)] == [False, True, True]


class FailingPosterior:
    """A posterior on which chains that begin on one side fail, and all where ``always``."""

    def __init__(self, posterior, always):
        self.posterior, self.always = posterior, always

    def __getattr__(self, name):
        return getattr(self.posterior, name)

    def adapt(self, path, beta, state, seed, n_steps, *, previous):
        if path.name == "reference" and beta == 1.0 and previous is None and (self.always or state[0] < 0.0):
            raise DensityError(f"no chain from {state[0]:.3f}")
        return self.posterior.adapt(path, beta, state, seed, n_steps, previous=previous)


class FailingModel:
    """Chains fail on one side; all of them on data near zero."""

    def condition(self, data):
        return FailingPosterior(MODEL.condition(data), np.array_equal(data["y"], NEAR_ZERO))


def test_chains_that_fail_are_left_out_and_a_pilot_without_any_is_its_error():
    model = FailingModel()
    expected = [task.run(model) for task in TASKS]
    n_draws = len(expected[0].fit.draws)
    assert 0 < n_draws < 60 * expected[0].fit.n_chains, "some failed, some did not"
    found = run_side_by_side(TASKS, Here(model))
    assert digest([found[0], found[2]]) == digest([expected[0], expected[2]])
    assert isinstance(found[1], DensityError) and str(found[1]) == str(expected[1])


@pytest.mark.slow
def test_a_checkpoint_serves_for_any_number_of_cores(tmp_path):
    """Nothing that one core left is unused by two, and the report is the same to the bit."""
    settings = {
        "simulate_from": "prior", "path": "reference", "tune_on": "shared", "simulations": 2, "chains": 1, "tune": 30,
        "draws": 0, "n_temperatures": [4, 8], "random_seed": 3, "progressbar": False, "cores": 1,
    }  # fmt: skip
    whole = content(bread.check(MODEL, checkpoint=tmp_path / "run", **settings))
    with sqlite3.connect(tmp_path / "run" / DATABASE) as database:
        names = [name for (name,) in database.execute("SELECT name FROM entries WHERE name LIKE 'task %'")]
        database.execute("DELETE FROM entries WHERE name = 'report' OR (name LIKE 'task Pilot%' AND rowid % 2 = 0)")
    database.close()
    assert sum(name.startswith("task PilotChainTask") for name in names) >= 6
    with warnings.catch_warnings():
        warnings.simplefilter("error", bread.errors.CheckpointWarning)
        assert content(bread.check(MODEL, checkpoint=tmp_path / "run", **(settings | {"cores": 2}))) == whole
