"""The invariance test: level for right kernels, reversible or not, and power for wrong ones."""

import numpy as np
import pytest
from scipy.stats import binom, wilcoxon

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.invariance import crossing_p_values, invariance_test
from tests.support.steps import RIGHT, WRONG, on_circle

N_DRAWS = 1000


def check_level(case, n_runs, n_draws=500):
    rng = np.random.default_rng(1)
    p = np.array([invariance_test(*case(rng, n_draws)).p_value for _ in range(n_runs)])
    for level in (0.05, 0.01, 0.001):
        assert (p <= level).sum() <= binom.ppf(0.99, n_runs, level)


@pytest.mark.statistical
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass(name):
    check_level(RIGHT[name], 30)


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", RIGHT)
def test_level_over_400_runs(name):
    check_level(RIGHT[name], 400)


@pytest.mark.statistical
def test_level_check_rejects_a_test_of_symmetric_differences():
    rng = np.random.default_rng(1)
    p = [wilcoxon(np.subtract(*on_circle(rng, 500))[:, 0]).pvalue for _ in range(30)]
    assert (np.array(p) <= 0.001).all()  # rotation leaves the law invariant, and most draws move upwards


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in WRONG if name != "small Langevin steps"])
def test_wrong_kernels_are_found(name):
    for seed in range(5):
        assert invariance_test(*WRONG[name](np.random.default_rng(seed), N_DRAWS)).p_value < 1e-3


@pytest.mark.statistical
def test_a_small_bias_needs_more_draws():
    rng = np.random.default_rng(2)
    assert invariance_test(*WRONG["small Langevin steps"](rng, 10 * N_DRAWS)).p_value < 1e-5


@pytest.mark.statistical
def test_crossings_are_exact_whatever_their_number():
    rng = np.random.default_rng(3)
    p = crossing_p_values(rng.choice([-1, 0, 1], p=[0.02, 0.96, 0.02], size=(200, 4000)))
    assert (p <= 0.05).sum() <= binom.ppf(0.99, 4000, 0.05)
    np.testing.assert_allclose(crossing_p_values([[1, 1, 0], [1, -1, 0], [1, 0, 0]]), [0.25, 1.0, 1.0])


@pytest.mark.statistical
def test_the_worst_function_is_named():
    rng = np.random.default_rng(4)
    before = rng.normal(size=(N_DRAWS, 3))
    after = before.copy()
    after[:, 1] = np.where(rng.random(N_DRAWS) < 0.2, 3.0, after[:, 1])
    result = invariance_test(before, after)
    assert result.worst == (1, "x < q90")
    assert result.p_values.shape == (3, len(result.functions)) and result.partners.shape == (3, 2)
    assert result.effect[1, 0] > 0.3 and result.effect[0, 0] == 0.0
    turned = rng.normal(size=(N_DRAWS, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])  # margins right, product wrong
    result = invariance_test(rng.normal(size=(N_DRAWS, 2)), turned)
    assert result.p_value < 1e-6 and result.worst[1] == "x y_1"


def test_failures_of_draw_or_kernel_are_counted():
    rng = np.random.default_rng(5)
    before = rng.standard_cauchy((N_DRAWS, 3))
    after = before[::-1].copy()
    before[0, 0], after[5, 1] = -np.inf, np.nan
    result = invariance_test(before, after)
    np.testing.assert_array_equal(result.n_not_a_number, [0, 1, 0])
    assert np.isnan(result.p_values[1]).all() and result.p_value > 0.01
    assert np.isnan(result.p_values[:, result.functions.index("x y_1")]).sum() == 2
    nothing = invariance_test(np.full((100, 1), np.nan), np.zeros((100, 1)))
    assert np.isnan(nothing.p_value) and nothing.worst is None
    still = invariance_test(np.zeros((100, 2)), np.zeros((100, 2)))
    assert still.p_value == 1.0
    assert invariance_test(np.zeros((100, 1)), np.ones((100, 1))).p_value < 1e-6


@pytest.mark.parametrize("shapes", [((50, 1), (50, 1)), ((200, 2), (200, 1)), ((200,), (200,))])
def test_errors(shapes):
    with pytest.raises(InvalidArgumentError, match="one shape"):
        invariance_test(np.zeros(shapes[0]), np.zeros(shapes[1]))
