"""Nodes of Stan programs: exchangeable with their replicates, and densities that are the program's own."""

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy.stats import kstest, norm

from bread.running.model_fit.fit_check import check_fit
from tests.support.marks import slow_but
from tests.support.replicating import density, largest, mean, ranks
from tests.support.stan_conjugate import ERROR, conjugate, eight_schools


def test_nodes_are_outcomes_latents_and_parameters():
    nodes = {node.name: (node.kind, node.size, node.refusal) for node in conjugate("hierarchical").nodes()}
    assert nodes == {
        "y": ("data", 3, ""),
        "theta": ("latent", 3, ""),
        "mu": ("parameter", 1, ""),
        "y given mu": ("predictive", 3, ""),
        "y from the prior": ("predictive", 3, ""),
    }
    schools = {node.name: node.kind for node in eight_schools().nodes()}
    assert schools == {
        "y": "data",
        "mu": "parameter",
        "tau": "parameter",
        "eta": "parameter",
        "y given mu, tau": "predictive",
        "y from the prior": "predictive",
    }


@pytest.mark.statistical
@pytest.mark.parametrize(
    "node", slow_but(["mu", "y from the prior"], ["y", "theta", "mu", "y given mu", "y from the prior"])
)
def test_a_node_is_exchangeable_with_its_replicates(node):
    model = conjugate("hierarchical")
    functions = [mean] if node == "mu" else [mean, largest, *([] if " " in node else [density])]
    for column in ranks(model, node, n_sets=150, n_replicates=39, functions=functions).T:
        assert kstest(column, "uniform").pvalue > 1e-3
    if node not in ("mu", "y from the prior"):
        wrong = ranks(model, node, n_sets=150, n_replicates=39, functions=[mean], parents_of_another=True)
        assert kstest(wrong[:, 0], "uniform").pvalue < 1e-3


def test_densities_are_the_programs_own():
    model = conjugate("hierarchical")
    state = np.array([0.4, 1.0, -0.3, 0.8])
    made = model.replicate(state, "y", 6, seed=SeedSequence(1))
    expected = norm.logpdf(made.values, state[1:], ERROR).sum(axis=1)
    np.testing.assert_allclose(made.log_density, expected, rtol=1e-9)
    latent = model.replicate(state, "theta", 6, seed=SeedSequence(1))
    given = norm.logpdf(latent.values, 0.4, 0.7).sum(axis=1)
    np.testing.assert_allclose(latent.log_density - latent.log_density[0], given - given[0], rtol=1e-9, atol=1e-9)
    again = model.replicate(state, "y", 6, seed=SeedSequence(1))
    np.testing.assert_array_equal(made.values, again.values)


@pytest.mark.slow
@pytest.mark.statistical
def test_one_school_at_60_is_found():
    model = conjugate("hierarchical")
    y = np.array([60.0, -0.2, 0.6])
    precision = np.array(
        [[1.0 + 3 / 0.49, *[-1 / 0.49] * 3], *[[-1 / 0.49, *row] for row in np.diag(1 / 0.49 + 1 / ERROR**2)]]
    )
    linear = np.array([0.3, *(y / ERROR**2)])
    covariance = np.linalg.inv(precision)
    states = np.random.default_rng(1).multivariate_normal(covariance @ linear, covariance, 5)
    assert check_fit(model, states, 1, data={"y": y}).p_value <= 0.005
    clean = np.array([1.5, -0.2, 0.6])
    states = np.random.default_rng(1).multivariate_normal(
        covariance @ np.array([0.3, *(clean / ERROR**2)]), covariance, 5
    )
    assert check_fit(model, states, 1, data={"y": clean}).p_value > 0.05
