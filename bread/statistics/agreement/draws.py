"""Two sets of draws of the same quantities, one autocorrelated and one independent: checked and put in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray

MINIMUM_EFFECTIVE = 100.0  # below, a 5% quantile rests on fewer than five effective draws
ROUNDING = 1e-8  # values closer than this, relative to their size, are one value


class Sufficiency(NamedTuple):
    """Result of `effective_draws_suffice`.

    Attributes
    ----------
    suffices : bool
        Whether every quantity has at least `MINIMUM_EFFECTIVE` effective draws.
    fewest : float
        The smallest effective sample size; NaN where one is not known.
    row : int
        Which quantity has it.
    """

    suffices: bool
    fewest: float
    row: int


def effective_draws_suffice(n_effective: ArrayLike) -> Sufficiency:
    """Return whether there are enough effective draws to be compared at all: 100 of every quantity.

    Fewer are not compared: four chains of ten draws agree with almost anything.

    Parameters
    ----------
    n_effective : array_like, shape (d,) or (d, n_quantiles)
        Effective sample sizes of the user's draws. NaN counts as too few: it is what a size that cannot be
        estimated looks like.

    Returns
    -------
    Sufficiency

    Raises
    ------
    InvalidArgumentError
        If there is no size, or one is negative.
    """
    sizes = np.asarray(n_effective, dtype=np.float64)
    if sizes.size == 0 or sizes.ndim not in (1, 2):
        raise InvalidArgumentError(f"n_effective must have shape (d,) or (d, n_quantiles), but got {sizes.shape}.")
    if (sizes < 0.0).any():
        raise InvalidArgumentError(f"n_effective must be 0 or more, but got {sizes.min()}.")
    smallest = sizes if sizes.ndim == 1 else sizes.min(axis=1)  # min keeps NaN
    row = int(np.argmin(smallest))  # argmin prefers NaN
    fewest = float(smallest[row])
    return Sufficiency(fewest >= MINIMUM_EFFECTIVE, fewest, row)


def as_columns(user: ArrayLike, annealed: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the user's draws, chains joined, and the annealed draws as (draw, quantity) columns, checked.

    Parameters
    ----------
    user : array_like, shape (chain, draw, d) or (draw, d)
    annealed : array_like, shape (n, d)

    Returns
    -------
    user : ndarray, shape (n_user, d)
    annealed : ndarray, shape (n, d)

    Raises
    ------
    InvalidArgumentError
        If the shapes do not match, there is no draw or no quantity, or a draw is not finite.
    """
    ours, theirs = np.asarray(user, dtype=np.float64), np.asarray(annealed, dtype=np.float64)
    if ours.ndim not in (2, 3) or theirs.ndim != 2 or ours.shape[-1] != theirs.shape[-1]:
        raise InvalidArgumentError(
            f"user must have shape (chain, draw, d) or (draw, d) and annealed (n, d), with equal d, but got "
            f"{ours.shape} and {theirs.shape}."
        )
    if ours.size == 0 or theirs.size == 0:
        raise InvalidArgumentError(f"user and annealed must hold draws, but got {ours.shape} and {theirs.shape}.")
    for label, values in (("user", ours), ("annealed", theirs)):
        if not np.isfinite(values).all():
            raise InvalidArgumentError(
                f"{label} must be finite, but {int((~np.isfinite(values)).sum())} of {values.size} values are not. "
                "Leave out chains that failed, and say so."
            )
    return ours.reshape(-1, ours.shape[-1]), theirs


def as_sizes(n_effective: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return effective sizes as (d, n_quantiles), one a quantity being repeated; they must be positive."""
    sizes = np.asarray(n_effective, dtype=np.float64)
    if sizes.shape == shape[:1]:
        sizes = np.broadcast_to(sizes[:, None], shape)
    if sizes.shape != shape or not (sizes > 0.0).all():
        raise InvalidArgumentError(
            f"n_effective must be positive and have shape {shape[:1]} or {shape}, but got shape {sizes.shape} with "
            f"{int((~(sizes > 0.0)).sum())} values that are not positive."
        )
    return sizes


def are_constant(user: FloatArray, annealed: FloatArray) -> NDArray[np.bool_]:
    """Return for each column whether all draws of both are one value up to rounding.

    Such is the diagonal of a correlation matrix: its last digits say nothing.
    """
    highest = np.maximum(user.max(axis=0), annealed.max(axis=0))
    lowest = np.minimum(user.min(axis=0), annealed.min(axis=0))
    return np.asarray(highest - lowest <= ROUNDING * np.maximum(np.abs(highest), np.abs(lowest)), dtype=np.bool_)
