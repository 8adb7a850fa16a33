"""Cholesky factors of many small matrices, against NumPy's of each."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from bread.paths.small_matrices import cholesky_of


def some(k, n=9):
    """Positive definite matrices, shape (k, k, n), not near the identity."""
    root = default_rng(k).normal(size=(n, k, k + 2))
    return np.moveaxis(root @ np.swapaxes(root, 1, 2), 0, -1)


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_factors_solutions_and_inverses_are_those_of_each_matrix(k):
    matrices, x = some(k), default_rng(0).normal(size=(k, 9))
    garbled = matrices + np.triu(np.ones((k, k)), 1)[:, :, None]
    for found in (cholesky_of(matrices), cholesky_of(garbled)):  # only lower triangles are read
        assert found.is_positive.all()
        solved, transposed, inverses = found.solve(x), found.solve_transposed(x), found.inverses()
        for i in range(9):
            lower = np.linalg.cholesky(matrices[:, :, i])
            np.testing.assert_allclose(found.lower[:, :, i], lower, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(solved[:, i], np.linalg.solve(matrices[:, :, i], x[:, i]), rtol=1e-9)
            np.testing.assert_allclose(transposed[:, i], np.linalg.solve(lower.T, x[:, i]), rtol=1e-9)
            np.testing.assert_allclose(inverses[:, :, i], np.linalg.inv(matrices[:, :, i]), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.times(x)[:, i], lower @ x[:, i], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(found.transposed_times(x)[:, i], lower.T @ x[:, i], rtol=1e-12, atol=1e-12)
            assert found.log_volumes[i] == pytest.approx(np.log(np.diag(lower)).sum())


@pytest.mark.parametrize("wrong", ["negative", "singular", "infinite", "missing"])
def test_where_there_is_none_it_is_the_identity_and_the_others_are_right(wrong):
    matrices = some(3)
    matrices[1, 1, 4] = {"negative": -1.0, "singular": matrices[1, 0, 4] ** 2 / matrices[0, 0, 4] - 1e-9,
                         "infinite": np.inf, "missing": np.nan}[wrong]  # fmt: skip
    found, right = cholesky_of(matrices), cholesky_of(some(3))
    np.testing.assert_array_equal(found.is_positive, np.arange(9) != 4)
    np.testing.assert_array_equal(found.lower[:, :, 4], np.eye(3))
    others = np.arange(9) != 4
    np.testing.assert_array_equal(found.lower[:, :, others], right.lower[:, :, others])
    fewer = right.where(np.arange(9) != 2)
    np.testing.assert_array_equal(fewer.lower[:, :, 2], np.eye(3))
    assert not fewer.is_positive[2] and fewer.is_positive.sum() == 8
