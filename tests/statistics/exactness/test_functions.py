"""Functions of states: labels, bounds, ties and constant columns."""

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.functions import EVERYTHING, Label, StateFunctions


def first(n=500):
    rng = np.random.default_rng(1)
    return np.column_stack([rng.standard_cauchy(n), rng.integers(1, 4, n), np.full(n, 2.0), rng.normal(size=n)])


def test_labels_fit_values_and_constants_are_left_out():
    functions = StateFunctions(("a", "k", "c", "log density"), first(), 3)
    states = first()[:7].reshape(7, 1, 4)
    assert functions.smooth(states).shape == (7, 1, len(functions.smooth_labels))
    assert functions.indicators(states).shape == (7, 1, len(functions.indicator_labels))
    np.testing.assert_array_equal(functions.is_used, [True, True, False, True])
    assert functions.pairs == ((0, 1),) and Label("a, k", "x y") in functions.smooth_labels
    assert {label.function for label in functions.indicator_labels if label.quantity == "k"} == {"x <= 1", "x <= 2"}
    quantities = {label.quantity for label in functions.smooth_labels}
    assert quantities == {"a", "k", "log density", "a, k", EVERYTHING, "axis 1", "axis 2"}
    by = dict(zip(functions.indicator_labels, functions.indicators(states)[:, 0].T, strict=True))
    np.testing.assert_array_equal(by["k", "x <= 1"], states[:, 0, 1] <= 1)


def test_values_are_bounded_and_axes_are_of_unit_variance():
    draws = first()
    functions = StateFunctions(("a", "k", "c", "log density"), draws, 3)
    wild = np.array([[np.inf, -1e200, 5.0, -np.inf], [-1e300, 0.0, 0.0, 0.0]])
    assert np.isfinite(functions.smooth(wild)).all() and (np.abs(functions.scores(wild)) <= 3.0).all()
    axes = [label.quantity[:4] == "axis" and label.function == "x" for label in functions.smooth_labels]
    along = functions.smooth(draws)[:, axes]
    np.testing.assert_allclose(np.cov(along, rowvar=False), np.eye(2), atol=1e-9)


def test_many_columns_have_few_pairs():
    draws = np.random.default_rng(2).normal(size=(400, 30))
    functions = StateFunctions([f"x{i}" for i in range(30)], draws, 30)
    assert len(functions.pairs) <= 120 and len({i for pair in functions.pairs for i in pair}) == 30


def test_errors():
    with pytest.raises(InvalidArgumentError, match="first must have shape"):
        StateFunctions(("a",), np.zeros((5, 2)), 1)
    with pytest.raises(InvalidArgumentError, match="NaN"):
        StateFunctions(("a",), np.full((5, 1), np.nan), 1)


def test_thresholds_split_the_draws():
    values = np.repeat(np.arange(12.0), [1] * 6 + [400] * 6)
    functions = StateFunctions(("k",), values[:, None], 1)
    shares = functions.indicators(values[:, None]).mean(axis=0)
    assert len(shares) and ((shares > 0.0) & (shares < 1.0)).all()
