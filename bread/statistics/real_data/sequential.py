"""Rank p-values of the real data among simulated ones: plain, sequential, and of shape and effort together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.real_data.consistency import curve_statistics, finite_curves, rank_p_values_of_all, shifted_curves

MOST_SIMULATIONS = 199
SHAPE_LEVEL = 0.05  # at which real data count as harder, or plainly different, to sample
STOP_AFTER = 10


class SequentialPValue(NamedTuple):
    """Result of `sequential_p_value`.

    Attributes
    ----------
    p_value : float
        Valid at every level once ``is_final``; before, what the plain p-value is so far.
    n_used, n_exceeding : int
        Simulations looked at, and how many of them were at least as large as the real data.
    is_final : bool
        False: more simulations are needed before anything is said.
    """

    p_value: float
    n_used: int
    n_exceeding: int
    is_final: bool


class Shape(NamedTuple):
    """Result of `shape_test`; R simulations.

    Attributes
    ----------
    p_value : float
        Exact for exchangeable items: the rank of the smallest of an item's p-values among those of all items.
    p_value_by_measure : dict of str to float
        "harder" and "different" (of the curve), then each measure of effort; not adjusted. Their minimum has no level.
    is_final : bool
        False: `p_value` is small enough to matter, and more simulations would make it surer.
    """

    p_value: float
    p_value_by_measure: dict[str, float]
    is_final: bool


def plain_p_value(observed: float, simulated: ArrayLike) -> float:
    """Return (1 + number of simulated statistics at least as large) / (R + 1).

    Valid if the real data are exchangeable with the simulated: P(p <= level) <= level, so reject if ``p <= level``.

    Parameters
    ----------
    observed : float
    simulated : array_like, shape (R,)
        Large means extreme. Infinite is allowed.

    Returns
    -------
    float
        1 / (R + 1) or more; ties make it larger.
    """
    others = _statistics(observed, simulated)
    return float((1 + (others >= observed).sum()) / (others.size + 1))


def sequential_p_value(
    observed: float, simulated: ArrayLike, *, stop_after: int = STOP_AFTER, most: int = MOST_SIMULATIONS
) -> SequentialPValue:
    """Return Besag and Clifford's sequential p-value: stop as soon as it is plain that nothing is wrong.

    Simulations are looked at in the order in which they were made. Once ``stop_after`` = h of them are at least as
    large as the real data, after l simulations, p = h / l; if that has not happened after ``most`` = n, p = (1 + #) /
    (n + 1). Valid at every level, whatever the number of simulations turns out to be.

    Parameters
    ----------
    observed : float
        A statistic of the real data; large means extreme.
    simulated : array_like, shape (R,)
        The same statistic of each simulated data set so far, in order. A statistic that depends on the other data sets
        (a rank, a leave-one-out score) changes as they are added: use `shape_test` for those.
    stop_after, most : int
        h and n; 10 and 199: where p is 0.2, about 50 simulations are enough.

    Returns
    -------
    SequentialPValue

    Raises
    ------
    InvalidArgumentError
        NaN, or a limit below 1.

    References
    ----------
    Besag & Clifford (1991), "Sequential Monte Carlo p-values", Biometrika 78, 301-304.
    """
    if stop_after < 1 or most < 1:
        raise InvalidArgumentError(f"stop_after and most must be 1 or more, but got {stop_after} and {most}.")
    others = _statistics(observed, simulated)[:most]
    exceeding = np.cumsum(others >= observed)
    reached = np.flatnonzero(exceeding == stop_after)
    if reached.size:
        n_used = int(reached[0]) + 1
        return SequentialPValue(stop_after / n_used, n_used, stop_after, True)
    n_exceeding = int((others >= observed).sum())
    return SequentialPValue((1 + n_exceeding) / (others.size + 1), others.size, n_exceeding, others.size == most)


def shape_test(
    curves: ArrayLike,
    effort: Mapping[str, ArrayLike] | None = None,
    *,
    stop_after: int = STOP_AFTER,
    most: int = MOST_SIMULATIONS,
) -> Shape:
    """Test whether the real data are harder, or plainly different, to sample than simulated data.

    The real data are one more simulation. Each item gets a rank p-value for every measure; the smallest of them is
    ranked among the items' smallest. The same rule is applied to all items, so the level is exact, and the p-value
    never exceeds Bonferroni's. Measures of the curve: its mean after a shift by its last value (low is "harder") and
    the largest leave-one-out ``|z|`` over columns ("different"). Measures of effort: large is "harder"; where a measure
    has several columns, such as one a knot, the items are ranked in each column and the ranks averaged.

    Parameters
    ----------
    curves : array_like, shape (R + 1, T)
        Median forward log weights over chains, in nats, columns in increasing number of temperatures, *the real data
        last*; -inf is allowed. With T = 1 the curve says nothing and only effort counts.
    effort : mapping of str to array_like, each (R + 1,) or (R + 1, ...), optional
        From the same chains, the real data last: spread of log weights between chains, gradients a transition,
        divergences, lag of the relaxation along the path, ... Infinite is allowed.
    stop_after, most : int
        Growth by looking again: final once ``stop_after`` items are at least as extreme, or with ``most`` simulations.

    Returns
    -------
    Shape
        Reject if ``is_final`` and p_value <= level, for a level of at most stop_after / (most + 1) (0.05): whoever
        stops early does not reject, so looking again costs nothing. NaN with R = 1 or nothing to measure.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match, NaN, or +inf in a curve.
    """
    items = np.asarray(curves, dtype=np.float64)
    if items.ndim != 2 or items.shape[1] == 0 or len(items) < 2 or np.isnan(items).any() or np.isposinf(items).any():
        raise InvalidArgumentError(
            f"curves must have shape (simulations and the real data, n_temperatures) and be finite or -inf, but got "
            f"shape {items.shape} with {int(np.isnan(items).sum())} NaN. Leave out simulations that did not finish."
        )
    measures: dict[str, FloatArray] = {}
    if items.shape[1] > 1 and len(items) > 2:
        measures["harder"], measures["different"] = curve_statistics(finite_curves(shifted_curves(items)))
    for name, values in (effort or {}).items():
        measures[name] = _average_rank(name, np.asarray(values, dtype=np.float64), len(items))
    if len(items) == 2 or not measures:
        return Shape(float("nan"), {}, len(items) > most)
    by_measure = {name: rank_p_values_of_all(statistic) for name, statistic in measures.items()}
    smallest = np.min(list(by_measure.values()), axis=0)
    p_value = float(rank_p_values_of_all(-smallest)[-1])
    n_exceeding = round(p_value * len(items)) - 1
    is_final = n_exceeding >= stop_after or len(items) > most
    return Shape(p_value, {name: float(p[-1]) for name, p in by_measure.items()}, is_final)


def _average_rank(name: str, values: FloatArray, n_items: int) -> FloatArray:
    """Return each item's rank, averaged over columns: symmetric in the items, and free of units."""
    if values.ndim == 0 or len(values) != n_items or values.size == 0 or np.isnan(values).any():
        raise InvalidArgumentError(
            f"effort '{name}' must have shape ({n_items}, ...) and hold no NaN, but got shape {values.shape} with "
            f"{int(np.isnan(values).sum())} NaN."
        )
    return np.asarray(rankdata(values.reshape(n_items, -1), axis=0).mean(axis=1), dtype=np.float64)


def _statistics(observed: float, simulated: ArrayLike) -> FloatArray:
    """Return the simulated statistics as a flat array, checked."""
    others = np.asarray(simulated, dtype=np.float64).ravel()
    if np.isnan(others).any() or np.isnan(observed):
        raise InvalidArgumentError(
            f"statistics must not be NaN, but the observed one is {observed} and {int(np.isnan(others).sum())} "
            "simulated ones are NaN. Leave out what did not finish, for all data sets alike."
        )
    return others
