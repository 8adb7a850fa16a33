"""Independence proposals on the reference backend: exact identities, what they give, and a wrong rule that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import SeedSequence

from tests.models.reference import AbsoluteMean, CompoundKernel, HMCKernel, IndependenceKernel
from tests.support.conformance import (
    PATH,
    anneal_pool,
    check_bit_equal_batching,
    check_contract_shapes,
    check_forward_reverse_identities,
    check_frozen,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.reference_models import ALL_MODELS, HMC

pytestmark = pytest.mark.statistical
BETAS = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
WITH = CompoundKernel((IndependenceKernel(), HMC))
MODELS = {
    "beta_binomial": ALL_MODELS["beta_binomial_hmc"],
    "hierarchical": ALL_MODELS["hierarchical_hmc"],
    "absolute_mean": ALL_MODELS["absolute_mean_hmc"],
    "marginal_mixture": ALL_MODELS["marginal_mixture_hmc"],
}


@pytest.fixture(params=MODELS)
def model(request):
    return replace(MODELS[request.param], kernel=WITH)


def test_contract(model):
    kernel = tuned_kernel(model)
    check_contract_shapes(model, kernel)
    check_bit_equal_batching(model, kernel)
    check_frozen(model, kernel)


def test_identities(model):
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z and Crooks' relation over 1000 simulations, within 4 standard errors."""
    check_forward_reverse_identities(model, tuned_kernel(model), BETAS)


def test_ranks(model):
    check_weighted_ranks(model, tuned_kernel(model), BETAS)


@dataclass(frozen=True)
class WithoutBeta(IndependenceKernel):
    """Accepts at every inverse temperature as at 1."""

    def transition(self, run):
        return super().transition(replace(run, betas=np.ones_like(run.betas)))


def test_acceptance_at_the_wrong_temperature_is_seen():
    """Negative control: the identities fail where proposals are accepted as at beta = 1."""
    model = replace(MODELS["beta_binomial"], kernel=CompoundKernel((WithoutBeta(), HMC)))
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(model, tuned_kernel(model), BETAS)


@dataclass(frozen=True)
class Always(IndependenceKernel):
    """Takes every proposal."""

    def transition(self, run):
        return super().transition(replace(run, betas=np.zeros_like(run.betas)))


def test_forward_proposes_first_and_reverse_last():
    """Where every proposal is taken, a reverse chain ends at one, and does not depend on where it began."""
    model = replace(MODELS["hierarchical"], kernel=CompoundKernel((Always(), HMC)))
    kernel, seeds = tuned_kernel(model), SeedSequence(4).spawn(2)
    posterior = model.condition({"y": model.y})
    ends = {}
    for direction in ("forward", "reverse"):
        for start in (0.0, 5.0):
            initial = np.full((2, model.dim), start)
            run = posterior.anneal(PATH, BETAS, kernel, direction=direction, initial=initial, seeds=seeds)
            ends[direction, start] = run.state_at_end if direction == "forward" else run.state_at_base
    moved = replace(MODELS["hierarchical"], kernel=CompoundKernel((Always(), HMCKernel(n_leapfrog=1))))
    shorter = moved.condition({"y": model.y})
    initial = np.zeros((2, model.dim))
    other = shorter.anneal(PATH, BETAS, kernel, direction="reverse", initial=initial, seeds=seeds).state_at_base
    assert np.array_equal(ends["reverse", 0.0], ends["reverse", 5.0]) and np.array_equal(ends["reverse", 0.0], other)
    last = shorter.anneal(PATH, BETAS, kernel, direction="forward", initial=initial, seeds=seeds).state_at_end
    assert np.array_equal(ends["forward", 0.0], ends["forward", 5.0])
    assert not np.isclose(ends["forward", 0.0], last).any()  # HMC moved after the last proposal


def test_two_modes_at_one_t():
    """HMC alone stays in the mode where a chain is: the mean gap falls by more than 3 standard errors."""
    y = np.array([2.6, 2.2, 2.9, 2.4])
    means, variances = [], []
    for kernel in (HMC, WITH):
        model = AbsoluteMean(y, kernel=kernel)
        pool = anneal_pool(
            model, tuned_kernel(model), np.linspace(0.0, 1.0, 9) ** 2, n_simulations=200, n_chains=2, seed=3
        )
        means.append(pool.gaps.mean())
        variances.append(pool.gaps.var(ddof=1) / len(pool.gaps))
    assert means[1] + 3.0 * np.sqrt(sum(variances)) < means[0]
