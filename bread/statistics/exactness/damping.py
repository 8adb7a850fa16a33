"""How a function of the score test depends on coordinates by which it is not differentiated.

It is damped where they make the gradient large, and zero outside of the box of most draws. Both are set with the first
draws, on which nothing is tested.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bread.statistics.bounds.bounds import FloatArray

MAD_TO_SD = 1.4826
N_OTHERS = 10
BOX = 0.98  # share of draws within the box
N_DAMPING = 3  # coordinates that may damp f
DAMPING_THRESHOLD = 4.5  # standard errors of a correlation


def log_damping_of(z: FloatArray, s: FloatArray, n_first: int, is_stein: bool) -> FloatArray:
    """Return log of a factor of f, at most 0: minus the size of log |s_i| that the other coordinates explain.

    A regression on the few columns, and their absolute values, that are plainly correlated. f may depend on the own
    coordinate only where it is not differentiated.
    """
    d, c = s.shape[1], z.shape[1]
    features = np.concatenate([z, np.abs(z)], axis=1)
    first = features[:n_first] - features[:n_first].mean(axis=0)
    size = np.abs(s[:n_first])
    seen = np.isfinite(size) & (size > 0.0)
    u = np.log(np.where(seen, size, np.nan))
    u = u - np.array([median_of_finite(column) for column in u.T])
    u = np.clip(np.nan_to_num(u, nan=0.0), -5.0, 50.0)  # a gradient that happens to be near 0 says nothing
    u = u - u.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.abs(np.nan_to_num((u.T @ first) / np.outer(u.std(axis=0), first.std(axis=0)) / n_first))
    if is_stein:
        correlation[np.arange(d), np.arange(d)] = correlation[np.arange(d), c + np.arange(d)] = 0.0
    damping = np.zeros((len(z), d))
    for i in np.flatnonzero(seen.sum(axis=0) >= n_first // 2):
        order = np.argsort(-correlation[i], kind="stable")[:N_DAMPING]
        chosen = order[correlation[i, order] > DAMPING_THRESHOLD / np.sqrt(n_first)]
        if chosen.size:
            explained = features[:, chosen] @ np.linalg.lstsq(first[:, chosen], u[:, i], rcond=None)[0]
            damping[:, i] = -np.maximum(explained - np.median(explained[:n_first]), 0.0)
    return damping


def within_box(z: FloatArray, n_first: int, d: int, is_stein: bool) -> NDArray[np.bool_]:
    """Return (n, d) whether the coordinates (Stein's identity: all but the own one) are as near as in most draws."""
    far = np.abs(z)
    limit = np.quantile(far[:n_first].max(axis=1, initial=0.0), BOX)
    n_out = (far > limit).sum(axis=1, keepdims=True)
    own_out = (far[:, :d] > limit) & is_stein
    return np.asarray(n_out - own_out == 0, dtype=np.bool_)


def other_columns(d: int, n_columns: int) -> NDArray[np.int64]:
    """Return for each coordinate at most ten other columns, evenly spread over coordinates and over the context."""
    n_context = n_columns - d
    n_own = min(d - 1, N_OTHERS - min(n_context, N_OTHERS // 2))
    n_more = min(n_context, N_OTHERS - n_own)
    steps = 1 + np.arange(n_own) * (d - 1) // max(n_own, 1)
    more = d + np.arange(n_more) * n_context // max(n_more, 1)
    own = (np.arange(d)[:, None] + steps) % d
    return np.concatenate([own, np.tile(more, (d, 1))], axis=1).astype(np.int64)


def location_and_scale(first: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return median and scaled median deviation of each column of the first draws, (d,) each; NaN counts as absent."""
    location = np.array([median_of_finite(column) for column in first.T])
    spread = np.array([median_of_finite(column) for column in np.abs(first - location).T])
    return location, MAD_TO_SD * spread


def median_of_finite(column: FloatArray) -> float:
    """Return the median of the finite values; 0 without any."""
    finite = column[np.isfinite(column)]
    return float(np.median(finite)) if finite.size else 0.0
