"""Where along the path the gap between forward and reverse chains arises."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def gap_increments(inverse_temperature: ArrayLike, forward: ArrayLike, reverse: ArrayLike) -> NDArray[np.float64]:
    """Return what each step of the path adds to the Jeffreys bound, in nats.

    Parameters
    ----------
    inverse_temperature : array_like, shape (knot,)
    forward, reverse : array_like, shape (..., knot)
        Log ratios of the chains up and down the path, in order of inverse temperature. All but the last axis are
        averaged; NaN (unfinished) is left out.

    Returns
    -------
    ndarray, shape (knot - 1,)
        ``(beta_t - beta_{t-1}) (mean reverse - mean forward log ratio at t-1)``; their sum is B.
    """
    betas = np.asarray(inverse_temperature, dtype=np.float64)
    up, down = (_mean_curve(values) for values in (forward, reverse))
    return np.asarray(np.diff(betas) * (down - up)[:-1], dtype=np.float64)


def gap_location(inverse_temperature: ArrayLike, forward: ArrayLike, reverse: ArrayLike) -> float:
    """Return the inverse temperature below which half of the gap arises.

    Parameters
    ----------
    inverse_temperature, forward, reverse : array_like, shape (T,)
        As for `gap_increments`.

    Returns
    -------
    float
        Interpolated within its step. The first step with an infinite gap, where there is one. NaN where the whole
        gap is not positive (nothing to locate).
    """
    betas = np.asarray(inverse_temperature, dtype=np.float64)
    increments = gap_increments(betas, forward, reverse)
    if np.isposinf(increments).any():
        return float(betas[int(np.argmax(np.isposinf(increments)))])
    total = float(increments.sum()) if increments.size else float("nan")
    if not np.isfinite(total) or total <= 0.0:
        return float("nan")
    cumulative = np.cumsum(increments)
    step = int(np.argmax(cumulative >= total / 2.0))
    before = float(cumulative[step - 1]) if step else 0.0
    share = (total / 2.0 - before) / float(increments[step])
    return float(betas[step] + share * (betas[step + 1] - betas[step]))


def _mean_curve(values: ArrayLike) -> NDArray[np.float64]:
    """Average over all axes but the last, NaN left out; NaN where nothing is left."""
    array = np.asarray(values, dtype=np.float64)
    array = array.reshape(-1, array.shape[-1])
    is_there = ~np.isnan(array)
    total = np.where(is_there, array, 0.0).sum(axis=0)
    count = is_there.sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan), dtype=np.float64)
