"""Chains of PyMC models on JAX (engine="blackjax"): the contract, exact evidence, and what must fail.

They run where JAX and BlackJAX are installed (`make test-engine`). Statistical tests have fixed seeds and limits in
standard errors; negative controls are kernels and densities that are wrong on purpose.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

jax = pytest.importorskip("jax")
pytest.importorskip("blackjax")
pm = pytest.importorskip("pymc")

from bread.backends import open_model  # noqa: E402
from bread.backends.base import Kernel, OpenOptions  # noqa: E402
from bread.backends.pymc.vectorised import programs  # noqa: E402
from bread.backends.pymc.vectorised.kernels import VectorKernel  # noqa: E402
from bread.backends.pymc.vectorised.packages import double_precision  # noqa: E402
from bread.backends.support.jax_references import log_density_of, pack  # noqa: E402
from bread.jobs.groups import TaskGroup, group  # noqa: E402
from bread.jobs.task import AnnealTask  # noqa: E402
from bread.paths.kinds import PriorPath, ReferencePath  # noqa: E402
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian  # noqa: E402
from bread.paths.nested import NestedReference  # noqa: E402
from tests.support.conformance import (  # noqa: E402
    check_bit_equal_batching,
    check_contract_shapes,
    check_evidence,
    check_forward_reverse_identities,
    check_frozen,
    check_simulate_is_exact,
    tuned_kernel,
)
from tests.support.pymc_conjugate import MODELS, SHORT, exact_of  # noqa: E402

pytestmark = [pytest.mark.pymc]


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    """Restore JAX's setting: PyTensor's dispatch, which some tests use by themselves, changes it for good."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


PRIOR = PriorPath()
REFERENCE = ReferencePath(gaussian(np.array([0.3, 0.5, 0.2, 0.3]), np.eye(4) + 0.3, "wide"))


@functools.cache
def opened(name: str, kernel: str) -> tuple[Any, Kernel]:
    model = open_model(MODELS[name][0](), OpenOptions(engine="blackjax", kernel=kernel))
    assert model.info.identity.engine == "blackjax", model.info.identity.notes
    return model, tuned_kernel(model, n_steps=60)


def fresh(name: str, kernel: str) -> Any:
    """Return a model whose programs are not compiled yet, for a defect to be put into them."""
    return open_model(MODELS[name][0](), OpenOptions(engine="blackjax", kernel=kernel))


# ---- the contract ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [PRIOR, REFERENCE], ids=["prior", "reference"])
@pytest.mark.parametrize("kernel", ["hmc", pytest.param("nuts", marks=pytest.mark.slow)])
def test_contract(kernel: str, path: Any) -> None:
    model, frozen = opened("hierarchical", kernel)
    check_contract_shapes(model, frozen, path=path)
    check_bit_equal_batching(model, frozen, path=path)
    check_frozen(model, frozen, path=path)


def test_simulation_is_that_of_pymc() -> None:
    check_simulate_is_exact(opened("hierarchical", "hmc")[0])


def test_a_chain_is_the_same_in_every_block() -> None:
    """More chains than a block has lanes; the last chain is alone in its own."""
    model, frozen = opened("normal_mean", "hmc")
    n_chains = model.chains_at_once + 1
    posterior, betas = model.condition(model.info.data.observed), np.linspace(0.0, 1.0, 70)
    seeds = SeedSequence(4).spawn(n_chains)
    start = posterior.draw_base(PRIOR, seeds)
    whole = posterior.anneal(PRIOR, betas, frozen, direction="forward", initial=start, seeds=seeds)
    for chain in (0, n_chains - 1):
        one = posterior.anneal(PRIOR, betas, frozen, direction="forward", initial=start[[chain]], seeds=[seeds[chain]])
        np.testing.assert_array_equal(one.log_ratio[0], whole.log_ratio[chain])
    assert len(np.unique(whole.log_weight)) == n_chains


def test_data_sets_that_run_together_give_what_each_gives_alone() -> None:
    model, frozen = opened("normal_mean", "nuts")
    other = Kernel(frozen.betas, {name: 0.7 * values for name, values in frozen.settings.items()})
    simulations = model.simulate(3, fixed=None, seed=SeedSequence(8))
    tasks = [
        AnnealTask(
            index, simulations.data_of(index), PRIOR, direction, SHORT, other if index == 1 else frozen,
            seeds=SeedSequence(9 + index).spawn(2),
            initial=None if direction == "forward" else simulations.states[[index, index]],
            base_seeds=SeedSequence(20 + index).spawn(2),
        )
        for index in range(3)
        for direction in ("reverse", "forward")
    ]  # fmt: skip
    groups = group(model, tasks)
    assert groups == [(0, 2, 4), (1, 3, 5)]
    for places in groups:
        together = TaskGroup(tuple(tasks[place] for place in places)).run(model)
        for place, run in zip(places, together, strict=True):
            alone = tasks[place].run(model)
            np.testing.assert_array_equal(run.log_ratio, alone.log_ratio)
            np.testing.assert_array_equal(run.log_weight, alone.log_weight)
            np.testing.assert_array_equal(run.n_gradients, alone.n_gradients)


# ---- the mathematics ---------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "kernel"), [("normal_mean", "hmc"), pytest.param("beta_binomial", "nuts", marks=pytest.mark.slow)]
)
def test_forward_and_reverse_identities(name: str, kernel: str) -> None:
    """T = 8, 300 simulations, 4 standard errors; a transformed coordinate has its Jacobian in the prior."""
    model, frozen = opened(name, kernel)
    check_forward_reverse_identities(model, frozen, SHORT, log_evidence=exact_of(name), n_simulations=300)


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", ["hmc", "nuts"])
def test_exact_evidence_inside_the_sandwich(kernel: str) -> None:
    """T = 128, 4 chains, 20 simulations, 3 standard errors."""
    model, frozen = opened("hierarchical", kernel)
    check_evidence(model, frozen, log_evidence=exact_of("hierarchical"), n_temperatures=128)


def run_identities_with_a_defect(kernel: str) -> None:
    model = fresh("normal_mean", kernel)
    frozen = opened("normal_mean", kernel)[1]
    check_forward_reverse_identities(model, frozen, SHORT, log_evidence=exact_of("normal_mean"), n_simulations=300)


@pytest.mark.statistical
def test_a_momentum_that_is_not_refreshed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: every transition of a chain has the same random numbers, those of one fixed key."""
    build = VectorKernel.build

    def build_broken(self: VectorKernel) -> Any:
        kernel = build(self)
        return lambda _, *rest: kernel(jax.random.key(1, impl="threefry2x32"), *rest)

    monkeypatch.setattr(VectorKernel, "build", build_broken)
    with pytest.raises(AssertionError, match=r"w_fwd|w_rev|Crooks"):
        run_identities_with_a_defect("hmc")


@pytest.mark.statistical
def test_a_wrong_tempering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the kernels leave the densities at half of the inverse temperatures invariant."""
    combine = programs.Target.combine
    monkeypatch.setattr(programs.Target, "combine", lambda self, beta, base, end: combine(self, 0.5 * beta, base, end))
    with pytest.raises(AssertionError, match=r"w_fwd|w_rev|Crooks"):
        run_identities_with_a_defect("hmc")


def standardised(kernel: str, n: int, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return exact posterior draws and where the frozen kernel takes them, in units of their posterior."""
    model, frozen = opened("normal_mean", kernel)
    simulations = model.simulate(n, fixed=None, seed=SeedSequence(71))
    precision = 1 / 1.5**2 + 3 / 1.2**2
    mean = (0.5 / 1.5**2 + simulations.data["y"].sum(axis=1) / 1.2**2) / precision
    seeds = SeedSequence(72).spawn(n)
    ends = np.array(
        [
            model.condition(simulations.data_of(row))
            .evolve(PRIOR, frozen, 1.0, simulations.states[row], (n_steps,), seeds[row])
            .states[0, 0]
            for row in range(n)
        ]
    )
    return (simulations.states[:, 0] - mean) * np.sqrt(precision), (ends - mean) * np.sqrt(precision)


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", ["hmc", "nuts"])
def test_frozen_kernels_leave_the_posterior_invariant_and_are_reversible(kernel: str) -> None:
    """500 exact draws, 3 steps; mean 0, variance 1, and E[x y^2] = E[x^2 y], each within 5 standard errors."""
    before, after = standardised(kernel, 500, 3)
    for values, expected in (
        (after, 0.0), (after**2, 1.0), (before * after**2 - before**2 * after, 0.0), (after**4, 3.0)
    ):  # fmt: skip
        z = (values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))
        assert abs(z) < 5, z
    assert np.abs(np.corrcoef(before, after)[0, 1]) < 0.9  # it moves


# ---- densities ---------------------------------------------------------------------------------------------------


def nested() -> NestedReference:
    rng = np.random.default_rng(6)
    marginal = MixtureReference(
        (Component(np.zeros(1), np.ones(1)), Component(np.ones(1), np.full(1, 2.0), degrees=np.full(1, 5.0))),
        np.array([0.6, 0.4]),
    )
    values, slopes = 0.3 * rng.normal(size=(2, 5, 2, 2))
    return NestedReference(
        1,
        marginal,
        np.array([0.2, -0.5]),
        np.array([[1.0, 0.0], [0.4, 2.0]]),
        np.linspace(-3.0, 3.0, 5),
        values,
        slopes,
    )


def wide_mixture() -> MixtureReference:
    rng = np.random.default_rng(3)
    directions = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    parts = (
        Component(np.zeros(3), np.ones(3), degrees=np.array([3.0, np.inf, 7.0])),
        Component(np.ones(3), np.array([0.5, 1.0, 2.0]), matrix=np.tril(rng.normal(size=(3, 3))) + 2 * np.eye(3)),
        Component(-np.ones(3), np.ones(3), directions=directions, stretch=np.array([0.3, 2.0])),
    )
    return MixtureReference(parts, np.array([0.5, 0.3, 0.2]))


@pytest.mark.parametrize(
    "reference",
    [diagonal(np.arange(3.0), np.array([1.0, 2.0, 0.5])), wide_mixture(), nested()],
    ids=["diagonal", "mixture", "nested"],
)
def test_references_in_jax_are_those_in_numpy(reference: Any) -> None:
    states = 3.0 * np.random.default_rng(5).normal(size=(12, 3))
    packed = pack(reference)
    with double_precision():
        function = jax.jit(jax.vmap(jax.value_and_grad(log_density_of(packed.form)), in_axes=(0, None)))
        values, gradients = function(states, packed.arrays)
    np.testing.assert_allclose(values, reference.log_density(states), rtol=1e-11)
    np.testing.assert_allclose(gradients, reference.gradient(states), rtol=1e-9, atol=1e-11)
