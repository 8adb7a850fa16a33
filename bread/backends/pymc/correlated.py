"""Metrics of PyMC's gradient steps whose correlations are given, and whose variances are frozen or adapted.

The inverse metric is ``S R S``: ``S`` the standard deviations that PyMC's diagonal metrics hold, ``R`` the given
correlation matrix. A velocity is ``S R S p``, and a momentum is drawn as ``inv(S) inv(L).T z``, where ``R = L L.T``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag, QuadPotentialDiagAdapt

from bread.backends.base import FloatArray


class Correlation:
    """A correlation matrix in the order of a position.

    Attributes
    ----------
    matrix : ndarray, shape (dim, dim)
        R.
    whitening : ndarray, shape (dim, dim)
        ``inv(L).T``, where ``R = L L.T``.
    """

    def __init__(self, matrix: FloatArray, dtype: Any) -> None:
        self.matrix = matrix.astype(dtype)
        self.whitening = np.linalg.inv(np.linalg.cholesky(matrix)).T.astype(dtype)


class _Correlated:
    """What both kinds share; ``deviations`` returns the diagonal of S."""

    correlation: Correlation

    def deviations(self) -> FloatArray:
        raise NotImplementedError

    def velocity(self, x: FloatArray, out: FloatArray | None = None) -> FloatArray | None:
        """Return the velocity of a momentum, or put it into ``out``."""
        found = self._velocity(x)
        if out is None:
            return found
        out[:] = found
        return None

    def energy(self, x: FloatArray, velocity: FloatArray | None = None) -> Any:
        """Return the kinetic energy of a momentum."""
        return 0.5 * np.dot(x, self._velocity(x) if velocity is None else velocity)

    def _velocity(self, x: FloatArray) -> FloatArray:
        scale = self.deviations()
        found: FloatArray = self.correlation.matrix @ (scale * x)
        found *= scale
        return found

    def velocity_energy(self, x: FloatArray, v_out: FloatArray) -> Any:
        """Put the velocity of a momentum into ``v_out``, and return its kinetic energy."""
        self.velocity(x, out=v_out)
        return 0.5 * np.dot(x, v_out)

    def random(self) -> FloatArray:
        """Draw a momentum."""
        scale, rng = self.deviations(), self.rng  # type: ignore[attr-defined]
        normal = rng.normal(size=len(scale)).astype(scale.dtype)
        found: FloatArray = (self.correlation.whitening @ normal) / scale
        return found


class FrozenMetric(_Correlated, QuadPotentialDiag):
    """Given correlations, and variances that stay."""

    def __init__(self, variance: FloatArray, correlation: Correlation, dtype: Any) -> None:
        super().__init__(variance, dtype=dtype)
        self.correlation = correlation

    def deviations(self) -> FloatArray:
        """Return the diagonal of S, shape (dim,)."""
        found: FloatArray = self.s
        return found


class AdaptedMetric(_Correlated, QuadPotentialDiagAdapt):
    """Given correlations, and variances that PyMC adapts."""

    def __init__(self, correlation: Correlation, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.correlation = correlation

    def deviations(self) -> FloatArray:
        """Return the diagonal of S, shape (dim,)."""
        found: FloatArray = self._stds
        return found
