"""Statistics of a node and its replicates, as columns, and their p-values in stages.

Stages save most of the work where nothing is wrong: a few replicates first, more only where some p-value is at most a
threshold t. With p_1 from the first stage, and p_2 from fresh replicates, p = p_1 if p_1 > t, else min(p_2, t). It is
valid at every level: for level >= t, p <= level exactly if p_1 <= level; for level < t it implies p_2 <= level. With p
in the place of p_1 a third stage follows in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.bounds.bounds import FloatArray

STATISTICS = ("total", "extreme", "rank")
TOTAL, EXTREME, RANK = range(3)
FIRST_REPLICATES, SECOND_REPLICATES = 100, 1000  # the third stage has as many as the smallest p-value needs
FIRST_LEVEL, SECOND_LEVEL = 0.1, 0.01  # of a statistic: from there down the next stage follows


class Columns(NamedTuple):
    """Statistics of a node (first row) and its replicates.

    Attributes
    ----------
    values : ndarray, shape (1 + n, column)
        In "extreme" small is extreme.
    statistic : ndarray of int, shape (column,)
        Index into `STATISTICS`.
    """

    values: FloatArray
    statistic: np.ndarray[tuple[int], np.dtype[np.int64]]


def columns(
    values: ArrayLike,
    log_density: ArrayLike | None,
    pointwise: ArrayLike | None,
    spread: tuple[FloatArray, FloatArray] | None,
    *,
    kind: str,
) -> Columns:
    """Return the statistics that tell whether a node looks like its replicates.

    Parameters
    ----------
    values : array_like, shape (1 + n, element)
    log_density : array_like, shape (1 + n,), optional
        Summed log density: "total". Not used for a parameter of one element, whose rank says more.
    pointwise : array_like, shape (1 + n, part), optional
        The smallest is "extreme". Without, it is the largest distance from the centre in units of the scale.
    spread : tuple of ndarray, each (element,), or None
        Centre and scale of each element, from *other* replicates (`centre_and_scale`). Not used with ``pointwise``.
    kind : str
        Of the node. Parameters have a "rank" of each element, in place of "extreme"; predictive nodes "extreme" alone.
    """
    is_parameter = kind == "parameter"
    rows = np.asarray(values, dtype=np.float64)
    parts: list[FloatArray] = []
    kinds: list[int] = []
    if log_density is not None and not (is_parameter and rows.shape[1] == 1):
        parts.append(np.asarray(log_density, dtype=np.float64)[:, None])
        kinds.append(TOTAL)
    if is_parameter:
        parts.append(rows)
        kinds += [RANK] * rows.shape[1]
    elif rows.shape[1] > 1 or kind == "predictive":
        if pointwise is not None:
            extreme = np.min(pointwise, axis=1)
        elif spread is not None:
            extreme = -deviations(rows, spread).max(axis=1)
            extreme = np.where(np.isnan(extreme), -np.inf, extreme)
        else:
            raise InvalidArgumentError(
                f"pointwise or spread says what is extreme, but got pointwise={pointwise!r} and spread={spread!r}. "
                "Give one of them."
            )
        parts.append(extreme[:, None])
        kinds.append(EXTREME)
    return Columns(np.concatenate(parts, axis=1), np.array(kinds, dtype=np.int64))


def n_statistics(kind: str, size: int) -> int:
    """Return how many p-values a node of this kind and size has at most."""
    return 1 if kind == "predictive" or (kind == "parameter" and size == 1) else 2


def centre_and_scale(replicated: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return median and half the central 68% range of each element of replicates (n, element).

    Where that range is empty (a count that is nearly always 0) the standard deviation takes its place.
    """
    rows = np.asarray(replicated, dtype=np.float64)
    low, centre, high = np.quantile(rows, (0.159, 0.5, 0.841), axis=0)
    with np.errstate(invalid="ignore"):
        scale = (high - low) / 2.0
        scale = np.where(scale > 0.0, scale, rows.std(axis=0))
    return centre, scale


def deviations(values: FloatArray, spread: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return how far each element lies from the centre, in units of the scale: without sign; 0 / 0 is 0."""
    centre, scale = spread
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(values - centre)
        return np.asarray(np.where(distance > 0.0, distance / scale, 0.0), dtype=np.float64)


class Tally:
    """Counts of replicates at most, and at least, as large as the node itself, column by column, batch by batch."""

    def __init__(self) -> None:
        self.n = 0
        self._low: FloatArray | float = 0.0
        self._high: FloatArray | float = 0.0

    def add(self, batch: Columns) -> None:
        """Count a batch of replicates; its first row is the node itself."""
        real, replicated = batch.values[0], batch.values[1:]
        self.n += len(replicated)
        self._low = self._low + (replicated <= real).sum(axis=0)
        self._high = self._high + (replicated >= real).sum(axis=0)

    def p_values(self, statistic: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
        """Return the p-value of each column: two-sided, but for "extreme", where small is extreme."""
        low, high = (np.asarray(1.0 + count) / (self.n + 1) for count in (self._low, self._high))
        return np.where(statistic == EXTREME, low, np.minimum(1.0, 2.0 * np.minimum(low, high)))


def threshold(level: float, n: int, n_columns: int) -> float:
    """Return the p-value of a column, from ``n`` replicates, from which down the next stage follows.

    ``level`` is that of the whole statistic, Bonferroni over its columns; the smallest p-value is always below.
    """
    return max(level / n_columns, 2.0 / (n + 1))


def staged(first: FloatArray, second: FloatArray, threshold: float) -> FloatArray:
    """Return p-values of two stages as one: the first where it is above the threshold, else the second."""
    return np.where(first > threshold, first, np.minimum(second, threshold))


def by_statistic(p_values: FloatArray, statistic: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Return the p-value of each of `STATISTICS`, Bonferroni over its columns; NaN where a node has none."""
    return np.array([
        combined_p_value(p_values[statistic == index]) if (statistic == index).any() else np.nan
        for index in range(len(STATISTICS))
    ])  # fmt: skip
