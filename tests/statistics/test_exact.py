"""Exact annealing on a finite state space against published and independently computed numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.statistics.exact import anneal_exactly, barrier_log_density, metropolis_on_grid

SHAPE = (7, 7)
LOG_EVIDENCE = 1.4446134340800065
# T: (J, B, expected forward log weight, expected reverse log weight), computed independently
BARRIER = {
    2: (3.307491688349609, 4.712150515241456, -2.1020408163265305, 2.6101096989149255),
    10: (1.857878599178469, 2.625609697024812, -0.10283989476345899, 2.522769802261353),
    30: (1.7847455954996136, 2.1106837442880853, 0.3000671551644474, 2.4107508994525326),
    100: (1.6478626111882329, 1.8104326344722668, 0.4742327333359854, 2.2846653678082522),
    300: (1.4129980442101608, 1.5306427624247791, 0.6145060472652305, 2.1451488096900095),
    1000: (1.0846899675328476, 1.1843521730927118, 0.7915149724041459, 1.9758671454968577),
}


def anneal_barrier(n_temperatures: int):
    log_ratio = barrier_log_density().ravel()
    return anneal_exactly(
        np.zeros_like(log_ratio),
        log_ratio,
        np.linspace(0.0, 1.0, n_temperatures),
        lambda log_density: metropolis_on_grid(log_density, SHAPE),
    )


@pytest.mark.parametrize("n_temperatures", sorted(BARRIER))
def test_barrier_toy(n_temperatures):
    result = anneal_barrier(n_temperatures)
    expected = BARRIER[n_temperatures]
    received = (result.jeffreys, result.bound, result.expected_forward, result.expected_reverse)
    np.testing.assert_allclose(received, expected, rtol=0, atol=1e-9)
    assert result.log_evidence == pytest.approx(LOG_EVIDENCE, abs=1e-12)
    assert result.kl_approx_exact + result.kl_exact_approx == pytest.approx(result.jeffreys, abs=1e-12)


def test_barrier_toy_agrees_with_the_paper():
    # Grosse, Ancha & Roy (2016), appendix B.1.1: J(100) = 1.65, J(1000) = 1.085, B(1000) = 1.184
    assert anneal_barrier(100).jeffreys == pytest.approx(1.65, abs=0.005)
    assert anneal_barrier(1000).jeffreys == pytest.approx(1.085, abs=0.0005)
    assert anneal_barrier(1000).bound == pytest.approx(1.184, abs=0.0005)


def test_reversal_of_a_kernel_that_is_not_reversible():
    """The expected log weights obey the sandwich, and B equals the divergence of the two laws of whole paths."""
    rng = np.random.default_rng(1)
    log_start, log_ratio = rng.normal(size=3), rng.normal(size=3)
    betas = np.array([0.0, 0.3, 1.0])

    def sweep(log_density):
        """Return a move over {0, 1}, then over {1, 2}, each reversible: together not."""
        matrix = np.eye(3)
        for pair in ([0, 1], [1, 2]):
            step = np.eye(3)
            weight = np.exp(log_density[pair]) / np.exp(log_density[pair]).sum()
            step[np.ix_(pair, pair)] = weight
            matrix = matrix @ step
        return matrix

    result = anneal_exactly(log_start, log_ratio, betas, sweep)
    densities = [np.exp(log_start + beta * log_ratio) for beta in betas]
    densities = [density / density.sum() for density in densities]
    kernels = [sweep(log_start + beta * log_ratio) for beta in betas[1:]]
    reversals = [(d[:, None] * k).T / d[:, None] for d, k in zip(densities[1:], kernels, strict=True)]
    forward = densities[0][:, None, None] * kernels[0][:, :, None] * kernels[1][None, :, :]
    reverse = densities[2][None, None, :] * reversals[1].T[None, :, :] * reversals[0].T[:, :, None]
    support = (forward > 0) & (reverse > 0)
    divergence = ((forward - reverse)[support] * np.log(forward[support] / reverse[support])).sum()
    assert result.bound == pytest.approx(divergence, abs=1e-12)
    assert result.expected_forward < result.log_evidence < result.expected_reverse
    assert 0 < result.jeffreys < result.bound


def test_two_temperatures_of_independent_draws():
    """With a kernel that forgets, q is the target: J = 0, and B is the divergence of start and target."""
    log_ratio = np.array([0.0, 1.0, -2.0])
    target = np.exp(log_ratio) / np.exp(log_ratio).sum()
    result = anneal_exactly(
        np.zeros(3), log_ratio, np.array([0.0, 1.0]), lambda f: np.tile(np.exp(f) / np.exp(f).sum(), (3, 1))
    )
    assert result.jeffreys == pytest.approx(0.0, abs=1e-12)
    assert result.bound == pytest.approx(target @ log_ratio - log_ratio.mean(), abs=1e-12)


@pytest.mark.parametrize("betas", [[0.0], [0.0, 0.5], [0.1, 1.0], [0.0, 0.5, 0.5, 1.0]])
def test_betas_are_checked(betas):
    with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
        anneal_exactly(np.zeros(2), np.zeros(2), np.array(betas), lambda f: np.full((2, 2), 0.5))


def test_densities_are_checked():
    with pytest.raises(InvalidArgumentError, match="finite"):
        anneal_exactly(np.zeros(2), np.array([0.0, -np.inf]), np.array([0.0, 1.0]), lambda f: np.full((2, 2), 0.5))
