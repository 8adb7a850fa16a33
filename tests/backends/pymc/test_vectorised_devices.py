"""Chains of PyMC models on JAX (engine="blackjax"): blocks of any width, devices other than a CPU, repeated bits.

They run where JAX and BlackJAX are installed (`make test-engine`), on the device that JAX takes.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

jax = pytest.importorskip("jax")
pytest.importorskip("blackjax")
pm = pytest.importorskip("pymc")

from bread.backends import open_model  # noqa: E402
from bread.backends.base import Kernel, OpenOptions  # noqa: E402
from bread.backends.pymc.vectorised import engine as vector_engine  # noqa: E402
from bread.backends.pymc.vectorised import opening, packages  # noqa: E402
from bread.paths.kinds import PriorPath  # noqa: E402
from tests.support.pymc_conjugate import MODELS, SHORT  # noqa: E402

pytestmark = [pytest.mark.pymc]
PRIOR = PriorPath()
CHECKED = ("log_weight", "log_ratio", "state_at_base", "state_at_end", "n_gradients")


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    """Restore JAX's setting: PyTensor's dispatch changes it for good."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


def opened(model: Any) -> Any:
    found = open_model(model, OpenOptions(engine="blackjax", kernel="hmc"))
    assert found.info.identity.engine == "blackjax", found.info.identity.notes
    return found


def kernel(dim: int, step_size: float) -> Kernel:
    metric = np.linspace(0.7, 1.4, 2 * dim).reshape(2, dim)
    return Kernel(np.array([0.0, 1.0]), {"step_size": step_size * np.array([1.0, 0.8]), "inverse_metric": metric})


def test_blocks_hold_no_more_kernels_than_they_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight lanes, two kernels a block; five data sets of three chains, with four kernels: each as if it were alone."""
    monkeypatch.setattr(vector_engine, "MOST_KERNELS", 2)
    model = opened(MODELS["normal_mean"][0]())
    engine = dataclasses.replace(model.condition(model.info.data.observed).vector, lanes=8)
    assert engine.n_kernels == 2
    simulations = model.simulate(5, fixed=None, seed=SeedSequence(8))
    kernels = [kernel(model.info.layout.dim, step_size) for step_size in (0.9, 0.5, 1.3, 0.7)]
    requests = [
        vector_engine.Request(
            simulations.data_of(index),
            PRIOR,
            kernels[min(index, 3)],
            model.condition(simulations.data_of(index)).draw_base(PRIOR, SeedSequence(index).spawn(3)),
            SeedSequence(20 + index).spawn(3),
        )
        for index in range(5)
    ]
    together = engine.anneal(requests, SHORT, "forward")
    for request, run in zip(requests, together, strict=True):
        (alone,) = engine.anneal([request], SHORT, "forward")
        for name in CHECKED:
            np.testing.assert_array_equal(getattr(run, name), getattr(alone, name))
    # the kernels matter: the same chains by another data set's kernel are others
    (other,) = engine.anneal([requests[0]._replace(kernel=kernels[2])], SHORT, "forward")
    assert not np.array_equal(other.log_weight, together[0].log_weight)


def indexed() -> Any:
    """The gradient of a vector that is indexed adds up many terms in one place."""
    rng = np.random.default_rng(1)
    groups = rng.integers(5, size=400)
    with pm.Model() as model:
        level = pm.Normal("level", 0, 1, shape=5)
        pm.Normal("y", level[groups], 1.0, observed=rng.normal(size=400))
    return model


def test_an_indexed_vector_has_the_same_bits_in_every_program() -> None:
    runs = []
    for _ in range(3):
        model = opened(indexed())
        posterior = model.condition(model.info.data.observed)
        seeds = SeedSequence(3).spawn(40)
        runs.append(
            posterior.anneal(
                PRIOR, np.linspace(0, 1, 17), kernel(5, 0.1), direction="forward",
                initial=posterior.draw_base(PRIOR, seeds), seeds=seeds,
            )
        )  # fmt: skip
    for name in CHECKED:
        np.testing.assert_array_equal(getattr(runs[1], name), getattr(runs[0], name))
        np.testing.assert_array_equal(getattr(runs[2], name), getattr(runs[0], name))
    assert len(np.unique(runs[0].log_weight)) == 40


def test_a_report_names_the_device_that_is_no_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for what JAX says of a GPU; the chains themselves stay where they are."""
    on_cpu = packages.device().platform == "cpu"
    model = opened(MODELS["normal_mean"][0]())
    assert ("jax device" in model.info.identity.versions) is not on_cpu
    monkeypatch.setattr(opening, "device", lambda: SimpleNamespace(platform="gpu", device_kind="a GPU"))
    on_gpu = opened(MODELS["normal_mean"][0]())
    assert on_gpu.info.identity.versions["jax device"] == "a GPU"
    assert on_gpu.chains_at_once == packages.LANES_OF_A_GPU
    assert model.chains_at_once == (packages.LANES if on_cpu else packages.LANES_OF_A_GPU)


@pytest.mark.parametrize("chosen", [None, "true"])
def test_processes_share_a_gpu_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None
) -> None:
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    monkeypatch.delenv(name, raising=False)
    if chosen:
        monkeypatch.setenv(name, chosen)
    packages.require_packages()
    assert os.environ.pop(name) == (chosen or "false")
