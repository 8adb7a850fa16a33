"""Sequential p-values and the test of shape and effort: level, also with growth, ties and power."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.real_data.consistency import consistency_test
from bread.statistics.real_data.sequential import plain_p_value, sequential_p_value, shape_test

LOOKS = (40, 80, 120, 160, 199)


def items(rng, n, harder=1.0):
    """Return curves and effort of n exchangeable data sets, the last one ``harder``; skewed, with ties."""
    difficulty = rng.gamma(1.5, size=n)
    difficulty[-1] *= harder
    gap = difficulty[:, None] * np.array([64.0, 16.0, 4.0, 1.0]) * np.exp(0.7 * rng.normal(size=(n, 4)))
    effort = {
        "spread": difficulty * rng.gamma(3.0, size=n),
        "gradients": np.round(20.0 * difficulty**0.3 + rng.gamma(2.0, size=n)),
        "divergences": rng.poisson(0.3 * difficulty),
        "lag": difficulty[:, None] * rng.gamma(2.0, size=(n, 12)),
    }
    return rng.normal(0.0, 50.0, size=(n, 1)) - gap, effort


def check_level_of_growth(n_runs):
    """Check a test at 0.05 that looks at 40, 80, ... simulations and stops where it may."""
    rng = np.random.default_rng(1)
    n_rejected = 0
    for _ in range(n_runs):
        curves, effort = items(rng, 200)
        for n in LOOKS:
            chosen = np.r_[:n, 199]
            result = shape_test(curves[chosen], {name: values[chosen] for name, values in effort.items()})
            if result.is_final:
                break
        assert result.is_final  # at the latest with 199 simulations
        n_rejected += result.p_value <= 0.05
    assert n_rejected <= binom.ppf(0.99, n_runs, 0.05)


@pytest.mark.statistical
def test_level_of_the_shape_test_that_grows():
    check_level_of_growth(60)


@pytest.mark.study
@pytest.mark.statistical
def test_level_of_the_shape_test_that_grows_over_1000_runs():
    check_level_of_growth(1000)


@pytest.mark.statistical
def test_stopping_at_a_small_p_value_has_no_level():
    rng = np.random.default_rng(1)
    n_rejected = 0
    for row in rng.gumbel(size=(1000, 200)):
        n_rejected += any(plain_p_value(row[0], row[1 : n + 1]) <= 0.05 for n in range(40, 200, 5))
    assert n_rejected > binom.ppf(0.99, 1000, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("digits", [8, 1], ids=["no ties", "ties"])
def test_sequential_p_values_are_valid_at_every_level(digits):
    rng = np.random.default_rng(2)
    x = np.round(rng.gumbel(size=(4000, 200)), digits)
    results = [sequential_p_value(row[0], row[1:]) for row in x]
    assert all(result.is_final for result in results)
    p = np.array([result.p_value for result in results])
    for level in (0.01, 0.05, 0.2, 0.5):
        assert (p <= level).sum() <= binom.ppf(0.99, len(p), level)
    # Negative control: the smallest plain p-value on the way.
    least = np.min((1 + np.cumsum(x[:, 1:] >= x[:, :1], axis=1)) / np.arange(2, 201), axis=1)
    assert (least <= 0.05).sum() > binom.ppf(0.99, len(p), 0.05)
    assert np.mean([result.n_used for result in results]) < 60  # and it saves simulations


def test_sequential_p_value_by_hand():
    up_to = sequential_p_value(3.0, [5.0, 1.0, 4.0, 0.0], stop_after=2)
    assert up_to == (2 / 3, 3, 2, True)
    assert sequential_p_value(3.0, [5.0, 1.0], stop_after=2) == (2 / 3, 2, 1, False)
    assert sequential_p_value(9.0, [5.0, 1.0, 9.5], most=2) == (1 / 3, 2, 0, True)
    assert plain_p_value(3.0, np.r_[np.zeros(38), 3.0]) == 0.05  # p <= level: reached exactly
    assert plain_p_value(np.inf, [1.0, np.inf]) == pytest.approx(2 / 3)


@pytest.mark.statistical
def test_power_of_effort():
    rng = np.random.default_rng(3)
    with_effort, alone = [], []
    for _ in range(60):
        curves, effort = items(rng, 100, 10.0)
        with_effort.append(shape_test(curves, effort).p_value <= 0.05)
        alone.append(shape_test(curves).p_value <= 0.05)
    assert np.mean(with_effort) > 0.7 and np.mean(with_effort) > np.mean(alone)
    flat, effort = np.zeros((100, 1)), {"gradients": np.r_[rng.poisson(20.0, 99), 200]}  # one temperature
    result = shape_test(flat, effort)
    assert result.p_value == 0.01 and result.p_value_by_measure == {"gradients": 0.01} and not result.is_final


def test_without_effort_it_is_the_consistency_test():
    rng = np.random.default_rng(4)
    for case in range(20):
        curves, _ = items(rng, 41, 3.0)
        curves[rng.random(curves.shape) < 0.02] = -np.inf
        expected, result = consistency_test(curves[:-1], curves[-1]), shape_test(curves)
        assert result.p_value == expected.p_value, case
        assert result.p_value_by_measure["harder"] == expected.p_value_harder
        assert result.p_value_by_measure["different"] == expected.p_value_different


def test_shape_test_does_not_depend_on_levels_order_or_units():
    rng = np.random.default_rng(5)
    curves, effort = items(rng, 41, 3.0)
    expected = shape_test(curves, effort)
    order = np.r_[rng.permutation(40), 40]
    moved = curves[order] + rng.normal(0.0, 100.0, size=(41, 1))
    result = shape_test(moved, {name: np.exp(values[order] / 100.0) for name, values in effort.items()})
    assert result.p_value == expected.p_value
    alike = shape_test(np.zeros((41, 3)), {"divergences": np.zeros(41)})
    assert alike.p_value == 1.0 and alike.is_final


def test_nothing_to_test():
    assert np.isnan(shape_test(np.zeros((2, 3))).p_value)
    assert np.isnan(shape_test(np.zeros((30, 1))).p_value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shape_test([[0.0, np.nan], [0.0, 1.0]]), "1 NaN"),
        (lambda: shape_test([[0.0, np.inf], [0.0, 1.0]]), "finite or -inf"),
        (lambda: shape_test(np.zeros((1, 2))), r"\(1, 2\)"),
        (lambda: shape_test(np.zeros((5, 2)), {"spread": np.zeros(4)}), r"'spread' must have shape \(5, ...\)"),
        (lambda: shape_test(np.zeros((5, 2)), {"spread": np.full(5, np.nan)}), "5 NaN"),
        (lambda: plain_p_value(np.nan, [0.0]), "observed one is nan"),
        (lambda: sequential_p_value(0.0, [0.0], stop_after=0), "stop_after"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call()
