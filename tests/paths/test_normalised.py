"""Sinh-arcsinh transforms of single coordinates: inverse, slopes, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from bread.paths.normalised import SinhArcsinh

CHANGED = SinhArcsinh(
    np.array([0, 2]), np.array([0.3, -1.0]), np.array([0.5, 2.0]), np.array([-0.4, 0.9]), np.array([0.7, 1.3])
)
STATES = np.random.default_rng(1).normal(0.0, 3.0, (50, 4))


def test_one_way_and_back_is_where_it_began():
    g = CHANGED.forward(STATES)
    np.testing.assert_allclose(CHANGED.backward(g), STATES)
    np.testing.assert_array_equal(g[:, [1, 3]], STATES[:, [1, 3]])
    assert np.abs(g[:, [0, 2]] - STATES[:, [0, 2]]).max() > 1.0


def test_slopes_are_those_of_differences():
    step = 1e-6
    slopes, of_logs = CHANGED.slopes(STATES)
    higher, lower = (CHANGED.forward(STATES + sign * step)[:, [0, 2]] for sign in (1, -1))
    np.testing.assert_allclose(slopes, (higher - lower) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(CHANGED.log_slope(STATES), np.log(slopes).sum(axis=1))
    more, less = (np.log(CHANGED.slopes(STATES + sign * step)[0]) for sign in (1, -1))
    np.testing.assert_allclose(of_logs, (more - less) / (2 * step), atol=1e-6)


def test_no_coordinate_may_be_changed():
    none = SinhArcsinh.of_none()
    np.testing.assert_array_equal(none.forward(STATES), STATES)
    np.testing.assert_array_equal(none.log_slope(STATES), 0.0)
    assert none.slopes(STATES)[0].shape == (50, 0)


@pytest.mark.parametrize("far", [1e3, -1e3, 1e150])
def test_slopes_far_out_do_not_overflow(far):
    assert np.isfinite(CHANGED.log_slope(np.full((1, 4), far))).all()
