"""V bounds the exact error of annealed draws: on finite models and on conjugate ones, also where B is infinite.

A violation is a mean of V more than 4 standard errors below the exact error (both standard errors added in squares).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp

from bread.statistics.bounds.bounds import simulation_gaps
from bread.statistics.bounds.certificate import (
    compare_forms,
    conditional_gaps,
    error_by_simulation,
    raw_error_by_simulation,
)
from tests.support.annealed_pools import anneal_pool, tuned_kernel
from tests.support.exact_ends import INFINITE, models, repeat, simulated_data, with_stay
from tests.support.finite_annealing import FiniteAnnealing, lazy, metropolis_on_line, sweep_of_pairs
from tests.support.reference_models import ALL_MODELS, NO_SETTINGS

pytestmark = pytest.mark.statistical
N_ERRORS = 4.0
ROUNDING = 1e-12  # weights of zero or one make both forms equal


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def check_bounds(values: np.ndarray, exact: float, exact_error: float = 0.0) -> None:
    mean, error = mean_and_error(values)
    allowed = N_ERRORS * np.hypot(error, exact_error)
    assert mean >= exact - allowed, f"violation: V = {mean:.4f}, exact error {exact:.4f}, allowed {allowed:.4f}"


# ---- finite models: reverse chains share theta*, likelihoods may be zero -------------------------------------------

PRIOR = np.array([0.1, 0.4, 0.2, 0.3])
LIKELIHOOD = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.05, 0.9, 0.05], [0.3, 0.3, 0.4]])
ZEROS = np.array([[0.6, 0.4, 0.0], [0.0, 0.3, 0.7], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
SHORT, LONG = np.array([0.0, 1.0]), np.array([0.0, 0.1, 0.4, 1.0])
FINITE = {
    f"{kernel}, {likelihood}, T = {len(betas)}": FiniteAnnealing(PRIOR, table, betas, transition)
    for likelihood, table in (("full", LIKELIHOOD), ("zeros", ZEROS))
    for kernel, transition in (("lazy", lazy(0.9)), ("line", metropolis_on_line), ("sweep", sweep_of_pairs))
    for betas in (SHORT, LONG)
}
each_finite = pytest.mark.parametrize("name", FINITE)
N_FINITE = 20_000


def reverse_item_alone(forward, reverse):
    """Leave the forward paths out of the sum: the mistake that makes V too small."""
    total = logsumexp(forward, axis=1)[:, None]
    share = np.exp(reverse - np.logaddexp(total, reverse))
    return np.maximum(0.0, share - (1.0 - share) / forward.shape[1]).mean(axis=1)


@each_finite
def test_bounds_the_exact_error_of_finite_models(name):
    model = FINITE[name]
    chains = model.sample(N_FINITE, 4, 3, np.random.default_rng(21))
    exact = sum(p * model.end_error(data) for data, p in enumerate(model.evidence))
    paths = sum(p * model.path_error(data) for data, p in enumerate(model.evidence))
    check_bounds(error_by_simulation(chains.forward, chains.reverse), paths)
    check_bounds(raw_error_by_simulation(chains.forward, chains.reverse), paths)
    assert paths >= exact - 1e-12
    for data in range(model.n_data):  # and for every data set by itself
        rows = chains.data == data
        check_bounds(error_by_simulation(chains.forward[rows], chains.reverse[rows]), model.path_error(data))


@each_finite
def test_reverse_chains_that_share_their_draw_have_the_right_mean_each(name):
    """By position, K = 1: the mean over all paths, which is exact, within 4 standard errors."""
    model = FINITE[name]
    chains = model.sample(N_FINITE, 1, 3, np.random.default_rng(22))
    expected = 0.0
    for data, share in enumerate(model.evidence):
        log_weight, forward, reverse = model.weight_laws(data)
        is_possible = reverse > 0
        error = raw_error_by_simulation(
            np.repeat(log_weight, is_possible.sum())[:, None],
            np.tile(log_weight[is_possible], len(log_weight))[:, None],
        )
        expected += share * float(np.outer(forward, reverse[is_possible]).ravel() @ error)
    for position in range(3):
        mean, error = mean_and_error(error_by_simulation(chains.forward, chains.reverse[:, position : position + 1]))
        assert abs(mean - expected) < N_ERRORS * error, f"reverse chain {position}"


def test_the_reverse_path_alone_bounds_nothing():
    """Negative control: a sum over the reverse path alone is far below the exact error."""
    model = FINITE["lazy, full, T = 2"]
    chains = model.sample(N_FINITE, 4, 3, np.random.default_rng(21))
    exact = sum(p * model.end_error(data) for data, p in enumerate(model.evidence))
    with pytest.raises(AssertionError, match="violation"):
        check_bounds(reverse_item_alone(chains.forward, chains.reverse), exact)


@pytest.mark.parametrize("name", ["lazy, full, T = 2", "lazy, zeros, T = 4", "sweep, full, T = 4"])
def test_wrong_draws_separate_the_forms_on_finite_models(name):
    """Reverse chains from a shifted theta*; right ones give forms that agree within 4 standard errors."""
    model = FINITE[name]
    sound = model.sample(N_FINITE, 4, 3, np.random.default_rng(23))
    comparison = compare_forms(sound.forward, sound.reverse)
    assert abs(comparison.difference) < N_ERRORS * comparison.standard_error
    assert comparison.p_value > 0.01
    # State 3 has a positive likelihood in every table; theta* = 3 too often.
    wrong = model.sample(
        N_FINITE, 4, 3, np.random.default_rng(23), exact_draw=lambda truth: np.where(truth == 1, 3, truth)
    )
    comparison = compare_forms(wrong.forward, wrong.reverse)
    assert abs(comparison.difference) > N_ERRORS * comparison.standard_error
    assert comparison.p_value < 1e-6


# ---- conjugate models: exact laws of the last state ----------------------------------------------------------------


def grid_of_bounds(name: str, stay: float, n_temperatures: int, n_data: int, statistic=error_by_simulation) -> None:
    """One model, one T, many data sets: 150 repetitions of 4 forward and 2 reverse chains that share theta* each."""
    model, betas = with_stay(name, stay), np.linspace(0.0, 1.0, n_temperatures) ** 2
    differences = []
    for row, data in enumerate(simulated_data(name, n_data, 31)):
        run = repeat(model, betas, data, n=150, n_forward=4, n_reverse=2, seed=1000 * n_temperatures + row)
        values = statistic(run.forward, run.reverse)
        check_bounds(values, run.end_error, run.end_standard_error)
        differences.append(raw_error_by_simulation(run.forward, run.reverse) - values)
        if name == "uniform_location":
            assert np.isinf(conditional_gaps(run.forward, run.reverse)).any()
    if statistic is error_by_simulation:
        mean, error = mean_and_error(np.concatenate(differences))
        assert abs(mean) <= N_ERRORS * error + ROUNDING


@pytest.mark.parametrize("stay", [0.5, 0.95])
@pytest.mark.parametrize("name", models(0.5))
def test_bounds_the_exact_error_of_conjugate_models(name, stay):
    grid_of_bounds(name, stay, 3, n_data=3)


@pytest.mark.slow
@pytest.mark.parametrize("n_temperatures", [2, 4, 16])
@pytest.mark.parametrize("stay", [0.5, 0.95])
@pytest.mark.parametrize("name", models(0.5))
def test_bounds_the_exact_error_on_a_grid(name, stay, n_temperatures):
    """7 models x 2 kernels x 3 T x 24 data sets."""
    grid_of_bounds(name, stay, n_temperatures, n_data=24)


@pytest.mark.parametrize("name", models(0.5))
def test_a_sum_that_is_too_small_violates_on_conjugate_models(name):
    """Negative control: kernels that hardly move make the bound tight, and the reverse path alone falls below."""
    with pytest.raises(AssertionError, match="violation"):
        grid_of_bounds(name, 0.95, 2, n_data=3, statistic=reverse_item_alone)


def test_the_half_normal_scale_has_no_finite_jeffreys_bound():
    """E_prior[1 / scale^2] grows without limit as smaller scales are let in, and so does -E_prior[log likelihood]."""
    assert set(INFINITE) <= set(models(0.5))
    smallest = np.array([1e-2, 1e-4, 1e-6])
    means = []
    for low in smallest:
        scale = np.exp(np.linspace(np.log(low), np.log(8.0), 200_001))
        density = np.sqrt(2 / np.pi) * np.exp(-(scale**2) / 2) * scale  # of the log scale
        means.append(trapezoid(density / scale**2, np.log(scale)))
    np.testing.assert_allclose(np.array(means) * smallest, np.sqrt(2 / np.pi), rtol=0.05)


# ---- the two forms have one expectation, along with the gaps -------------------------------------------------------

BETAS = np.array([0.0, 0.1, 0.4, 1.0])


def check_forms(name: str, n_simulations: int) -> None:
    model = ALL_MODELS[name]
    kernel = tuned_kernel(model) if name.endswith("hmc") else NO_SETTINGS
    pool = anneal_pool(model, kernel, BETAS, n_simulations=n_simulations, n_chains=4, seed=41, n_between=1)
    comparison = compare_forms(pool.forward, pool.reverse)
    assert abs(comparison.difference) < N_ERRORS * comparison.standard_error
    assert comparison.p_value > 0.01
    log_weights = pool.forward, pool.reverse
    assert error_by_simulation(*log_weights).var() < 0.8 * raw_error_by_simulation(*log_weights).var()
    mean, error = mean_and_error(simulation_gaps(*log_weights) - conditional_gaps(*log_weights))
    assert abs(mean) < N_ERRORS * error


@pytest.mark.parametrize("name", ["normal_mean", "label_mixture", "beta_binomial_hmc"])
def test_forms_have_one_expectation(name):
    check_forms(name, 500)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_MODELS)
def test_forms_have_one_expectation_on_every_model(name):
    check_forms(name, 4000)
