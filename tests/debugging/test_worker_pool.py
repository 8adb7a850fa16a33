"""Chains of a battery on several processes: the same report for any number, whatever the kernel does."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cache

import cloudpickle
import numpy as np
import pytest
import xarray as xr
from numpy.random import SeedSequence
from scipy.stats import norm

import bread
from bread.debugging.bare import BareSubject
from bread.debugging.subject import Draws
from bread.debugging.target import Target
from bread.debugging.targets import default_targets
from bread.debugging.worker_pool import WORTH, WorkerPool
from bread.report.compat import read_group
from tests.support.reference_models import CONJUGATE

SMALL = 0.02

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test file


def log_density(x):
    return float(norm.logpdf(x, 1.0, 1.5).sum())


def simulate(n, rng):
    return rng.normal(1.0, 1.5, (n, 2))


class RandomWalk:
    """Carries its log density; ``learns``: its scale goes on adapting, from chain to chain."""

    def __init__(self, learns=False):
        self.learns, self.scale = learns, 1.5

    def start(self, position, rng):
        return position, log_density(position)

    def step(self, carry, rng):
        moved = carry[0] + rng.normal(0.0, self.scale, 2)
        value = log_density(moved)
        is_accepted = np.log(rng.random()) < value - carry[1]
        if self.learns:
            self.scale *= 1.01 if is_accepted else 0.995
        return (moved, value) if is_accepted else carry

    def position(self, carry):
        return carry[0]

    def log_density(self, carry):
        return carry[1]


class Locked(RandomWalk):
    """A kernel that cannot be sent to another process."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class Forgetful(RandomWalk):
    """A right kernel that loses something when it is pickled; what is lost is an error there, or passes unsaid."""

    def __init__(self, fails):
        super().__init__()
        self.fails = fails

    def __getstate__(self):
        return {"fails": self.fails, "learns": False, "scale": None if self.fails else 0.0}


class SlowToStart(RandomWalk):
    """Takes so long for a chain that no worker has run them all before another has begun."""

    def start(self, position, rng):
        time.sleep(0.02)
        return super().start(position, rng)


class Whereabouts:
    """A kernel whose states are the numbers of the processes that it runs in; it leaves others time to begin."""

    def start(self, position, rng):
        time.sleep(0.005)
        return position

    def step(self, carry, rng):
        return np.full(2, float(os.getpid()))

    def position(self, carry):
        return carry


def build(target):
    def step(x, rng):
        moved = x + rng.normal(size=x.shape)
        return moved if np.log(rng.random()) < target.log_density(moved) - target.log_density(x) else x

    return step


CALLS = {
    "carries": {"kernel": RandomWalk(), "log_density": log_density, "simulate": simulate},
    "builder": {"kernel": build, "targets": default_targets("continuous")[:2]},
    "model": {"model": CONJUGATE["beta_binomial_hmc"]},
    "learns": {"kernel": RandomWalk(learns=True), "log_density": log_density, "simulate": simulate},
}


@cache
def found(name, cores):
    # A kernel that learns is another one after a call: each call gets its own.
    call = CALLS[name] | ({"kernel": RandomWalk(learns=True)} if name == "learns" else {})
    report = bread.debug(**call, random_seed=4, budget=SMALL, progressbar=False, cores=cores)
    return read_group(report, "debug").drop_vars("seconds")


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("carries", 2),
        ("learns", 2),
        pytest.param("carries", 3, marks=pytest.mark.slow),
        pytest.param("builder", 2, marks=pytest.mark.slow),
        pytest.param("model", 2, marks=pytest.mark.slow),
        pytest.param("model", 3, marks=pytest.mark.slow),
    ],
)
def test_reports_are_equal_for_any_number_of_cores(name, cores):
    alone = found(name, 1)
    xr.testing.assert_identical(found(name, cores), alone)
    if name == "learns":
        assert alone["fails"].values[alone["name"].values == "history"].all()
    else:
        assert alone["test_p_value"].notnull().sum() > 10


def test_chains_run_on_workers():
    subject = BareSubject(Target("t", 2, log_density, simulate), Whereabouts())
    draws = Draws(np.zeros((40, 2)))
    with WorkerPool(2) as pool:
        pool.load(None, [subject])
        places = [pool.move(0, draws, (1,), SeedSequence(1).spawn(40)).states]
        pool.expect(0.0)
        assert pool.has_workers
        places.append(pool.move(0, draws, (1,), SeedSequence(1).spawn(40)).states)
    here, there = (set(np.unique(states)) for states in places)
    assert here == {float(os.getpid())} and not there & here and len(there) <= 2


def test_without_the_gate_a_kernel_that_learns_would_depend_on_the_number_of_workers():
    """Negative control: what keeps chains of such kernels here is needed."""
    target = Target("t", 2, log_density, simulate)
    subject, places = BareSubject(target, SlowToStart(learns=True)), BareSubject(target, Whereabouts())
    draws, seeds = Draws(simulate(60, np.random.default_rng(1))), SeedSequence(2).spawn(60)
    with WorkerPool(2) as pool:
        pool.load(None, [subject, places])
        pool.expect(0.0)
        while len(np.unique(pool.move(1, draws, (1,), seeds).states)) < 2:  # one process starts before the other
            time.sleep(0.05)
        spread = pool.move(0, draws, (10,), seeds)
    alone = BareSubject(subject.target, RandomWalk(learns=True)).move(draws, (10,), seeds)
    assert not np.array_equal(spread.states, alone.states)


def test_a_kernel_that_cannot_be_sent_runs_here_and_a_call_that_asked_for_workers_says_so():
    with pytest.warns(UserWarning, match="workers cannot run them .TypeError: cannot pickle"):
        report = bread.debug(
            kernel=Locked(), log_density=log_density, simulate=simulate, random_seed=4, budget=SMALL, progressbar=False,
            cores=2,
        )  # fmt: skip
    locked, free = read_group(report, "debug"), found("carries", 1)
    for name in ("test_p_value", "comparison_p_value"):  # but "history": a lock cannot be copied, nor renewed
        np.testing.assert_array_equal(locked[name].values, free[name].values)


@pytest.mark.parametrize("fails", [True, False])
def test_a_right_kernel_that_does_not_survive_pickling_is_not_called_wrong(fails):
    """Its copies raise, or move otherwise: chains run here, as if no workers had been asked for."""
    with pytest.warns(UserWarning, match="a pickled copy of the kernel moves otherwise"):
        report = bread.debug(
            kernel=Forgetful(fails), log_density=log_density, simulate=simulate, random_seed=4, budget=SMALL,
            progressbar=False, cores=2,
        )  # fmt: skip
    assert bread.verdict(report).status == "no bug found"
    here, free = read_group(report, "debug"), found("carries", 1)
    for name in ("test_p_value", "comparison_p_value"):
        np.testing.assert_array_equal(here[name].values, free[name].values)


def test_workers_are_started_unasked_only_where_it_is_worth_it():
    subject = BareSubject(Target("t", 2, log_density, simulate), Whereabouts())
    for cores, seconds, starts in ((None, 0.5 * WORTH, False), (None, 2.0 * WORTH, True), (1, 2.0 * WORTH, False)):
        with WorkerPool(cores) as pool:
            pool.load(None, [subject])
            pool.expect(seconds)
            assert pool.has_workers == (starts and len(os.sched_getaffinity(0)) > 1)


def test_what_a_call_raises_is_raised():
    def fails(n, rng):
        raise ArithmeticError("no draws today")

    class Draws2(BareSubject):
        may_spread = frozenset({"draw", "move"})

    subject = Draws2(Target("t", 2, log_density, fails), None)
    with WorkerPool(2) as pool, pytest.warns(UserWarning, match="no draws today"):
        pool.load(None, [subject])
        pool.expect(0.0)
        with pytest.raises(ArithmeticError, match="no draws today"):
            pool.draw(0, SeedSequence(1).spawn(40))


def test_cores_that_are_no_number_of_cores_are_refused():
    with pytest.raises(bread.errors.InvalidArgumentError, match="cores must be None or a whole number"):
        bread.debug(kernel=RandomWalk(), log_density=log_density, simulate=simulate, cores=0)
