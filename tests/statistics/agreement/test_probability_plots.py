"""P-P plots: on the diagonal where two samples have one law, off it by what the laws say where they do not."""

import numpy as np
import pytest
from scipy.stats import norm

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.probability_plots import POINTS, probability_plot
from bread.statistics.exactness.invariance import invariance_test, smooth_functions

N = 20_000


def test_one_law_lies_on_the_diagonal_and_another_where_its_distribution_function_says():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((N, 2))
    y = 0.6 * x + 0.8 * rng.standard_normal((N, 2))  # depends on x, as states before and after steps do
    y[:, 1] *= 1.3
    found = probability_plot(x, y)
    z = (found.after - found.before) / found.error
    assert np.abs(z[0]).max() < 4.0 < 10.0 < np.abs(z[1]).max()
    inside = found.before[1]
    expected = norm.cdf(norm.ppf(inside) / 1.3)
    assert np.abs(found.after[1] - expected).max() < 5.0 * found.error[1].max()
    assert np.abs(found.before[1] - expected).max() > 10.0 * found.error[1].max()  # negative control


def test_errors_are_those_of_pairs():
    """Over 400 pairs of samples, the spread of the difference is what is stated, to 4 standard errors of it."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200, 400))
    y = 0.9 * x + np.sqrt(0.19) * rng.standard_normal(x.shape)
    found = probability_plot(x, y)
    middle = POINTS // 2
    spread = (found.after - found.before)[:, middle].std()
    stated = np.sqrt((found.error[:, middle] ** 2).mean())
    assert abs(spread / stated - 1.0) < 4.0 / np.sqrt(2 * 400)
    assert abs(spread / np.sqrt(0.5 / 200) - 1.0) > 0.3  # as if x and y were independent: not those


def test_what_is_not_a_number_has_no_points_and_ties_count_as_below():
    x = np.array([[0.0, np.nan], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    found = probability_plot(x, x)
    assert np.isnan(found.before[1]).all() and set(found.before[0]) == {0.5, 1.0}
    assert (found.error[0] == 0.0).all()
    with pytest.raises(InvalidArgumentError, match="one shape"):
        probability_plot(x, x[:2])


def test_the_functions_are_those_that_the_test_of_invariance_compared():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, 3))
    y = x + 0.3 * rng.standard_normal(x.shape)
    y[7, 2] = np.nan
    test = invariance_test(x, y)
    before, after = smooth_functions(x, y, test)
    assert before.shape == (240, 3, 4) and test.functions[:4] == ("x", "x^2", "x y_1", "x y_2")
    is_tested = ~np.isnan(test.p_values[:, :4])
    np.testing.assert_allclose((after - before).mean(axis=0)[is_tested], test.effect[:, :4][is_tested])
    np.testing.assert_array_equal(np.isnan(before[0]), ~is_tested)
