"""Coordinates in which the prior is about normal, from draws of it."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from bread.backends.base import FloatArray
from bread.paths.normalised import SinhArcsinh

SHARES = (np.arange(50) + 0.5) / 50  # of draws that are below the quantiles which are matched
SKEWS, TAILS = np.linspace(-1.5, 1.5, 31), np.geomspace(0.4, 1.6, 21)  # that are tried: as near as 1000 draws tell
FARTHEST = 8.0  # standard deviations a draw may be from the middle, where 1000 normal ones are 3.2
PLAIN = 0.1  # standard deviations, root mean square; quantiles of 1000 normal draws miss theirs by 0.03, of 400 by 0.05


def normal_coordinates(draws: FloatArray) -> SinhArcsinh | None:
    """Return transforms to normal laws of the coordinates whose own law is not.

    Parameters
    ----------
    draws : ndarray, shape (n, dim)
        From the prior.

    Returns
    -------
    SinhArcsinh or None
        None where a coordinate has tails that no such transform makes normal, as those of a Cauchy prior.
    """
    quantiles = np.quantile(draws, SHARES, axis=0)
    middle, spread = quantiles.mean(axis=0), quantiles.std(axis=0)
    places, normal = np.flatnonzero(spread > 0.0), ndtri(SHARES)
    away = (quantiles[:, places] - middle[places]) / spread[places]
    is_other = _missed(normal[None], away)[0] > PLAIN
    places, away = places[is_other], away[:, is_other]
    skew, tail = (one.ravel() for one in np.meshgrid(SKEWS, TAILS))
    shapes = np.sinh((np.arcsinh(normal) + skew[:, None]) / tail[:, None])
    best = _missed(shapes, away).argmin(axis=0)
    scale = spread[places] / shapes[best].std(axis=1)
    location = middle[places] - scale * shapes[best].mean(axis=1)
    found = SinhArcsinh(places, location, scale, skew[best], tail[best])
    changed = found.forward(draws)
    middle[places], spread[places] = 0.0, 1.0
    return found if (np.abs(changed - middle) <= FARTHEST * spread).all() else None


def _missed(shapes: FloatArray, away: FloatArray) -> FloatArray:
    """Return by how much quantiles of each shape miss those of each coordinate, root mean square.

    All are moved and scaled to mean 0 and deviation 1.

    Parameters
    ----------
    shapes : ndarray, shape (k, share)
    away : ndarray, shape (share, m)
        Of mean 0 and deviation 1.

    Returns
    -------
    ndarray, shape (k, m)
    """
    alike = (shapes - shapes.mean(axis=1, keepdims=True)) / shapes.std(axis=1, keepdims=True)
    return np.asarray(np.sqrt(np.maximum(2.0 - 2.0 * alike @ away / len(away), 0.0)))
