"""Annealed chains against exact log evidence, on every conjugate model and with both kernels.

Tolerances are standard errors over simulations (the independent units), with fixed seeds. Negative controls of the
same checks are in test_negative_controls.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.reference import (
    AutoregressiveKernel,
    HierarchicalNormal,
    LinearRegression,
    NormalMean,
    expected_work,
)
from tests.support.conformance import (
    PATH,
    anneal_pool,
    assert_mean,
    check_evidence,
    check_forward_reverse_identities,
    check_gap_rate,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.reference_models import ALL_MODELS, BIMODAL, CONJUGATE, NO_SETTINGS

pytestmark = pytest.mark.statistical
SLOW = ("hierarchical", "normal_mean", "hierarchical_hmc", "regression_hmc", "label_mixture_hmc")
SHORT = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])


@pytest.fixture(scope="module")
def kernels():
    return {name: tuned_kernel(model) for name, model in ALL_MODELS.items()}


@pytest.mark.parametrize("name", sorted(CONJUGATE))
def test_exact_evidence_inside_the_sandwich(name, kernels):
    """T = 512, 4 chains, 20 simulations, 3 standard errors."""
    check_evidence(CONJUGATE[name], kernels[name])


@pytest.mark.parametrize("name", sorted(BIMODAL))
def test_exact_evidence_inside_the_sandwich_of_two_modes(name, kernels):
    """Two modes that part: the sandwich is wider and still holds (T = 64)."""
    check_evidence(BIMODAL[name], kernels[name], n_temperatures=64)


@pytest.mark.parametrize("name", sorted(ALL_MODELS))
def test_forward_and_reverse_identities(name, kernels):
    """T = 8, where weights still vary by nats; 4 standard errors."""
    check_forward_reverse_identities(ALL_MODELS[name], kernels[name], SHORT)


@pytest.mark.parametrize("name", sorted(ALL_MODELS))
def test_weighted_ranks_are_uniform(name, kernels):
    """T = 4; p below 1e-3 over all functions of a path rejects."""
    check_weighted_ranks(ALL_MODELS[name], kernels[name], np.array([0.0, 0.1, 0.4, 1.0]))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(CONJUGATE)],
)
def test_gap_falls_as_one_over_n_temperatures(name, kernels):
    """T = 16, 32, 64, 128: log-log slope -1 within 3 standard errors + 0.1 for what is left of the 1 / T^2 term.

    In closed form the slope between these T is -0.91 to -1 (see the next test).
    """
    check_gap_rate(CONJUGATE[name], kernels[name])


@pytest.mark.parametrize("name", ["normal_mean", "regression", "hierarchical"])
def test_rate_in_closed_form(name):
    counts = np.array([16, 32, 64, 128, 256, 4096, 8192])
    bounds = [expected_work(CONJUGATE[name], np.linspace(0.0, 1.0, count)).bound for count in counts]
    slopes = np.diff(np.log(bounds)) / np.diff(np.log(counts))
    assert slopes.min() > -1.0 and slopes.max() < -0.91
    assert (np.diff(slopes) < 0).all()
    assert slopes[-1] == pytest.approx(-1.0, abs=0.001)


GAUSSIAN = {
    "normal_mean": lambda kernel: NormalMean(np.zeros(3), prior_mean=-1.0, prior_sd=2.0, kernel=kernel),
    "regression": lambda kernel: LinearRegression(np.zeros(5), CONJUGATE["regression"].x, prior_sd=1.3, kernel=kernel),
    "hierarchical": lambda kernel: HierarchicalNormal(
        np.zeros(3), np.array([1.0, 1.5, 0.8]), prior_mean=2.0, prior_sd=1.5, kernel=kernel
    ),
}


@pytest.mark.parametrize("n_temperatures", [2, 5, 30])
@pytest.mark.parametrize("rho", [0.0, 0.8, -0.5])
@pytest.mark.parametrize("name", sorted(GAUSSIAN))
def test_expected_bound_matches_its_closed_form(name, rho, n_temperatures):
    """Mean forward and reverse log weight and B over 1000 simulations of 2 chains, each within 4 standard errors."""
    model = GAUSSIAN[name](AutoregressiveKernel(rho))
    betas = np.linspace(0.0, 1.0, n_temperatures) ** 2
    pool = anneal_pool(model, NO_SETTINGS, betas, n_simulations=1000, n_chains=2, seed=71)
    work = expected_work(model, betas)
    assert_mean(pool.gaps, work.bound, 4.0, "B")
    assert_mean(pool.forward.mean(axis=1), work.forward, 4.0, "E[forward]")
    assert_mean(pool.reverse.mean(axis=1), work.reverse, 4.0, "E[reverse]")


@pytest.mark.parametrize("name", sorted(GAUSSIAN))
def test_expected_bound_for_one_data_set(name):
    """The closed form given y, and the exact log evidence between its ends; 4 standard errors over 4000 chains."""
    model = GAUSSIAN[name](AutoregressiveKernel(0.6))
    betas = np.linspace(0.0, 1.0, 6)
    data = model.simulate(1, fixed=None, seed=np.random.SeedSequence(72)).data_of(0)
    work = expected_work(model, betas, data)
    rows = {key: np.repeat(value[None], 4000, axis=0) for key, value in data.items()}
    posterior = model.condition_rows(rows)
    seeds = np.random.SeedSequence(73).spawn(8000)
    rng = np.random.default_rng(74)
    starts = {"forward": model.draw_prior(4000, rng), "reverse": model.draw_posterior(data, 4000, rng)}
    for place, direction in enumerate(("forward", "reverse")):
        run = posterior.anneal(
            PATH,
            betas,
            NO_SETTINGS,
            direction=direction,
            initial=starts[direction],
            seeds=seeds[4000 * place : 4000 * (place + 1)],
        )
        assert_mean(run.log_weight, getattr(work, direction), 4.0, direction)
    assert work.forward < model.log_evidence(data) < work.reverse
    assert 0.0 < work.jeffreys < work.bound
