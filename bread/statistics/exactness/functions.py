"""Functions of a state by which laws are compared: bounded, free of units, set by draws on which nothing is tested."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.normal_scores import normal_scores

QUANTILES = (0.02, 0.1, 0.5, 0.9, 0.98)
MOST_VALUES = 8  # of a discrete column, each of which is a threshold
PAIRS_A_COLUMN = 4
ROUNDING = 1e-9  # a column that varies less, relative to its size, is constant
DECIMALS = 9
NARROWEST = 1e-4  # variance of an axis, relative to the widest
EVERYTHING = "all coordinates"


class Label(NamedTuple):
    """What a function is of, and which."""

    quantity: str
    function: str


class StateFunctions:
    """Smooth functions and indicators of the columns of a table of states.

    *Smooth*: the normal score x of each column, x^2, products of pairs of the first ``n_paired`` columns, means of x
    and of x^2 over them, which see a small defect that all share, and x and x^2 along principal axes of their scores,
    which see a defect across a narrow ridge. *Indicators*: whether a column is at most a quantile,
    or at most each of its values where it is discrete and has few.

    Parameters
    ----------
    names : sequence of str, length C
    first : array_like, shape (m, C)
        Independent draws that set scores and thresholds. Infinite is allowed, NaN is not.
    n_paired : int
        Columns that enter pairs and sums: coordinates, not their log density.

    Attributes
    ----------
    smooth_labels, indicator_labels : tuple of Label
    is_used : ndarray of bool, shape (C,)
        False: the column is constant.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match, or NaN.
    """

    def __init__(self, names: Sequence[str], first: ArrayLike, n_paired: int) -> None:
        self._first = np.asarray(first, dtype=np.float64)
        if self._first.ndim != 2 or self._first.shape[1] != len(names) or np.isnan(self._first).any():
            raise InvalidArgumentError(
                f"first must have shape (m, {len(names)}) and no NaN, but has {self._first.shape} and "
                f"{int(np.isnan(self._first).sum())} NaN."
            )
        self.is_used = np.array([_varies(column) for column in self._first.T], dtype=np.bool_)
        self._used = np.flatnonzero(self.is_used)
        paired = [int(i) for i in self._used if i < n_paired]
        self._paired = np.array(paired, dtype=np.int64)
        pairs = list(combinations(paired, 2))
        if len(pairs) > PAIRS_A_COLUMN * len(paired):
            steps = 1 + np.arange(PAIRS_A_COLUMN) * (len(paired) - 1) // (2 * PAIRS_A_COLUMN)
            ring = {(k, (k + int(step)) % len(paired)) for k in range(len(paired)) for step in steps}
            pairs = sorted({(paired[min(pair)], paired[max(pair)]) for pair in ring})
        self._left = np.array([i for i, _ in pairs], dtype=np.int64)
        self._right = np.array([j for _, j in pairs], dtype=np.int64)
        self.pairs = tuple(pairs)
        self._axes = self._principal_axes()
        self.smooth_labels = (
            *(Label(names[i], "x") for i in self._used.tolist()),
            *(Label(names[i], "x^2") for i in self._used.tolist()),
            *(Label(f"{names[i]}, {names[j]}", "x y") for i, j in pairs),
            *((Label(EVERYTHING, "x"), Label(EVERYTHING, "x^2")) if len(paired) > 1 else ()),
            *(Label(f"axis {k + 1}", function) for function in ("x", "x^2") for k in range(self._axes.shape[1])),
        )
        columns: list[int] = []
        thresholds: list[float] = []
        labels: list[Label] = []
        for i in self._used.tolist():
            for threshold, text in _thresholds(self._first[:, i]):
                columns.append(i)
                thresholds.append(threshold)
                labels.append(Label(names[i], text))
        self._columns, self._thresholds = np.array(columns, dtype=np.int64), np.array(thresholds)
        self.indicator_labels = tuple(labels)

    def _principal_axes(self) -> FloatArray:
        """Return combinations of scores of unit variance, uncorrelated in the draws that set them; widest first."""
        d = len(self._paired)
        if d < 2:
            return np.empty((d, 0))
        covariance = np.atleast_2d(np.cov(normal_scores(self._first, self._first)[:, self._paired], rowvar=False))
        sizes, axes = np.linalg.eigh(covariance)
        wide = np.flatnonzero(sizes > NARROWEST * sizes[-1])[::-1]
        return np.asarray(axes[:, wide] / np.sqrt(sizes[wide]), dtype=np.float64)

    def scores(self, states: ArrayLike) -> FloatArray:
        """Return the normal scores of all columns, shape (..., C); 0 where a column is constant."""
        values = np.asarray(states, dtype=np.float64)
        flat = values.reshape(-1, values.shape[-1])
        return np.where(self.is_used, normal_scores(self._first, flat), 0.0).reshape(values.shape)

    def smooth(self, states: ArrayLike) -> FloatArray:
        """Return the smooth functions of states (..., C), shape (..., len(smooth_labels)).

        Rounded to nine decimals, so that one state has one value, however many are computed at a time.
        """
        u = self.scores(states)
        used, paired = u[..., self._used], u[..., self._paired]
        parts = [used, used**2, u[..., self._left] * u[..., self._right]]
        if len(self._paired) > 1:
            along = paired @ self._axes
            parts += [paired.mean(axis=-1, keepdims=True), (paired**2).mean(axis=-1, keepdims=True), along, along**2]
        return np.asarray(np.round(np.concatenate(parts, axis=-1), DECIMALS), dtype=np.float64)

    def indicators(self, states: ArrayLike) -> NDArray[np.int8]:
        """Return 0 or 1, shape (..., len(indicator_labels))."""
        values = np.asarray(states, dtype=np.float64)
        return (values[..., self._columns] <= self._thresholds).astype(np.int8)


def _varies(column: FloatArray) -> bool:
    finite = column[np.isfinite(column)]
    if finite.size < len(column):
        return bool(np.unique(column).size > 1)
    return bool(finite.size and np.ptp(finite) > ROUNDING * (1.0 + np.abs(finite).max()))


def _thresholds(column: FloatArray) -> list[tuple[float, str]]:
    """Return thresholds of a column and what lies at or below them."""
    values = np.unique(column)
    if values.size <= MOST_VALUES:
        return [(float(value), f"x <= {value:g}") for value in values[:-1]]
    quantiles = np.quantile(column, QUANTILES, method="closest_observation")
    below_top = [(value, q) for value, q in zip(quantiles, QUANTILES, strict=True) if value < values[-1]]
    found = {float(value): f"x < q{100 * q:g}" for value, q in below_top}
    return list(found.items())
