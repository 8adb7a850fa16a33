"""Cholesky factors of many small matrices at once: with five rows LAPACK takes longer to begin than to compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bread.paths.mixture import FloatArray


@dataclass(frozen=True)
class CholeskyFactors:
    """Lower triangular L of matrices ``L L'``.

    Attributes
    ----------
    lower : ndarray, shape (k, k, n)
        L of each of n matrices; the identity where there is none.
    is_positive : ndarray of bool, shape (n,)
        Whether the matrix is numerically positive definite.
    """

    lower: FloatArray
    is_positive: NDArray[np.bool_]

    @property
    def log_volumes(self) -> FloatArray:
        """Log determinants of L, shape (n,)."""
        return np.asarray(np.log(np.einsum("kkn->kn", self.lower)).sum(axis=0))

    def where(self, is_kept: NDArray[np.bool_]) -> CholeskyFactors:
        """Return these where they are kept, shape (n,), and else the identity, of no positive definite matrix."""
        lower = np.where(is_kept, self.lower, np.eye(len(self.lower))[:, :, None])
        return CholeskyFactors(lower, self.is_positive & is_kept)

    def times(self, x: FloatArray) -> FloatArray:
        """Return L x, shape (k, n)."""
        return np.asarray(np.einsum("kln,ln->kn", self.lower, x))

    def transposed_times(self, x: FloatArray) -> FloatArray:
        """Return L' x, shape (k, n)."""
        return np.asarray(np.einsum("lkn,ln->kn", self.lower, x))

    def solve(self, b: FloatArray) -> FloatArray:
        """Return x of ``L L' x = b``, shape (k, n)."""
        x = b.copy()
        for j, row in enumerate(self.lower):
            x[j] = (x[j] - (row[:j] * x[:j]).sum(axis=0)) / row[j]
        return self.solve_transposed(x)

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return x of ``L' x = b``, shape (k, n)."""
        x = b.copy()
        for j in reversed(range(len(x))):
            x[j] = (x[j] - (self.lower[j + 1 :, j] * x[j + 1 :]).sum(axis=0)) / self.lower[j, j]
        return x

    def inverses(self) -> FloatArray:
        """Return the inverses of the matrices, shape (k, k, n)."""
        inverse = np.zeros_like(self.lower)
        for j, row in enumerate(self.lower):
            inverse[j, j] = 1.0 / row[j]
            inverse[j, :j] = -np.einsum("ln,lkn->kn", row[:j], inverse[:j, :j]) * inverse[j, j]
        return np.asarray(np.einsum("lkn,ljn->kjn", inverse, inverse))


def cholesky_of(matrices: FloatArray) -> CholeskyFactors:
    """Return the factors of matrices, shape (k, k, n), of which only the lower triangles are read."""
    lower = np.zeros_like(matrices)
    is_positive = np.ones(matrices.shape[-1], dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):
        for j, row in enumerate(lower):
            square = matrices[j, j] - (row[:j] * row[:j]).sum(axis=0)
            is_usable = (square > 0.0) & np.isfinite(square)
            is_positive &= is_usable
            row[j] = np.sqrt(np.where(is_usable, square, 1.0))
            below = matrices[j + 1 :, j] - np.einsum("akn,kn->an", lower[j + 1 :, :j], row[:j])
            lower[j + 1 :, j] = below / row[j]
    factors = CholeskyFactors(lower, is_positive)
    return factors if is_positive.all() else factors.where(is_positive)
