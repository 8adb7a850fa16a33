"""The consistency test: exact level under exchangeability, power, and what it does without data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.real_data.consistency import consistency_test

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def raw_curves(rng, n, difficulty=1.0):
    """Return mean forward log weights of n data sets at four T: skewed, and of very different levels."""
    gap = difficulty * rng.gamma(1.5, size=(n, 1)) * np.array([64.0, 16.0, 4.0, 1.0])
    return rng.normal(0, 50, size=(n, 1)) - gap * np.exp(0.7 * rng.normal(size=(n, 4)))


@pytest.fixture(scope="module")
def null_results():
    rng = np.random.default_rng(1)
    return [consistency_test(curves[:-1], curves[-1]) for curves in (raw_curves(rng, 40) for _ in range(1000))]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["p_value", "p_value_harder", "p_value_different"])
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_level_is_exact(null_results, name, level):
    count = sum(getattr(result, name) <= level for result in null_results)
    assert count <= binom.ppf(0.99, 1000, level)  # 99 % quantile
    assert count >= 0.5 * 1000 * level  # and not merely because it never rejects


@pytest.mark.statistical
def test_level_check_rejects_the_smallest_p_value_over_temperatures(null_results):
    count = sum(np.nanmin(result.p_value_by_temperature) <= 0.05 for result in null_results)
    assert count > binom.ppf(0.99, 1000, 0.05)


@pytest.mark.statistical
def test_power_against_data_that_anneal_differently():
    rng = np.random.default_rng(2)
    harder = [consistency_test(raw_curves(rng, 39), raw_curves(rng, 1, 8.0)[0]) for _ in range(100)]
    assert np.mean([result.p_value <= 0.05 for result in harder]) > 0.6
    assert np.median([result.effect[0] for result in harder]) > 64
    easier = [consistency_test(raw_curves(rng, 39), raw_curves(rng, 1, 0.01)[0]) for _ in range(100)]
    assert np.median([result.effect[0] for result in easier]) < -30
    assert np.mean([result.p_value_harder > 0.9 for result in easier]) > 0.9
    # A curve of another shape with an unchanged mean is caught by the second statistic.
    bent = raw_curves(rng, 1)[0] + [-300.0, 300.0, 0.0, 0.0]
    assert consistency_test(raw_curves(rng, 39), bent).p_value_different == 1 / 40


def test_p_value_is_never_above_bonferroni_nor_below_its_floor(null_results):
    for result in null_results:
        smaller = min(result.p_value_harder, result.p_value_different)
        assert smaller - 1e-12 <= result.p_value <= min(1.0, 2 * smaller) + 1e-12


def test_curves_and_effect():
    simulated = np.array([[0.0, 4.0, 5.0], [1.0, 6.0, 8.0], [2.0, 7.0, 10.0]])
    observed = np.array([-20.0, -3.0, 1.0])
    result = consistency_test(simulated, observed)
    np.testing.assert_allclose(result.observed_curve, [-21, -4, 0])
    np.testing.assert_allclose(result.simulated_curves, [[-5, -1, 0], [-7, -2, 0], [-8, -3, 0]])
    np.testing.assert_allclose(result.effect, [14, 2, 0])  # positive: the real data are harder
    np.testing.assert_allclose(result.p_value_by_temperature, [0.5, 0.5, np.nan])
    assert result.p_value_harder == 0.25
    assert result.p_value_different == 0.25


def test_smallest_p_value_needs_39_simulations():
    rng = np.random.default_rng(3)
    for n, expected in ((39, 2 / 40), (19, 2 / 20)):
        result = consistency_test(raw_curves(rng, n), np.array([-5000.0, -50.0, 10.0, 0.0]))
        assert result.p_value_harder == pytest.approx(1 / (n + 1))
        assert result.p_value <= expected + 1e-12


def test_one_temperature_or_one_simulation_tests_nothing():
    one_temperature = consistency_test(np.zeros((5, 1)), np.zeros(1))
    assert np.isnan(one_temperature.p_value) and np.isnan(one_temperature.p_value_harder)
    assert np.isnan(one_temperature.p_value_different) and np.isnan(one_temperature.effect).all()
    assert np.isnan(one_temperature.p_value_by_temperature).all()
    one_simulation = consistency_test([[0.0, 1.0]], [0.0, 3.0])
    assert np.isnan(one_simulation.p_value)
    np.testing.assert_allclose(one_simulation.effect, [2.0, 0.0])


def test_infinite_log_weights():
    rng = np.random.default_rng(4)
    simulated = raw_curves(rng, 39)
    hard = consistency_test(simulated, np.array([-np.inf, -np.inf, -9.0, 0.0]))
    assert hard.p_value_harder == pytest.approx(1 / 40)
    assert np.isfinite(hard.effect).all() and hard.effect[0] > 0
    lost = consistency_test(simulated, np.array([0.0, 0.0, 0.0, -np.inf]))  # cannot be shifted: hardest
    assert lost.p_value_harder == pytest.approx(1 / 40)
    np.testing.assert_array_equal(lost.observed_curve, [-np.inf, -np.inf, -np.inf, 0.0])
    everywhere = consistency_test(np.full((39, 3), -np.inf), np.full(3, -np.inf))
    assert everywhere.p_value == 1.0  # all alike
    some = simulated.copy()
    some[::2, 0] = -np.inf
    assert consistency_test(some, simulated[1]).p_value > 1 / 40


def test_equal_curves_do_not_reject():
    result = consistency_test(np.tile([-3.0, -1.0, 0.0], (39, 1)), [-3.0, -1.0, 0.0])
    assert result.p_value == 1.0
    np.testing.assert_array_equal(result.p_value_by_temperature[:-1], 1.0)


@pytest.mark.parametrize(
    ("simulated", "observed", "message"),
    [
        (np.zeros((3, 2)), np.zeros(3), r"\(3, 2\) and \(3,\)"),
        (np.zeros((0, 2)), np.zeros(2), r"\(0, 2\)"),
        ([[0.0, np.nan]], [0.0, 0.0], "simulated mean log weights.*1 are NaN"),
        ([[0.0, 1.0]], [0.0, np.inf], r"observed mean log weights.*1 \+inf"),
    ],
)
def test_errors(simulated, observed, message):
    with pytest.raises(InvalidArgumentError, match=message):
        consistency_test(simulated, observed)


@PROPERTY
@given(st.integers(0, 10_000), st.floats(-100, 100))
def test_invariances(seed, constant):
    rng = np.random.default_rng(seed)
    simulated, observed = raw_curves(rng, 12), raw_curves(rng, 1)[0]
    expected = consistency_test(simulated, observed)
    permuted = consistency_test(rng.permutation(simulated), observed)
    levels = constant * rng.normal(size=(12, 1))  # each data set has its own evidence
    shifted = consistency_test(simulated + levels, observed + constant)
    for result in (permuted, shifted):
        assert result.p_value == expected.p_value
        assert result.p_value_harder == expected.p_value_harder
        np.testing.assert_allclose(result.effect, expected.effect, atol=1e-9)
        np.testing.assert_array_equal(result.p_value_by_temperature, expected.p_value_by_temperature)


def test_log_weights_of_vague_models_do_not_overflow() -> None:
    rng = np.random.default_rng(5)
    simulated, observed = raw_curves(rng, 40), raw_curves(rng, 1)[0]
    expected = consistency_test(simulated, observed)
    huge = consistency_test(np.ldexp(simulated, 700), np.ldexp(observed, 700))
    assert huge.p_value == expected.p_value
    assert huge.p_value_different == expected.p_value_different
