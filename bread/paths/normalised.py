"""Transforms of single coordinates to ones in which the prior is about normal.

Of a scale that data say little of, the posterior is much like the prior, and the logarithm of a half-normal one, say,
has a long lower tail. Where data say much, the law is narrow, and about normal in any smooth coordinate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.paths.mixture import FloatArray


class SinhArcsinh(NamedTuple):
    """Transforms ``g = sinh(tail arcsinh((x - location) / scale) - skew)`` of some coordinates (Jones & Pewsey 2009).

    Attributes
    ----------
    places : ndarray of int, shape (m,)
        The coordinates; all others are as they are.
    location, scale, skew, tail : ndarray, shape (m,)
        ``tail`` is below 1 where the tails of x are longer than those of g.
    """

    places: NDArray[np.intp]
    location: FloatArray
    scale: FloatArray
    skew: FloatArray
    tail: FloatArray

    @classmethod
    def of_none(cls) -> SinhArcsinh:
        """Return the transform that changes no coordinate."""
        none = np.empty(0)
        return cls(np.empty(0, dtype=np.intp), none, none, none, none)

    def forward(self, x: FloatArray) -> FloatArray:
        """Return g, shape ``x.shape``."""
        g = x.copy()
        g[..., self.places] = np.sinh(self._angle(x))
        return g

    def backward(self, g: FloatArray) -> FloatArray:
        """Return x, shape ``g.shape``."""
        x = g.copy()
        angle = (np.arcsinh(g[..., self.places]) + self.skew) / self.tail
        x[..., self.places] = self.location + self.scale * np.sinh(angle)
        return x

    def log_slope(self, x: FloatArray) -> FloatArray:
        """Return log dg / dx, summed over coordinates, shape ``x.shape[:-1]``."""
        y, angle = self._away(x), self._angle(x)
        log_cosh = np.logaddexp(angle, -angle) - np.log(2.0)
        return np.asarray((log_cosh - 0.5 * np.log1p(y * y) + np.log(self.tail / self.scale)).sum(axis=-1))

    def slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dg / dx and d log(dg / dx) / dx at the coordinates that are changed, each (..., m)."""
        y, angle = self._away(x), self._angle(x)
        by_x = self.tail / (self.scale * np.sqrt(1.0 + y * y))  # of the angle
        return np.cosh(angle) * by_x, np.tanh(angle) * by_x - y / (self.scale * (1.0 + y * y))

    def _away(self, x: FloatArray) -> FloatArray:
        return np.asarray((x[..., self.places] - self.location) / self.scale)

    def _angle(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.tail * np.arcsinh(self._away(x)) - self.skew)
