"""Correlations of a reference, as a kernel's dense metric takes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bread.fitting.gaussian.correlations import DRAWS, LARGEST_DIM, STRONG, correlation_of, is_strong
from bread.paths.mixture import diagonal, gaussian

WIDTHS = np.array([0.01, 3.0, 200.0])
CORRELATION = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, -0.1], [-0.3, -0.1, 1.0]])
NORMAL = gaussian(np.array([5.0, 0.0, -1e3]), CORRELATION * np.outer(WIDTHS, WIDTHS))


def test_correlations_of_a_normal_law_are_found_whatever_the_units() -> None:
    """To five standard errors, and what the clipping of the outermost draws takes: one percent."""
    found = correlation_of(NORMAL)
    assert found is not None
    np.testing.assert_allclose(found, CORRELATION, atol=5.0 / np.sqrt(DRAWS) + 0.01)
    np.testing.assert_array_equal(np.diag(found), 1.0)
    np.testing.assert_array_equal(found, correlation_of(NORMAL))


def test_far_draws_of_a_heavy_tail_do_not_decide() -> None:
    """A scale mixture of Cauchy's kind has no covariance; its shape is seen all the same."""
    heavy = replace(NORMAL, components=(replace(NORMAL.components[0], degrees=np.array([1.0, 1.0, 1.0])),))
    found = correlation_of(heavy)
    assert found is not None and abs(found[0, 1] - 0.8) < 0.25
    raw = np.corrcoef(heavy.sample(DRAWS, np.random.default_rng(0)), rowvar=False)
    assert abs(raw[0, 1] - 0.8) > 0.05 or abs(raw[0, 2] + 0.3) > 0.05, "the tail is heavy"


def test_no_matrix_where_it_would_say_little() -> None:
    several = replace(NORMAL, components=NORMAL.components * 2, weights=np.array([0.5, 0.5]))
    assert correlation_of(several) is None, "distances between modes are no shape"
    assert correlation_of(diagonal(np.zeros(1), np.ones(1))) is None
    assert correlation_of(diagonal(np.zeros(LARGEST_DIM + 1), np.ones(LARGEST_DIM + 1))) is None
    still = replace(NORMAL.components[0], matrix=None, scale=np.array([1e-30, 1.0, 1.0]))
    assert correlation_of(replace(NORMAL, components=(still,))) is None, "a coordinate does not vary"


@pytest.mark.parametrize("dim", [2, 20, LARGEST_DIM])
def test_independent_coordinates_are_never_called_strongly_correlated(dim: int) -> None:
    """The matrix of so few draws is noisy; the bound leaves room for that up to the largest dimension."""
    found = correlation_of(diagonal(np.zeros(dim), np.ones(dim)))
    assert found is not None and not is_strong(found)


def test_strong_is_a_condition_number() -> None:
    """Two coordinates of correlation r: (1 + r) / (1 - r)."""
    bound = (STRONG**2 - 1.0) / (STRONG**2 + 1.0)
    for r, expected in ((bound - 0.001, False), (bound + 0.001, True), (-bound - 0.001, True)):
        assert is_strong(np.array([[1.0, r], [r, 1.0]])) is expected
