"""The reference backend keeps the contract; its densities, gradients and exact answers agree with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.backends.base import Failure, Kernel, Model
from bread.errors import InvalidArgumentError, UnsupportedKernelError
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import diagonal
from tests.models.reference import (
    AbsoluteMean,
    AutoregressiveKernel,
    BetaBinomial,
    CompoundKernel,
    FaultyNormalMean,
    GibbsLabelKernel,
    HMCKernel,
    LabelMixture,
    NormalMean,
    UniformLocation,
)
from tests.support.conformance import (
    PATH,
    check_bit_equal_batching,
    check_contract_shapes,
    check_frozen,
    check_simulate_is_exact,
    tuned_kernel,
)
from tests.support.reference_models import ALL_MODELS, NO_SETTINGS, dense_grid

EVERY = pytest.mark.parametrize("name", sorted(ALL_MODELS))


@pytest.fixture(scope="module")
def kernels():
    return {name: tuned_kernel(model) for name, model in ALL_MODELS.items()}


@EVERY
def test_is_a_model(name):
    assert isinstance(ALL_MODELS[name], Model)


@EVERY
def test_simulate(name):
    check_simulate_is_exact(ALL_MODELS[name])


@EVERY
def test_contract_shapes(name, kernels):
    check_contract_shapes(ALL_MODELS[name], kernels[name])


@EVERY
def test_bit_equal_batching(name, kernels):
    check_bit_equal_batching(ALL_MODELS[name], kernels[name])


@EVERY
def test_frozen(name, kernels):
    check_frozen(ALL_MODELS[name], kernels[name])


def test_batching_check_notices_a_shared_generator():
    """Negative control: a kernel that draws for the whole batch from the first chain's generator."""

    @dataclass(frozen=True)
    class Shared(AutoregressiveKernel):
        def transition(self, run):
            normals = default_rng(int(abs(run.random.normals[0, 0, 0]) * 1e9)).normal(size=run.random.normals.shape)
            run.random.normals[:] = normals
            return super().transition(run)

    with pytest.raises(AssertionError):
        check_bit_equal_batching(NormalMean(np.array([0.3, 1.0]), kernel=Shared()), NO_SETTINGS)


def test_frozen_check_notices_adaptation_in_flight():
    """Negative control: a kernel that keeps its last step size for the next run."""
    memory = {"factor": 1.0}

    @dataclass(frozen=True)
    class Learning(HMCKernel):
        def step_sizes(self, settings, states):
            memory["factor"] *= 0.99
            return super().step_sizes(settings, states) * memory["factor"]

    model = NormalMean(np.array([0.3, 1.0]), kernel=Learning())
    kernel = tuned_kernel(model)
    with pytest.raises(AssertionError):
        check_frozen(model, kernel)


@EVERY
def test_rows_are_bit_equal_to_single_data_sets(name, kernels):
    model, kernel = ALL_MODELS[name], kernels[name]
    simulations = model.simulate(3, fixed=None, seed=SeedSequence(1))
    seeds, betas = SeedSequence(2).spawn(3), np.linspace(0.0, 1.0, 5)
    rows = model.condition_rows(simulations.data)
    together = rows.anneal(PATH, betas, kernel, direction="reverse", initial=simulations.states, seeds=seeds)
    evolved = rows.evolve_rows(PATH, kernel, 1.0, simulations.states, (0, 3), seeds)
    for row in range(3):
        posterior, own = model.condition(simulations.data_of(row)), simulations.states[[row]]
        alone = posterior.anneal(PATH, betas, kernel, direction="reverse", initial=own, seeds=[seeds[row]])
        assert np.array_equal(alone.log_weight, together.log_weight[[row]])
        assert np.array_equal(alone.state_at_base, together.state_at_base[[row]])
        evolution = posterior.evolve(PATH, kernel, 1.0, own[0], (0, 3), seeds[row])
        assert np.array_equal(evolution.states, evolved[row])
        assert model.log_evidence(simulations.data_of(row)) == model.log_evidence_rows(simulations.data)[row]


@EVERY
def test_gradient_is_the_derivative(name):
    model = ALL_MODELS[name]
    simulations = model.simulate(1, fixed=None, seed=SeedSequence(3))
    statistics = model.summarise({key: values for key, values in simulations.data.items()})
    states, step = simulations.states, 1e-6
    for beta in (0.0, 0.3, 1.0):
        gradient = model.gradient_log_density(beta, states, statistics)
        assert gradient.shape == states.shape
        for i in model.continuous:
            up, down = states.copy(), states.copy()
            up[:, i] += step
            down[:, i] -= step
            values = [model.log_prior(x) + beta * model.log_likelihood(x, statistics) for x in (up, down)]
            # central difference: error about step^2, and rounding of the density over the step
            assert gradient[0, i] == pytest.approx((values[0] - values[1])[0] / (2 * step), rel=1e-4, abs=1e-5)


@EVERY
def test_log_evidence_by_quadrature(name):
    """Exact log evidence against a sum over a grid (one continuous coordinate), or exact draws and Bayes' rule."""
    model = ALL_MODELS[name]
    simulations = model.simulate(4, fixed=None, seed=SeedSequence(4))
    for row in range(4):
        data = simulations.data_of(row)
        statistics = model.summarise({key: value[None] for key, value in data.items()})
        assert model.log_evidence(data) == pytest.approx(dense_grid(model, statistics), abs=2e-6)


@EVERY
def test_prior_and_posterior_draws(name):
    """Rank of theta* among exact posterior draws is uniform, and simulated states follow the prior's density.

    300 simulations, Kolmogorov-Smirnov, one p-value a coordinate, rejected below 1e-3.
    """
    model = ALL_MODELS[name]
    simulations = model.simulate(300, fixed=None, seed=SeedSequence(5))
    rng = default_rng(6)
    ranks = np.empty((300, model.dim))
    wrong = np.empty((300, model.dim))
    for row in range(300):
        draws = model.draw_posterior(simulations.data_of(row), 99, rng)
        for values, other in ((ranks, row), (wrong, (row + 1) % 300)):
            below = (draws < simulations.states[other]).sum(axis=0)
            tied = (draws == simulations.states[other]).sum(axis=0)
            values[row] = (below + rng.random(model.dim) * (tied + 1)) / 100
    p_values = [stats.kstest(ranks[:, i], "uniform").pvalue for i in range(model.dim)]
    assert min(p_values) > 1e-3, p_values
    # negative control: the states of other simulations
    assert min(stats.kstest(wrong[:, i], "uniform").pvalue for i in range(model.dim)) < 1e-3


def test_linear_gaussian_evidence_is_the_multivariate_normal():
    for name in ("normal_mean", "regression", "hierarchical"):
        model = ALL_MODELS[name]
        data = model.simulate(1, fixed=None, seed=SeedSequence(7)).data_of(0)
        covariance = model.design @ model.prior_covariance @ model.design.T + np.diag(model.noise**2)
        expected = stats.multivariate_normal(model.design @ model.prior_location, covariance).logpdf(data["y"])
        assert model.log_evidence(data) == pytest.approx(expected, abs=1e-10)


# ---- closed form ---------------------------------------------------------------------------------------------


# ---- failures ------------------------------------------------------------------------------------------------


def _anneal(model, direction, start, kernel=NO_SETTINGS):
    posterior = model.condition(model.observed_data)
    seeds = SeedSequence(9).spawn(len(start))
    return posterior.anneal(
        PATH, np.linspace(0.0, 1.0, 5), kernel, direction=direction, initial=np.array(start)[:, None], seeds=seeds
    )


HMC_SETTINGS = Kernel(np.array([0.0, 1.0]), {"step_size": np.full(2, 0.3), "inverse_metric": np.ones((2, 1))})


def test_zero_likelihood_is_recorded():
    model = UniformLocation(np.array([0.2, 0.5]))
    run = _anneal(model, "forward", [0.3, 5.0, 0.1], HMC_SETTINGS)
    assert list(run.failure) == [Failure.NONE, Failure.ZERO_RATIO, Failure.NONE]
    assert list(np.isneginf(run.log_weight)) == [False, True, False]
    run = _anneal(model, "reverse", [0.3, 5.0], HMC_SETTINGS)
    assert list(run.failure) == [Failure.NONE, Failure.ZERO_INITIAL]
    assert list(np.isnan(run.log_weight)) == [False, True]


@pytest.mark.parametrize(("fault", "failure"), [("nan", Failure.NAN), ("raise", Failure.EXCEPTION)])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_density_that_fails_outside_a_kernel(fault, failure, direction):
    model = FaultyNormalMean(np.array([-1.0, -2.0]), fault=fault, limit=3.0, kernel=HMCKernel())
    run = _anneal(model, direction, [0.0, 4.0, -1.0], HMC_SETTINGS)
    assert list(run.failure) == [Failure.NONE, failure, Failure.NONE]
    assert list(np.isnan(run.log_weight)) == [False, True, False]
    assert run.message == ("FloatingPointError: the mean is above 3.0" if fault == "raise" else "")
    alone = _anneal(NormalMean(model.y, kernel=HMCKernel()), direction, [0.0], HMC_SETTINGS)
    assert alone.log_weight[0] == run.log_weight[0], "a failing chain changed another"


@pytest.mark.parametrize("fault", ["nan", "raise"])
def test_density_that_fails_inside_a_kernel_is_a_rejection(fault):
    """Chains stay below the limit, and the failed proposals are not failures of the chain."""
    model = FaultyNormalMean(np.array([0.9, 1.1]), fault=fault, limit=1.0, kernel=HMCKernel())
    run = _anneal(model, "forward", [0.9] * 20, HMC_SETTINGS)
    assert (run.failure == Failure.NONE).all() and np.isfinite(run.log_weight).all()
    assert run.state_at_end.max() <= 1.0 and run.message == ""
    assert run.n_divergences.sum() > 0
    posterior = model.condition(model.observed_data)
    ratio = posterior.log_ratio(PATH, np.array([[0.0], [2.0], [0.5]]))
    assert list(np.isnan(ratio)) == [False, True, False]


# ---- arguments -----------------------------------------------------------------------------------------------


def test_kernels_that_do_not_fit_are_refused():
    with pytest.raises(UnsupportedKernelError, match="has a discrete label"):
        LabelMixture(np.zeros(2), kernel=HMCKernel())
    with pytest.raises(UnsupportedKernelError, match="has no discrete label"):
        NormalMean(np.zeros(2), kernel=CompoundKernel((GibbsLabelKernel(), HMCKernel())))
    model = BetaBinomial(np.array([1]), np.array([2]), kernel=AutoregressiveKernel())
    with pytest.raises(UnsupportedKernelError, match="Gaussian"):
        _anneal(model, "forward", [0.0])


@pytest.mark.parametrize("build", [lambda: AutoregressiveKernel(1.0), lambda: HMCKernel(0), lambda: HMCKernel(1, 1.0)])
def test_kernel_arguments(build):
    with pytest.raises(InvalidArgumentError):
        build()


def test_run_arguments():
    model = NormalMean(np.zeros(2))
    posterior, seeds = model.condition(model.observed_data), SeedSequence(1).spawn(2)
    good = {"direction": "forward", "initial": np.zeros((2, 1)), "seeds": seeds}
    for betas in ([0.0, 0.5], [0.1, 1.0], [0.0, 0.7, 0.6, 1.0], [1.0]):
        with pytest.raises(InvalidArgumentError, match="betas"):
            posterior.anneal(PATH, np.array(betas), NO_SETTINGS, **good)
    with pytest.raises(InvalidArgumentError, match="direction"):
        posterior.anneal(PATH, np.array([0.0, 1.0]), NO_SETTINGS, **(good | {"direction": "up"}))
    with pytest.raises(InvalidArgumentError, match="seed"):
        posterior.anneal(PATH, np.array([0.0, 1.0]), NO_SETTINGS, **(good | {"seeds": seeds[:1]}))
    exact = NormalMean(np.zeros(2), kernel=AutoregressiveKernel())
    with pytest.raises(InvalidArgumentError, match="HMCKernel"):
        path = ReferencePath(diagonal(np.zeros(1), np.ones(1)))
        exact.condition(exact.observed_data).log_ratio(path, np.zeros((1, 1)))


def test_data_are_checked():
    model = NormalMean(np.zeros(3))
    with pytest.raises(InvalidArgumentError, match="lack 'y'"):
        model.condition({})
    with pytest.raises(InvalidArgumentError, match="shape"):
        model.condition({"y": np.zeros(4)})
    with pytest.raises(InvalidArgumentError, match="no parameters"):
        model.simulate(1, fixed={"sigma": np.array(1.0)}, seed=SeedSequence(1))


@EVERY
def test_fit(name):
    """Mean of 2000 exact draws within 5 standard errors of what other exact draws say."""
    model = ALL_MODELS[name]
    fit = model.fit(seed=1, cores=1, progressbar=False)
    for key, dims in model.info.layout.parameters.items():
        assert fit.draws[key].shape[:2] == (4, 500) and fit.draws[key].ndim == 2 + len(dims)
    again = model.read_posterior(fit.draws)
    assert again.source == "posterior="
    states = model.unconstrain(again.flat_draws())
    draws = model.draw_posterior(model.observed_data, 4000, default_rng(2))
    error = draws.std(axis=0) * np.sqrt(1 / 2000 + 1 / 4000)
    for i in model.continuous:
        assert abs(states[:, i].mean() - draws[:, i].mean()) < 5 * error[i]
    if model.label_index is not None:
        assert set(states[:, 0]) <= {0.0, 1.0}


def test_read_posterior():
    model = ALL_MODELS["hierarchical"]
    draws = model.fit(seed=1, cores=1, progressbar=False).draws

    class Container:
        posterior = draws

    assert model.read_posterior(Container()).draws["mu"].shape == (4, 500)
    partial = model.read_posterior({"mu": draws["mu"]})
    assert partial.missing == ("group_mean",) and "'group_mean'" in partial.lacks() and list(partial.draws) == ["mu"]
    with pytest.raises(InvalidArgumentError, match="shape"):
        model.read_posterior({"mu": draws["mu"][0], "group_mean": draws["group_mean"]})


def test_two_modes_are_separated():
    model = AbsoluteMean(np.full(10, 1.0))
    draws = model.draw_posterior(model.observed_data, 2000, default_rng(3))[:, 0]
    share = (draws > 0).mean()
    assert 0.5 < share < 0.95 and (np.abs(draws) > 0.5).all()
