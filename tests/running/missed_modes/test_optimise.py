"""The parts of a search for modes: joint densities, starts, ends, shapes."""

import numpy as np
import pytest
from scipy import stats

from bread.running.missed_modes import optimise
from tests.support.mode_cases import halves, mixture
from tests.support.reference_models import CONJUGATE


@pytest.mark.parametrize("name", ["normal_mean_hmc", "regression_hmc", "beta_binomial_hmc", "hierarchical_hmc"])
def test_joint_log_density_is_prior_times_likelihood(name):
    model = CONJUGATE[name]
    posterior, statistics = (
        model.condition(model.observed_data),
        model.summarise({name: value[None] for name, value in model.observed_data.items()}),
    )
    states = 3.0 * np.random.default_rng(0).standard_normal((50, model.dim))
    exact = model.log_prior(states) + model.log_likelihood(states, statistics)
    np.testing.assert_allclose(optimise.joint_log_density(posterior, states), exact, atol=1e-9)
    far = np.array([np.full(model.dim, 1e7), np.full(model.dim, np.nan)])
    values = optimise.joint_log_density(posterior, np.concatenate([states[:1], far]))
    assert values[2] == -np.inf and not np.isnan(values).any()
    assert values[0] == optimise.joint_log_density(posterior, states)[0]


def test_starts_are_in_every_mode_even_where_one_is_much_higher():
    case = mixture(np.array([[0.0, 0.0], [9.0, 9.0]]), [0.3, 1.0], [8.0, 0.0], [True, True], prior_sd=6.0)
    rng = np.random.default_rng(1)
    prior = case.draw_prior(4000, rng)
    chosen = optimise.starts(prior, case.log_f(prior), optimise.BEST, optimise.FAR)
    assert len(chosen) == optimise.BEST + optimise.FAR
    assert (chosen[: optimise.BEST] < 5.0).all()  # the best alone lie in one mode
    assert (np.linalg.norm(chosen - 9.0, axis=1) < 4.0).any()


def test_starts_without_a_density():
    draws = np.ones((20, 2))
    assert optimise.starts(draws, np.full(20, -np.inf), 3, 3).shape == (0, 2)
    assert optimise.starts(draws, np.zeros(20), 3, 3).shape == (3, 2)  # equal draws: no far ones


def test_climbing_ends_at_the_mode_within_its_gradients():
    case = halves(4)
    found = optimise.climb(case, np.array([2.0, 3.0, -3.0, 0.0]), 150, np.full(4, 3.0))
    np.testing.assert_allclose(found.state, [4.0, 1.0, 1.0, 1.0], atol=1e-3)
    assert found.log_density == pytest.approx(-0.5 * 4 * np.log(2 * np.pi), abs=1e-6)
    assert 0 < found.n_gradients <= 150
    assert optimise.climb(case, np.full(4, 50.0), 3, np.full(4, 3.0)).n_gradients <= 3 + 20  # of one line search


@pytest.mark.parametrize("sd", [1e-6, 0.01, 1.0, 50.0])
def test_shape_of_a_mode_of_any_width(sd):
    case = mixture(np.zeros((1, 2)), [sd], [0.0], [True], prior_sd=100.0)
    proposal, n_gradients = optimise.proposal_at(case, np.zeros(2), np.full(2, 100.0))
    assert n_gradients % 4 == 0
    spread = np.sqrt(np.diag(proposal.factor @ proposal.factor.T))
    exact = 1 / np.sqrt(1 / sd**2)
    np.testing.assert_allclose(spread, exact, rtol=0.05)


def test_scales_of_heavy_tailed_draws_are_finite():
    draws = stats.cauchy.rvs(size=(5000, 2), random_state=2)
    np.testing.assert_allclose(optimise.prior_scales(draws), 2 / 1.349, rtol=0.1)
    assert (optimise.prior_scales(np.ones((10, 3))) == 1.0).all()
    assert (optimise.prior_scales(np.full((10, 3), np.nan)) == 1.0).all()
