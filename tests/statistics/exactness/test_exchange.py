"""Balanced flow: zero for draws of the density, whatever its kind, and power without a gradient."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.exchange import balanced_flow, perturbations
from bread.statistics.exactness.functions import StateFunctions
from bread.statistics.exactness.means import mean_zero_test
from tests.support import bare_kernels as kernels

TARGETS = {
    "normal": kernels.normal,
    "skewed": kernels.skewed,
    "walls": kernels.walls,
    "discrete": kernels.discrete,
}


def p_values(target, simulator, rng, n=400):
    first, draws = target.simulate(300, rng), simulator.simulate(n, rng)
    moved = perturbations(first, draws, target.is_continuous, rng)
    functions = StateFunctions([f"x{i}" for i in range(target.dim)], first, target.dim)
    density = [target.log_density(x) for x in draws]
    after = np.array([[target.log_density(x) for x in row] for row in moved])
    flow = balanced_flow(density, after, functions.smooth(draws), functions.smooth(moved))
    return mean_zero_test(flow, is_bounded=True).p_values


@pytest.mark.statistical
@pytest.mark.parametrize("name", TARGETS)
def test_draws_of_the_density_pass(name):
    target = TARGETS[name]()
    smallest = [np.nanmin(p) * p.size for p in (p_values(target, target, np.random.default_rng(s)) for s in range(8))]
    assert sum(p <= 0.05 for p in smallest) <= binom.ppf(0.99, 8, 0.05)


@pytest.mark.statistical
def test_other_draws_are_found():
    rng = np.random.default_rng(1)
    assert np.nanmin(p_values(kernels.normal(), kernels.normal(spread=1.3), rng)) < 1e-6
    assert np.nanmin(p_values(kernels.walls(), kernels.walls(), rng)) > 1e-4
    uniform = kernels.Target("uniform", 2, None, lambda n, rng: rng.integers(1, 5, size=(n, 2)).astype(float))
    assert np.nanmin(p_values(kernels.discrete(), uniform, rng)) < 1e-6


def test_functions_that_do_not_change_have_no_flow_at_all():
    """Rounding in place of zero would be a mean with a tiny error."""
    rng = np.random.default_rng(4)
    density = rng.normal(size=300)
    flow = balanced_flow(density, rng.normal(size=(300, 11)), np.ones((300, 1)), np.ones((300, 11, 1)))
    np.testing.assert_array_equal(flow, 0.0)


def test_flow_by_hand():
    flow = balanced_flow([0.0, -np.inf, -np.inf], [[0.0], [1.0], [-np.inf]], [[1.0]] * 3, [[[3.0]]] * 3)
    np.testing.assert_allclose(flow[:, 0], [1.0, 2.0, 0.0])
    with pytest.raises(InvalidArgumentError, match="shapes"):
        balanced_flow([0.0], [[0.0], [1.0]], [[1.0]], [[[1.0]]])


@pytest.mark.statistical
def test_perturbations_are_symmetric_and_whole_where_they_must_be():
    rng = np.random.default_rng(2)
    first = np.column_stack([rng.gamma(0.5, size=300), rng.poisson(2.0, 300)])
    draws = np.zeros((4000, 2))
    moves = perturbations(first, draws, np.array([True, False]), rng)
    assert moves.shape == (4000, 8, 2)
    np.testing.assert_array_equal(moves[..., 1], np.rint(moves[..., 1]))
    positive = (moves > 0.0).sum(axis=0) + (moves == 0.0).sum(axis=0) / 2.0
    assert (np.abs(positive / 4000 - 0.5) < 4.5 * 0.5 / np.sqrt(4000)).all()
