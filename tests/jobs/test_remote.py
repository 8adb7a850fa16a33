"""Checks on an executor of the caller's: equal results, models that travel once, lost work, workers that are wrong."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import multiprocessing.pool
import pickle
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import BreadError, InvalidArgumentError
from bread.jobs import remote
from bread.jobs.remote import MOST_ATTEMPTS, RemoteExecutor
from bread.report.container import read_group
from tests.models.reference import HMCKernel, NormalMean

MODEL = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=3))
QUICK: dict[str, Any] = {
    "simulate_from": "prior", "path": "prior", "tune_on": "shared", "simulations": 3, "chains": 2, "tune": 10,
    "draws": 8, "n_temperatures": 8, "random_seed": 3, "progressbar": False,
}  # fmt: skip

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def fresh_worker(monkeypatch):
    monkeypatch.setattr(remote, "_models", {})


@pytest.fixture(scope="module")
def expected():
    return log_weights(bread.check(MODEL, cores=1, **QUICK))


def log_weights(report):
    groups = [read_group(report, name) for name in ("forward", "reverse", "posterior")]
    names = [(group, str(name)) for group in groups for name in sorted(map(str, group))]
    return [group[name].values for group, name in names if "seconds" not in name]


def assert_equal(report, expected):
    for found, wanted in zip(log_weights(report), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


class Later:
    """A future of a library that knows nothing of ``concurrent.futures``."""

    def __init__(self, call):
        self._call, self._asked = call, 0

    def done(self):
        self._asked += 1
        return self._asked > 1

    def result(self):
        return self._call()

    def cancel(self):
        return True


class Submits:
    """Runs calls here; ``loses`` names calls, by their number, whose work is lost."""

    def __init__(self, loses=(), error=None):
        self.calls: list[tuple[Any, ...]] = []
        self._loses, self._error = loses, error or ConnectionError("the worker is gone")

    def submit(self, function, *arguments):
        number = len(self.calls)
        self.calls.append(arguments)

        def call():
            if number in self._loses:
                raise self._error
            return function(*arguments)

        return Later(call)


class Maps:
    """It has ``map``, and no more."""

    def map(self, function, items):
        return [function(item) for item in reversed(items)]


class Crowd:
    """So many workers that half of what waits is done at a time, whenever nothing more has been submitted for a while.

    ``most`` is the largest number that waited.
    """

    def __init__(self):
        self._waiting: list[tuple[Future[Any], Any]] = []
        self._lock, self._is_open = threading.Lock(), True
        self._submitted, self.most = 0, 0

    def __enter__(self):
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._is_open = False
        self._thread.join()

    def submit(self, function, *arguments):
        future: Future[Any] = Future()
        with self._lock:
            self._submitted += 1
            self._waiting.append((future, pickle.loads(arguments[3])))
            self.most = max(self.most, len(self._waiting))
        return future

    def _work(self):
        seen = -1
        while self._is_open:
            time.sleep(0.005)
            with self._lock:
                seen, before = self._submitted, seen
                if seen != before:
                    continue
                half = len(self._waiting) // 2 + 1
                chosen, self._waiting = self._waiting[:half], self._waiting[half:]
            for future, task in chosen:
                future.set_result(pickle.dumps(remote.Result(task.run(MODEL))))


class Echo:
    """A task."""

    n_chains = 1

    def __init__(self, number):
        self.number = number

    def run(self, model):
        return model.__class__.__name__, self.number


class Unlucky(Echo):
    def run(self, model):
        raise ZeroDivisionError("a task's own")


class OddError(Exception):
    """An error that cannot be made again from what it prints."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


class Odd(Echo):
    def run(self, model):
        raise OddError("very", "odd")


def ran(executor, tasks):
    return sorted(RemoteExecutor(MODEL, executor).run(tasks))


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param(lambda: ThreadPoolExecutor(2), id="threads"),
        pytest.param(lambda: ProcessPoolExecutor(2, mp_context=SPAWN), id="processes", marks=pytest.mark.slow),
        pytest.param(lambda: SPAWN.Pool(2), id="multiprocessing.Pool", marks=pytest.mark.slow),
    ],
)
def test_results_are_bit_equal_on_any_executor(workers, expected):
    with workers() as executor:
        assert_equal(bread.check(MODEL, executor=executor, **QUICK), expected)
        if not isinstance(executor, multiprocessing.pool.Pool):  # it is the caller's, and stays open
            assert executor.submit(abs, -1).result() == 1


@pytest.mark.parametrize("executor", [Submits(), Maps()], ids=["submit", "map"])
def test_an_object_needs_one_method(executor, expected):
    assert_equal(bread.check(MODEL, executor=executor, **QUICK), expected)


def test_the_model_travels_once_to_a_worker_that_lacks_it():
    executor = Submits()
    assert ran(executor, [Echo(n) for n in range(40)]) == [(n, ("NormalMean", n)) for n in range(40)]
    carrying = [call for call in executor.calls if call[2] is not None]
    assert 1 <= len(carrying) <= remote.CARRYING
    before = len(executor.calls)
    assert len(ran(executor, [Echo(n) for n in range(5)])) == 5  # the worker has it now
    assert len(executor.calls) == before + 5
    assert not any(call[2] for call in executor.calls[before:])


def test_a_worker_that_never_keeps_the_model_gets_it_with_each_task(monkeypatch):
    executor = Submits()

    class Forgets(dict):
        def __contains__(self, key):
            return False

    monkeypatch.setattr(remote, "_models", Forgets())
    assert len(ran(executor, [Echo(n) for n in range(12)])) == 12


def test_lost_work_is_done_again(expected):
    executor = Submits(loses={3, 4, 9})
    with pytest.warns(UserWarning, match=r"lost a task \(ConnectionError: the worker is gone\). It is run again"):
        report = bread.check(MODEL, executor=executor, **QUICK)
    assert_equal(report, expected)


def test_work_that_is_lost_again_and_again_ends_with_what_was_finished():
    # the draws on the real data come last: all before them are finished
    executor = Submits(loses=range(12, 1000))
    with (
        pytest.warns(UserWarning, match="run again"),
        pytest.raises(
            BreadError, match=rf"lost a task {MOST_ATTEMPTS} times \(ConnectionError.*must be installed"
        ) as stopped,
    ):
        bread.check(MODEL, executor=executor, **QUICK)
    assert bread.verdict(stopped.value.report).status == "inconclusive"


def test_a_broken_executor_is_not_asked_again():
    executor = Submits(loses={2}, error=concurrent.futures.BrokenExecutor("all are dead"))
    with pytest.raises(BreadError, match=r"lost a task \(BrokenExecutor: all are dead\)"):
        ran(executor, [Echo(n) for n in range(5)])


def test_an_executor_that_was_shut_down_says_what_to_do():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(BreadError, match=r"takes no more work .*start a new one, and check again"):
        ran(executor, [Echo(1)])


def test_an_error_of_a_task_is_not_run_again():
    executor = Submits()
    with pytest.raises(ZeroDivisionError, match="a task's own"):
        ran(executor, [Unlucky(1)])
    assert len(executor.calls) == 2  # one to learn that the model is missing
    with pytest.raises(BreadError, match="OddError: very odd"):
        ran(executor, [Odd(1)])


def test_another_version_on_the_workers_is_named():
    packed = remote.run_remotely("0.0.1", "key", None, pickle.dumps(Echo(1)))
    outcome = pickle.loads(packed)
    assert isinstance(outcome, remote.Failed)
    assert "A worker has bread" in str(outcome.error) and "0.0.1" in str(outcome.error)


def test_abandoned_tasks_are_cancelled():
    cancelled = []

    class Cancels(Later):
        def cancel(self):
            cancelled.append(self)
            return True

    class Slow(Submits):
        def submit(self, function, *arguments):
            return Cancels(lambda: function(*arguments))

    finished = RemoteExecutor(MODEL, Slow()).run([Echo(n) for n in range(20)])
    next(finished)
    finished.close()
    assert cancelled


@pytest.mark.parametrize("most_bytes", [remote.IN_FLIGHT_BYTES, 30_000])
def test_a_thousand_workers_have_work(monkeypatch, most_bytes):
    """From 256 calls at a time it grows by one a result, as far as their bytes allow."""
    monkeypatch.setattr(remote, "IN_FLIGHT_BYTES", most_bytes)
    tasks = [Echo(n) for n in range(8000)]
    size = len(pickle.dumps(tasks[0])) + len(bread.__version__) + 64
    with Crowd() as executor:
        assert ran(executor, tasks) == [(n, ("NormalMean", n)) for n in range(8000)]
    if most_bytes == 30_000:
        assert 100 < executor.most < 30_000 / size + 2
    else:
        assert 1000 < executor.most <= remote.IN_FLIGHT


@pytest.mark.parametrize("wanted", [3, "dask", ThreadPoolExecutor, object()])
def test_what_is_no_executor_is_refused_before_the_model_is_read(wanted):
    with pytest.raises(InvalidArgumentError, match="executor must be a concurrent.futures.Executor"):
        bread.check(object(), executor=wanted, progressbar=False)
