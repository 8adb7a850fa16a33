"""Chains of PyMC models on JAX (engine="blackjax"): the contract, exact evidence, what falls back, and what must not.

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
from bread.backends.base import Failure, Kernel, OpenOptions  # noqa: E402
from bread.backends.pymc.vectorised import engine as vector_engine  # noqa: E402
from bread.backends.pymc.vectorised import programs  # noqa: E402
from bread.backends.pymc.vectorised.conversion import build_density  # noqa: E402
from bread.backends.pymc.vectorised.kernels import VectorKernel  # noqa: E402
from bread.backends.pymc.vectorised.packages import double_precision  # noqa: E402
from bread.backends.pymc.vectorised.references import log_density_of, pack  # noqa: E402
from bread.paths.kinds import PriorPath, ReferencePath  # noqa: E402
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian  # noqa: E402
from bread.paths.nested import NestedReference  # noqa: E402
from bread.report.container import read_attributes  # noqa: E402
from bread.running.groups import TaskGroup, group  # noqa: E402
from bread.running.tasks import AnnealTask  # noqa: E402
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
from tests.support.pymc_layout import layout_of  # noqa: E402
from tests.support.reports import assert_same_report  # noqa: E402

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
    n_chains = vector_engine.LANES + 1
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


def bounded() -> Any:
    with pm.Model() as model:
        scale = pm.Normal("scale", 1.0, 1.0)
        pm.Normal("y", 0.0, scale, observed=np.array([0.5, -0.2]))
    return model


def box() -> Any:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Uniform("y", mu - 1.0, mu + 1.0, observed=np.array([0.1, 0.4]))
    return model


def test_a_parameter_outside_its_domain_has_density_zero() -> None:
    """PyMC's own conversion drops the check of the scale: its value there is no density, but not -inf either."""
    from pymc.sampling.jax import get_jaxified_graph

    model = bounded()
    density = build_density(model, layout_of(model))
    data = density.arrays({"y": np.array([0.5, -0.2])})
    with double_precision():
        inside, outside = (density.function(np.array([scale]), *data)[1] for scale in (0.7, -1.0))
        unchecked = get_jaxified_graph(inputs=model.value_vars, outputs=[model.logp(vars=model.observed_RVs)])(-1.0)[0]
    expected = -0.5 * (0.5**2 + 0.2**2) / 0.7**2 - 2 * np.log(0.7) - np.log(2 * np.pi)
    np.testing.assert_allclose(float(inside), expected, rtol=1e-12)
    assert float(outside) == -np.inf != float(unchecked)


def test_chains_end_as_those_of_pymc_where_the_density_is_zero() -> None:
    """Data outside their support: the same chains have weight zero, or no density to start from."""
    frozen = Kernel(np.array([0.0, 1.0]), {"step_size": np.full(2, 0.3), "inverse_metric": np.ones((2, 1))})
    runs = {}
    for engine in ("blackjax", "pymc"):
        model = open_model(box(), OpenOptions(engine=engine, kernel="hmc"))
        assert model.info.identity.engine == engine, model.info.identity.notes
        posterior = model.condition(model.info.data.observed)
        states = np.array([[0.3], [-3.0], [5.0], [0.2]])
        runs[engine] = [
            posterior.anneal(PRIOR, SHORT, frozen, direction=direction, initial=states, seeds=SeedSequence(2).spawn(4))
            for direction in ("forward", "reverse")
        ]
    for on_jax, on_pymc in zip(runs["blackjax"], runs["pymc"], strict=True):
        np.testing.assert_array_equal(on_jax.failure, on_pymc.failure)
        assert (on_jax.failure != Failure.NONE).any() and (on_jax.failure == Failure.NONE).any()
        np.testing.assert_array_equal(np.isneginf(on_jax.log_weight), np.isneginf(on_pymc.log_weight))
        np.testing.assert_array_equal(np.isnan(on_jax.log_weight), np.isnan(on_pymc.log_weight))
        failed = on_jax.failure != Failure.NONE
        for field in ("log_ratio", "state_at_base", "state_at_end", "log_base_density"):
            np.testing.assert_allclose(getattr(on_jax, field)[failed], getattr(on_pymc, field)[failed], rtol=1e-12)


# ---- what falls back ---------------------------------------------------------------------------------------------


def without_counterpart() -> Any:
    """Return a model whose density has a gradient, and an operation that JAX does not know."""
    from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
    from pytensor.tensor.elemwise import Elemwise

    class Twice(UnaryScalarOp):
        def impl(self, x: float) -> float:
            return 2.0 * x

        def grad(self, inputs: Any, gradients: Any) -> Any:
            return [2.0 * gradients[0]]

        pullback = None

    Twice.pullback = lambda self, inputs, outputs, gradients: [2.0 * gradients[0]]  # type: ignore[assignment]
    twice = Elemwise(Twice(upgrade_to_float, name="twice"))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", twice(mu), 1.0, observed=np.array([0.3, 0.1]))
    return model


@pytest.mark.parametrize(
    ("build", "kernel", "reason"),
    [
        (MODELS["label_mixture"][0], None, "is not NUTS or HMC on all variables"),
        (MODELS["normal_mean"][0], pm.Slice, "Slice is not NUTS or HMC"),
        (MODELS["normal_mean"][0], lambda model: pm.NUTS(model=model, scaling=np.ones(1), is_cov=True), "is fixed"),
        (without_counterpart, None, "cannot be converted to JAX"),
    ],
)
def test_what_jax_cannot_run_falls_back_and_says_so(build: Any, kernel: Any, reason: str) -> None:
    model = open_model(build(), OpenOptions(engine="blackjax", kernel=kernel))
    notes = [note for note in model.info.identity.notes if "engine='blackjax'" in note]
    assert len(notes) == 1 and reason in notes[0] and "PyMC's own engine ran the chains" in notes[0]
    assert model.info.identity.engine == "pymc" and model.vector is None
    posterior = model.condition(model.info.data.observed)
    assert np.isfinite(posterior.log_density(PRIOR, posterior.draw_base(PRIOR, SeedSequence(1).spawn(2)))).all()


def test_a_conversion_that_is_wrong_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the comparison at the start: a log likelihood that is one part in a million too large."""
    ends = programs.Target.ends

    def wrong(self: Any, *arguments: Any) -> Any:
        base, end = ends(self, *arguments)
        return base, end * (1 + 1e-6)

    monkeypatch.setattr(programs.Target, "ends", wrong)
    model = fresh("normal_mean", "hmc")
    (note,) = [note for note in model.info.identity.notes if "engine='blackjax'" in note]
    assert "log likelihood in JAX differs from PyMC's" in note and model.info.identity.engine == "pymc"


def test_the_users_precision_is_left_alone() -> None:
    before = jax.config.jax_enable_x64
    model, frozen = opened("normal_mean", "hmc")
    posterior = model.condition(model.info.data.observed)
    seeds = SeedSequence(1).spawn(2)
    run = posterior.anneal(
        PRIOR, SHORT, frozen, direction="forward", initial=posterior.draw_base(PRIOR, seeds), seeds=seeds
    )
    assert jax.config.jax_enable_x64 == before is False
    assert not np.array_equal(run.log_weight, run.log_weight.astype(np.float32))  # double precision all the same


def test_a_check_on_jax() -> None:
    """One check, its data sets run together: the report names the engine, and repeats itself."""
    import bread

    settings: dict[str, Any] = dict(
        simulations=4, n_temperatures=16, chains=2, tune=40, draws=0, cores=1, path="prior", random_seed=5,
        progressbar=False, simulate_from="prior",
    )  # fmt: skip
    model = MODELS["normal_mean"][0]()
    first, second = (bread.check(model, engine="blackjax", **settings) for _ in range(2))
    assert_same_report(first, second)
    assert read_attributes(first)["engine"] == "blackjax"
