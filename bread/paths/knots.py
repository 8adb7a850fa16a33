"""Log ratios along long chains, at fewer inverse temperatures: averages that keep both ends and the integral.

A weight of a chain uses every one of its T log ratios; what is read from them later (the means along the path, where
the gap arises, the thermodynamic integral, the ends) needs fewer. Averages over hats do not change the integral by
trapezia, so that memory does not grow with T.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_KNOTS = 1024  # kept of a chain

FloatArray = NDArray[np.float64]


def kept_knots(n_temperatures: int) -> NDArray[np.int64]:
    """Return the positions of the inverse temperatures that are kept: all of a few, else even ones.

    The first two and the last two are among them, so that the ends are averages over themselves alone.
    """
    if n_temperatures <= MOST_KNOTS:
        return np.arange(n_temperatures)
    inner = np.round(np.linspace(1, n_temperatures - 2, MOST_KNOTS - 2)).astype(np.int64)
    return np.concatenate([[0], inner, [n_temperatures - 1]])


def at_kept_knots(betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
    """Return averages of log ratios at `kept_knots`; those of both ends stay as they are.

    That of knot j is weighted by a hat: 1 at beta_j, 0 at the kept knots beside it, and straight between, times the
    weights of the trapezium rule. So the integral by trapezia over kept knots is that over all.

    Parameters
    ----------
    betas : ndarray, shape (T,)
    log_ratio : ndarray, shape (chain, T)
        In nats; what is not finite makes the averages that it enters -inf or NaN.

    Returns
    -------
    ndarray, shape (chain, min(T, MOST_KNOTS))
    """
    kept = kept_knots(len(betas))
    if len(kept) == len(betas):
        return log_ratio
    steps = np.diff(betas)
    widths = np.concatenate([steps, [0.0]]) + np.concatenate([[0.0], steps])  # twice the weights of the trapezium rule
    cell = np.searchsorted(kept, np.arange(len(betas)), side="right") - 1
    cell[-1] = len(kept) - 2
    share = (betas - betas[kept[cell]]) / (betas[kept[cell + 1]] - betas[kept[cell]])
    found = np.zeros((len(log_ratio), len(kept)))
    total = np.zeros(len(kept))
    for hat, weight in ((cell, widths * (1.0 - share)), (cell + 1, widths * share)):
        used = weight > 0.0  # nothing times minus infinity is nothing here
        total += np.bincount(hat[used], weight[used], len(kept))
        for row, values in zip(found, log_ratio, strict=True):
            row += np.bincount(hat[used], weight[used] * values[used], len(kept))
    found /= total
    found[:, [0, -1]] = log_ratio[:, [0, -1]]  # to the last bit
    return found
