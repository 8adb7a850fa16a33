"""Where along the path a gap is made."""

import numpy as np
import pytest

from bread.reading.sentences.gap import gap_increments, gap_location


def test_gap_increments_sum_to_the_gap():
    rng = np.random.default_rng(1)
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    forward, reverse = rng.normal(size=(5, 4)), rng.normal(size=(2, 3, 4)) + 1.0
    weights = [np.sum(np.diff(betas) * values.reshape(-1, 4)[:, :-1], axis=1).mean() for values in (forward, reverse)]
    assert gap_increments(betas, forward, reverse).sum() == pytest.approx(weights[1] - weights[0])


def test_gap_location_is_where_half_of_the_gap_lies():
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    forward = np.zeros((1, 4))
    assert gap_location(betas, forward, np.array([[10.0, 0.0, 0.0, 9.0]])) == pytest.approx(0.05)
    assert gap_location(betas, forward, np.array([[0.0, 0.0, 1.0, 9.0]])) == pytest.approx(0.7)
    assert gap_location(betas, forward, np.array([[0.0, 1.0, 0.5, 0.0]])) == pytest.approx(0.4)
    assert np.isnan(gap_location(betas, forward, -np.ones((1, 4))))
    assert gap_location(betas, np.array([[0.0, -np.inf, 0.0, 0.0]]), np.ones((1, 4))) == pytest.approx(0.1)
    assert np.isnan(gap_location(betas, np.full((1, 4), np.nan), np.ones((1, 4))))
