"""Exactness near the real data: hyperparameters far out in their prior, where held estimates mislead.

A hierarchy with known scales has normal tempered densities, so that the exact mean gap of every data set is known in
closed form (`expected_work`) under the model and under the localised model. The real data put mu five prior standard
deviations out.
"""

from __future__ import annotations

from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy.special import expit

from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian
from bread.statistics.bounds.alarms import combined_p_value, rank_p_values, theory_alarm, weighted_ranks
from bread.statistics.bounds.bounds import simulation_gaps
from tests.models.reference import (
    AutoregressiveKernel,
    BetaBinomial,
    HierarchicalNormal,
    HMCKernel,
    LocalisedModel,
    NormalMean,
    expected_work,
)
from tests.support.conformance import (
    PATH,
    check_bit_equal_batching,
    check_contract_shapes,
    check_forward_reverse_identities,
    check_simulate_is_exact,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.reference_models import CONJUGATE, NO_SETTINGS

REAL = 5.0 + np.array([0.9, -0.4, 0.2, -1.1, 0.5, 1.3, -0.6, 0.1])
MODEL = HierarchicalNormal(REAL, np.full(8, 3.0), group_sd=0.3, kernel=AutoregressiveKernel(0.95))
BETAS = np.linspace(0.0, 1.0, 60) ** 2
WIDENED = 1.5
N_SIMULATIONS, N_CHAINS = 400, 4


def localised(model, *, seed=5):
    """Return the model with a widened Gaussian fit of mu to the real data, and the mean of mu, to be held."""
    fit = model.fit(seed=seed, cores=1, progressbar=False)
    draws = {name: values.reshape((-1, *values.shape[2:])) for name, values in fit.draws.items()}
    states = model.unconstrain(draws)[:, model.info.layout.positions["mu"]]
    reference = gaussian(states.mean(axis=0), WIDENED**2 * np.atleast_2d(np.cov(states.T)))
    return model.localise(["mu"], reference), {"mu": draws["mu"].mean(axis=0)}


def excess_gaps(simulated_from, annealed, *, fixed=None, init_steps=0, seed=7):
    """Return gap minus exact mean gap of each data set, its weights, and functions of the reverse starts."""
    simulate, start, forward, first, evolve, reverse = SeedSequence(seed).spawn(6)
    simulations = simulated_from.simulate(N_SIMULATIONS, fixed=fixed, seed=simulate)
    total = N_SIMULATIONS * N_CHAINS
    rows = annealed.condition_rows(simulations.data)
    states = rows.evolve_rows(PATH, NO_SETTINGS, 1.0, simulations.states, (init_steps,), first.spawn(N_SIMULATIONS))[
        :, 0
    ]
    keep = tuple(5 * chain for chain in range(N_CHAINS))
    starts = rows.evolve_rows(PATH, NO_SETTINGS, 1.0, states, keep, evolve.spawn(N_SIMULATIONS)).reshape((total, -1))
    many = annealed.condition_rows({"y": np.repeat(simulations.data["y"], N_CHAINS, axis=0)})
    begins = {"forward": (many.draw_base(PATH, start.spawn(total)), forward), "reverse": (starts, reverse)}
    runs = {
        direction: many.anneal(PATH, BETAS, NO_SETTINGS, direction=direction, initial=begin, seeds=own.spawn(total))
        for direction, (begin, own) in begins.items()
    }
    shape = (N_SIMULATIONS, N_CHAINS)
    weights = [runs[direction].log_weight.reshape(shape) for direction in ("forward", "reverse")]
    mu = [runs[direction].state_at_end[:, 0].reshape((*shape, 1)) for direction in ("forward", "reverse")]
    exact = np.array([expected_work(annealed, BETAS, simulations.data_of(row)).bound for row in range(N_SIMULATIONS)])
    return simulation_gaps(*weights) - exact, exact.mean(), weights, mu


def z_score(values):
    return values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))


def start_p_value(weights, mu):
    """Weighted rank of mu at the start of the reverse chains: the diagnostic of a start that is no posterior draw."""
    uniforms = default_rng(1).random((N_SIMULATIONS, 1))
    ranks = weighted_ranks(weights[0], weights[1][:, 0], mu[0], mu[1][:, 0], uniforms)
    return combined_p_value(rank_p_values(ranks))


@pytest.mark.slow
@pytest.mark.statistical
def test_localised_is_right_where_fitted_is_not():
    """400 simulations: "localised" within 3 standard errors of the exact B, "fitted" above it by more than 5.

    The exact mean is 0.52 nats for the localised model, and 1.09 for the model on data of the held estimate, which
    S = 0 puts at about 1.5 and S = 10 at about 1.4.
    """
    model, estimate = localised(MODEL)
    assert estimate["mu"] < 4.0, "the prior pulls mu away from the data"
    excess, truth, weights, mu = excess_gaps(model, model)
    assert 0.4 < truth < 0.6
    assert abs(z_score(excess)) < 3.0
    assert theory_alarm(*weights).p_value > 0.01
    assert start_p_value(weights, mu) > 0.01
    for init_steps in (0, 10):
        excess, truth, weights, mu = excess_gaps(MODEL, MODEL, fixed=estimate, init_steps=init_steps)
        assert truth > 0.9
        assert z_score(excess) > 5.0
        assert excess.mean() > 0.15 * truth
        assert start_p_value(weights, mu) < 0.01


def test_localised_model_is_like_the_real_data():
    """Where the model itself hardly ever simulates such data: the mean of y, in standard deviations of the real one."""
    model, _ = localised(MODEL)
    spread = np.sqrt(model.prior_sd**2 + (0.3**2 + 3.0**2) / 8.0)
    assert abs(model.prior_mean - REAL.mean()) < 2.0 * spread
    assert abs(MODEL.prior_mean - REAL.mean()) > 3.0 * np.sqrt(1.0 + (0.3**2 + 3.0**2) / 8.0)


# ---- the wrapper of any reference ------------------------------------------------------------------------------

BASE = CONJUGATE["hierarchical_hmc"]
MIXTURE = MixtureReference(
    (
        Component(np.array([1.5]), np.array([0.6])),
        Component(np.array([2.5]), np.array([0.4]), degrees=np.array([6.0])),
    ),
    np.array([0.7, 0.3]),
)


def wrapped():
    return BASE.localise(["mu"], MIXTURE)


def test_normal_law_of_mu_gives_the_same_model_in_closed_form():
    reference = gaussian(np.array([2.0]), np.array([[0.25]]))
    closed, wrapper = BASE.localise(["mu"], reference), LocalisedModel(BASE, ("mu",), reference)
    assert isinstance(closed, HierarchicalNormal) and (closed.prior_mean, closed.prior_sd) == (2.0, 0.5)
    states = default_rng(2).normal(size=(6, 4))
    statistics = BASE.summarise({"y": BASE.y[None]})
    np.testing.assert_allclose(wrapper.log_prior(states), closed.log_prior(states), rtol=1e-10)
    np.testing.assert_allclose(
        wrapper.gradient_log_density(0.4, states, statistics), closed.gradient_log_density(0.4, states, statistics)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("mean", [2.0, 3.0])
def test_wrapper_has_the_evidence_of_the_closed_form(mean):
    """T = 6, 500 simulations, 4 standard errors; a reference of another mean in the closed form is seen."""
    betas = np.array([0.0, 0.1, 0.3, 0.6, 0.8, 1.0])
    reference = gaussian(np.array([2.0]), np.array([[0.25]]))
    closed = replace(BASE, prior_mean=mean, prior_sd=0.5)
    model = LocalisedModel(BASE, ("mu",), reference)
    kernel = tuned_kernel(model)
    if mean == 2.0:
        check_forward_reverse_identities(model, kernel, betas, log_evidence=closed.log_evidence, n_simulations=500)
    else:
        with pytest.raises(AssertionError, match=r"w_fwd|w_rev|Crooks"):
            check_forward_reverse_identities(model, kernel, betas, log_evidence=closed.log_evidence, n_simulations=500)


def test_wrapper_keeps_the_contract():
    model = wrapped()
    kernel = tuned_kernel(model)
    check_simulate_is_exact(model)
    check_contract_shapes(model, kernel)
    check_bit_equal_batching(model, kernel)
    assert model.info.layout.hyperparameters == ("mu",)
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    assert (copy.log_prior(np.ones((2, 4))) == model.log_prior(np.ones((2, 4)))).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_wrapper_simulates_what_it_anneals():
    """Weighted ranks are uniform; they see data simulated from the model as it was."""

    class SimulatesTheBase(LocalisedModel):
        def draw_state(self, generator, fixed):
            return self.base.draw_state(generator, fixed)

    betas, kernel = np.array([0.0, 0.2, 0.6, 1.0]), tuned_kernel(wrapped())
    check_weighted_ranks(wrapped(), kernel, betas)
    with pytest.raises(AssertionError, match="uniform"):
        check_weighted_ranks(SimulatesTheBase(BASE, ("mu",), MIXTURE), kernel, betas)


def test_all_parameters_of_any_model():
    """On the logit scale the Jacobian goes with the prior: the law of the log odds is the reference itself."""
    base = BetaBinomial(np.array([3, 1]), np.array([4, 3]), kernel=HMCKernel(5))
    model = base.localise(["probability"], diagonal(np.array([0.5]), np.array([0.3])))
    simulations = model.simulate(2000, fixed=None, seed=SeedSequence(3))
    assert simulations.states.mean() == pytest.approx(0.5, abs=4.0 * 0.3 / np.sqrt(2000))
    np.testing.assert_allclose(simulations.parameters["probability"], expit(simulations.states[:, 0]))
    step, state = 1e-6, np.array([[0.2]])
    statistics = base.summarise({"successes": np.array([[3, 1]])})

    def density(x):
        return float((model.log_prior(x) + 0.3 * model.log_likelihood(x, statistics))[0])

    slope = (density(state + step) - density(state - step)) / (2.0 * step)
    assert model.gradient_log_density(0.3, state, statistics)[0, 0] == pytest.approx(slope, rel=1e-6)


def test_refusals():
    law = diagonal(np.zeros(1), np.ones(1))
    with pytest.raises(UnsupportedModelError, match="which part of its prior is the law of group_mean"):
        BASE.localise(["group_mean"], diagonal(np.zeros(3), np.ones(3)))
    with pytest.raises(InvalidArgumentError, match=r"\['tau'\], which are no parameters of HierarchicalNormal"):
        BASE.localise(["mu", "tau"], law)
    with pytest.raises(UnsupportedKernelError, match="HMCKernel"):
        NormalMean(np.ones(3)).localise(["mean"], law)
    model = wrapped()
    with pytest.raises(UnsupportedModelError, match="no exact evidence"):
        model.log_evidence(model.observed_data)
    with pytest.raises(UnsupportedModelError, match="no exact posterior draws"):
        model.draw_posterior(model.observed_data, 2, default_rng(1))
