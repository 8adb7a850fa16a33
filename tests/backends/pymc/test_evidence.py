"""Conjugate models written in PyMC, annealed by PyMC's own kernels, against exact log evidence.

The same checks as for the reference backend; tolerances are standard errors over simulations, with fixed seeds.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from bread.backends import open_model
from bread.backends.base import Model, OpenOptions
from bread.statistics.bounds.bounds import simulation_gaps
from tests.support.conformance import (
    anneal_pool,
    check_bit_equal_batching,
    check_contract_shapes,
    check_evidence,
    check_forward_reverse_identities,
    check_simulate_is_exact,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.pymc_conjugate import MODELS, SHORT, beta_binomial_evidence, exact_of

pytestmark = [pytest.mark.pymc, pytest.mark.statistical]


@functools.cache
def opened(name: str) -> tuple[Model, Any]:
    model = open_model(MODELS[name][0](), OpenOptions())
    return model, tuned_kernel(model)


FAST = ("beta_binomial", "label_mixture")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one not in FAST)) for one in MODELS])
def test_contract(name: str) -> None:
    model, kernel = opened(name)
    check_simulate_is_exact(model)
    check_contract_shapes(model, kernel)
    check_bit_equal_batching(model, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_exact_evidence_inside_the_sandwich(name: str) -> None:
    """T = 512, 4 chains, 20 simulations, 3 standard errors."""
    model, kernel = opened(name)
    check_evidence(model, kernel, log_evidence=exact_of(name))


@pytest.mark.parametrize("name", ["beta_binomial", pytest.param("label_mixture", marks=pytest.mark.slow)])
def test_forward_and_reverse_identities(name: str) -> None:
    """T = 8, 200 simulations, 4 standard errors; a Jacobian on the wrong side or a step not reversed fails it."""
    model, kernel = opened(name)
    check_forward_reverse_identities(model, kernel, SHORT, log_evidence=exact_of(name), n_simulations=200)


@pytest.mark.slow
def test_wrong_evidence_fails_the_identities() -> None:
    """Negative control: the evidence of a prior without the Jacobian's share (off by 0.5 nats)."""
    model, kernel = opened("beta_binomial")
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(
            model, kernel, SHORT, log_evidence=lambda data: beta_binomial_evidence(data["y"]) + 0.5, n_simulations=200
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_weighted_ranks_are_uniform(name: str) -> None:
    model, kernel = opened(name)
    check_weighted_ranks(model, kernel, SHORT, n_simulations=300)


@pytest.mark.slow
def test_gap_falls_as_one_over_n_temperatures() -> None:
    """log-log slope between T = 8 and T = 64 is -1 within 3 standard errors plus 0.15 of curvature."""
    model, kernel = opened("normal_mean")
    gaps = []
    for n_temperatures, n_simulations in ((8, 60), (64, 240)):
        betas = np.linspace(0, 1, n_temperatures)
        pool = anneal_pool(model, kernel, betas, n_simulations=n_simulations, n_chains=4, seed=n_temperatures)
        gaps.append(simulation_gaps(pool.forward, pool.reverse))
    means = np.array([item.mean() for item in gaps])
    errors = np.array([item.std(ddof=1) / np.sqrt(len(item)) for item in gaps]) / means
    slope = np.log(means[1] / means[0]) / np.log(8.0)
    slope_error = np.hypot(*errors) / np.log(8.0)
    assert slope_error < 0.2
    assert abs(slope + 1) < 3 * slope_error + 0.15
