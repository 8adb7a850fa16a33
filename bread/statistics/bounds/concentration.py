"""Do a few of many values make up most of their sum? Which, and what else sets them apart."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError

MOST = 0.8  # share of the sum that is "most" of it: of exponential values a quarter hold 60%
FEW = 0.25  # share of the values that are "few"


class Carriers(NamedTuple):
    """The values that hold most of a sum.

    Attributes
    ----------
    positions : ndarray of int, shape (k,)
        The fewest values that hold `MOST` of the sum, in increasing order of position; the infinite ones, where there
        are any. Empty where the sum is zero.
    share : float
        Of the sum that they hold; 1 where they are infinite.
    n_values : int
    """

    positions: NDArray[np.int64]
    share: float
    n_values: int

    @property
    def are_few(self) -> bool:
        """Whether they are so few that the mean says little about a typical value."""
        return 0 < len(self.positions) <= FEW * self.n_values


def carriers(values: ArrayLike) -> Carriers:
    """Return which values hold most of the sum of values that are not negative.

    Parameters
    ----------
    values : array_like, shape (n,)
        Not negative; inf is allowed.

    Returns
    -------
    Carriers

    Raises
    ------
    InvalidArgumentError
        A value is negative or NaN.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    if np.isnan(x).any() or (x < 0.0).any():
        raise InvalidArgumentError(f"values must not be negative or NaN, got {x.min() if len(x) else x!r}.")
    infinite = np.flatnonzero(np.isinf(x))
    if len(infinite):
        return Carriers(infinite, 1.0, len(x))
    scaled = x / max(float(x.max(initial=0.0)), 1e-300)  # the sum of huge values must not overflow
    total = float(scaled.sum())
    if not total > 0.0:
        return Carriers(np.empty(0, dtype=np.int64), 0.0, len(x))
    order = np.argsort(-scaled, kind="stable")
    held = np.cumsum(scaled[order]) / total
    n_carrying = min(int(np.searchsorted(held, MOST - 1e-12)) + 1, len(x))
    return Carriers(np.sort(order[:n_carrying]), float(held[n_carrying - 1]), len(x))


def set_apart(values: ArrayLike, positions: ArrayLike, level: float = 0.05) -> tuple[int, bool] | None:
    """Return which column sets some rows apart from all others, and whether they are the large ones; None without one.

    A column does where every one of the chosen rows is above, or every one below, all other rows. Of rows whose
    order says nothing, k of n do so with probability 2 / C(n, k) in one column: nothing is said where the number of
    columns times that is above ``level``.

    Parameters
    ----------
    values : array_like, shape (row, column)
    positions : array_like of int
        The chosen rows.
    level : float
        Most probability of a column by chance.

    Returns
    -------
    column : int
        The first of those that do.
    is_large : bool
    """
    table, chosen = np.asarray(values, dtype=np.float64), np.asarray(positions, dtype=np.int64)
    n_rows, n_columns = table.shape
    if not 0 < len(chosen) < n_rows or 2 * n_columns > level * comb(n_rows, len(chosen)):
        return None
    is_chosen = np.isin(np.arange(n_rows), chosen)
    inside, outside = table[is_chosen], table[~is_chosen]
    large, small = inside.min(axis=0) > outside.max(axis=0), inside.max(axis=0) < outside.min(axis=0)
    found = np.flatnonzero(large | small)
    return (int(found[0]), bool(large[found[0]])) if len(found) else None
