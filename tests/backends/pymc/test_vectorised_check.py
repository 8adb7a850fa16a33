"""Whole checks with PyMC's chains on JAX: workers on this machine and on a cluster, and every way of simulating.

They run where JAX and BlackJAX are installed (`make test-engine`).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("blackjax")
pm = pytest.importorskip("pymc")

import bread  # noqa: E402
from bread.report.compat import read_attributes, read_group  # noqa: E402
from tests.support.pymc_conjugate import MODELS  # noqa: E402
from tests.support.reports import assert_same_report  # noqa: E402

pytestmark = [pytest.mark.pymc]

SETTINGS: dict[str, Any] = {
    "simulations": 4, "n_temperatures": 16, "chains": 2, "tune": 40, "draws": 8, "path": "prior", "random_seed": 5,
    "simulate_from": "prior", "kernel": "hmc", "engine": "blackjax", "progressbar": False,
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def precision():
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def alone() -> Any:
    return bread.check(MODELS["normal_mean"][0](), cores=1, **SETTINGS)


def test_two_workers_compute_what_one_process_does(alone: Any) -> None:
    assert_same_report(bread.check(MODELS["normal_mean"][0](), cores=2, **SETTINGS), alone)
    assert read_attributes(alone)["engine"] == "blackjax"


def test_a_cluster_computes_what_one_process_does(alone: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports, and of ports in use
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, protocol="tcp", dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            report = bread.check(MODELS["normal_mean"][0](), executor=client.get_executor(), **SETTINGS)
    assert_same_report(report, alone)


def test_another_seed_gives_other_bits(alone: Any) -> None:
    """The control: equal reports are no matter of course."""
    other = bread.check(MODELS["normal_mean"][0](), cores=1, **SETTINGS | {"random_seed": 6})
    with pytest.raises(AssertionError):
        assert_same_report(other, alone)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("protocol", ["fitted", "localised"])
def test_both_engines_agree_on_every_data_set(protocol: str) -> None:
    """Mean log weights of 10 data sets along a reference, 4 chains each way: 4 errors of the paired difference.

    With data sets in another order, whose log evidence differs, the same test rejects.
    """
    settings = SETTINGS | {
        "simulate_from": protocol, "path": "reference", "simulations": 10, "chains": 4, "draws": 0, "cores": 2,
        "hyperparameters": ["mu"] if protocol == "fitted" else None,
    }  # fmt: skip
    one, other = (
        bread.check(MODELS["hierarchical"][0](), **settings | {"engine": engine}) for engine in ("blackjax", "pymc")
    )
    assert [read_attributes(report)["engine"] for report in (one, other)] == ["blackjax", "pymc"]
    for direction in ("forward", "reverse"):
        mine, theirs = (read_group(report, direction)["log_weight"].values[0].mean(-1) for report in (one, other))
        assert len(mine) == 10 and np.unique([mine, theirs]).size == 20
        assert errors_apart(mine, theirs) < 4.0
        assert (np.abs(mine - theirs) < 0.5).all() and not (np.abs(np.roll(mine, 1) - theirs) < 0.5).all()


def errors_apart(mine: np.ndarray, theirs: np.ndarray) -> float:
    difference = mine - theirs
    return float(abs(difference.mean()) / (difference.std(ddof=1) / np.sqrt(len(difference))))
