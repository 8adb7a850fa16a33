"""The t test with a counter-value: its level for skewed, heavy-tailed and rare values, and its power."""

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.means import mean_zero_test

LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "chi-squared": lambda rng, size: rng.normal(size=size) ** 2 - 1.0,
    "lognormal": lambda rng, size: np.exp(1.5 * rng.normal(size=size)) - np.exp(1.125),
    "lognormal, reflected": lambda rng, size: np.exp(1.125) - np.exp(1.5 * rng.normal(size=size)),
    "t2": lambda rng, size: rng.standard_t(2, size),
    "Cauchy": lambda rng, size: rng.standard_cauchy(size),
    "Pareto of index 2.5": lambda rng, size: rng.pareto(2.5, size) - 1.0 / 1.5,
    "rate 0.005": lambda rng, size: (rng.random(size) < 0.005) - 0.005,
    "rate 0.05": lambda rng, size: (rng.random(size) < 0.05) - 0.05,
    "score / half-normal scale": lambda rng, size: (
        (2.0 / rng.gamma(3.0, size=size) - 1.0) / np.abs(rng.normal(size=size))
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_level(law):
    p = mean_zero_test(LAWS[law](np.random.default_rng(1), (750, 4000))).p_values
    for level in (0.05, 0.01, 0.001):
        assert (p <= level).sum() <= binom.ppf(0.99, p.size, level)  # NaN, not tested, is no rejection


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["lognormal", "Pareto of index 2.5", "rate 0.005"])
def test_level_check_rejects_the_plain_t_test(law):
    p = ttest_1samp(LAWS[law](np.random.default_rng(1), (750, 4000)), 0.0).pvalue
    assert (p <= 0.001).sum() > binom.ppf(0.99, p.size, 0.001)


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["normal", "chi-squared", "rate 0.05"])
def test_power(law):
    rng = np.random.default_rng(2)
    x = LAWS[law](rng, (750, 200))
    p = mean_zero_test(x + 0.4 * x.std() * rng.choice([0.0, 2.0], x.shape)).p_values  # ten standard errors
    assert (p <= 1e-4).mean() > 0.9


def test_values_that_cannot_be_tested():
    rng = np.random.default_rng(3)
    one_sided = np.abs(rng.normal(size=(400, 1)))
    assert np.isnan(mean_zero_test(one_sided).p_values).all()
    assert mean_zero_test(one_sided, plain_size=0.3).p_values[0] < 1e-6  # too large to be balanced by rare events
    assert np.isnan(mean_zero_test(0.01 * one_sided, plain_size=0.3).p_values).all()
    zero = mean_zero_test(np.zeros((400, 1)))
    assert np.isnan(zero.p_values).all() and zero.effect[0] == 0.0


def test_units_do_not_matter():
    x = np.random.default_rng(4).gumbel(size=(300, 5))
    expected = mean_zero_test(x).p_values
    for factor in (1e-200, 1e200, -3.0):
        np.testing.assert_allclose(mean_zero_test(factor * x).p_values, expected, rtol=1e-9)


@pytest.mark.parametrize("values", [np.zeros(5), np.zeros((1, 2)), np.array([[0.0], [np.nan]])])
def test_errors(values):
    with pytest.raises(InvalidArgumentError, match="values must have shape"):
        mean_zero_test(values)
