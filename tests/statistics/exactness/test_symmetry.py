"""Symmetry about zero: exact for any law and sample size, and power against a mean."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.symmetry import CONSTANT, symmetry_test

LAWS = {
    "few signs": lambda rng, n: rng.choice([-1.0, 1.0], size=(n, 5000)),
    "Cauchy": lambda rng, n: rng.standard_cauchy((n, 5000)),
    "mostly zero": lambda rng, n: rng.choice([-1.0, 0.0, 0.0, 0.0, 3.0, -3.0, 1.0], size=(n, 5000)),
    "scales that differ": lambda rng, n: rng.normal(size=(n, 5000)) * 2.0 ** np.arange(n)[:, None],
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [3, 20, 200])
def test_level_is_exact_at_any_size(name, n):
    p = symmetry_test(LAWS[name](np.random.default_rng(1), n)).p_values
    for level in (0.2, 0.05, 0.01, 0.001):
        assert (p <= level).sum() <= binom.ppf(0.99, p.size, level)


@pytest.mark.statistical
def test_students_t_has_no_level_on_few_signs():
    """Negative control: normal tails in place of the bound reject three equal signs at 0.1, which are 1 in 4."""
    p = symmetry_test(LAWS["few signs"](np.random.default_rng(1), 3)).p_values / CONSTANT
    assert (p <= 0.1).sum() > binom.ppf(0.999, p.size, 0.1)


@pytest.mark.statistical
def test_a_mean_is_found():
    x = np.random.default_rng(2).normal(0.2, 1.0, size=(500, 200))
    result = symmetry_test(x)
    power = norm.sf(norm.isf(0.001 / 2.0 / CONSTANT) - 0.2 * np.sqrt(500))
    assert abs((result.p_values < 0.001).mean() - power) < 4.0 * np.sqrt(power * (1.0 - power) / 200)
    assert abs(result.effect.mean() - 0.2 / np.sqrt(1.04)) < 4.0 / np.sqrt(500 * 200)


def test_extreme_sizes_and_errors():
    np.testing.assert_allclose(symmetry_test(np.full((400, 2), [1e-300, 1e300])).effect, 1.0)
    assert symmetry_test(np.zeros((5, 1))).p_values[0] == 1.0
    for bad in (np.zeros((0, 1)), np.zeros(3), np.array([[np.nan]])):
        with pytest.raises(InvalidArgumentError, match="finite"):
            symmetry_test(bad)
