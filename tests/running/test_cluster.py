"""Checks on a cluster of two workers over TCP: equal results, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bread
from bread.report.container import read_group
from tests.models.reference import HMCKernel, NormalMean

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own imports
    distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of event loops and of ports in use; results are what is tested

MODEL = NormalMean(np.array([0.4, 1.9]), kernel=HMCKernel(n_leapfrog=30))
SETTINGS: dict[str, Any] = {
    "simulate_from": "prior", "path": "prior", "tune_on": "shared", "simulations": 6, "chains": 4, "tune": 10,
    "draws": 8, "n_temperatures": [64, 128], "random_seed": 3, "progressbar": False,
}  # fmt: skip
GROUPS = ("forward", "reverse", "posterior")


def log_weights(report: Any) -> dict[tuple[str, str], Any]:
    found = {}
    for group in GROUPS:
        values = read_group(report, group)
        found |= {(group, str(name)): values[name].values for name in values if "seconds" not in str(name)}
    return found


def assert_equal(report: Any, expected: dict[tuple[str, str], Any]) -> None:
    found = log_weights(report)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=str(name))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, protocol="tcp", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Any]:
    return log_weights(bread.check(MODEL, cores=1, **SETTINGS))


def test_two_workers_give_what_one_process_gives(client: Any, expected: Any) -> None:
    assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
    assert_equal(bread.check(MODEL, executor=client.get_executor(), **SETTINGS), expected)


class Kills:
    """An executor that kills a worker in the middle: when it is given the tenth task."""

    def __init__(self, client: Any) -> None:
        self._client, self._executor = client, client.get_executor()
        self.n_submitted, self.killed = 0, 0

    def submit(self, function: Any, *arguments: Any) -> Any:
        self.n_submitted += 1
        if self.n_submitted == 10:
            self.killed = next(iter(self._client.run(os.getpid).values()))
            os.kill(self.killed, signal.SIGKILL)
        return self._executor.submit(function, *arguments)


def test_a_worker_that_is_killed_changes_nothing(client: Any, expected: Any) -> None:
    executor = Kills(client)
    report = bread.check(MODEL, executor=executor, **SETTINGS)
    assert executor.killed and executor.n_submitted > 20
    assert_equal(report, expected)
