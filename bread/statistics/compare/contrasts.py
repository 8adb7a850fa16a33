"""Which of two samplers is better on the same data sets, at equal steps, gradients or seconds: B's ratio, or V's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.statistics.bounds.intervals import Interval
from bread.statistics.compare.paired import at_cost, difference_interval, ratio_interval

FloatArray = NDArray[np.float64]

# By how much a ratio must differ from 1 beyond its interval: between costs that were run the bounds are interpolated,
# and seconds of a processor depend on what else the machine does, through its caches and its clock.
INTERPOLATED = 1.1
TIMED = 1.25
STEPS, GRADIENTS, EVALUATIONS, SECONDS = "steps", "gradients", "evaluations", "seconds"
_NAN = float("nan")
_NO_INTERVAL = Interval(_NAN, _NAN, _NAN)


class Curves(NamedTuple):
    """What one sampler gave at each T.

    Attributes
    ----------
    gaps : ndarray, shape (n_temperatures, simulation)
        Gaps whose mean is B, in nats (`conditional_gaps`); infinite where a weight is zero.
    errors : ndarray, shape (n_temperatures, simulation)
        V_r.
    costs : dict of str to ndarray, shape (n_temperatures,)
        By "steps", "gradients", "evaluations", "seconds": of one chain. NaN where this T was not run.
    is_reliable : ndarray of bool, shape (n_temperatures,)
        Whether B has a finite mean.
    """

    gaps: FloatArray
    errors: FloatArray
    costs: Mapping[str, FloatArray]
    is_reliable: NDArray[np.bool_]


class Contrast(NamedTuple):
    """Two samplers at one cost.

    Attributes
    ----------
    cost : float
        At which they are compared; NaN where they have none in common.
    gap_ratio, error_ratio, error_difference : Interval
        B of the first over that of the second; the same of V; V of the first less that of the second.
    gaps, errors : tuple of float
        B and V of the first and of the second.
    decides : {"B", "V", ""}
        B where it has a finite mean for both; else V; "" where nothing can be compared.
    better : {-1, 0, 1}
        -1: the first; 1: the second; 0: cannot tell.
    margin : float
        What a ratio must exceed, or its reciprocal, beyond its interval.
    """

    cost: float
    gap_ratio: Interval
    error_ratio: Interval
    error_difference: Interval
    gaps: tuple[float, float]
    errors: tuple[float, float]
    decides: str
    better: int
    margin: float

    @property
    def deciding_ratio(self) -> Interval:
        """Interval of the ratio that decides."""
        return self.gap_ratio if self.decides == "B" else self.error_ratio


def axes_of(curves: list[Curves]) -> tuple[str, ...]:
    """Return the costs by which all of these can be compared.

    Gradients where all use them; evaluations of the density where none does; steps and seconds always.
    """

    def used(one: Curves, name: str) -> bool:
        return bool(np.nansum(one.costs[name]) > 0)

    with_gradients = [used(one, GRADIENTS) for one in curves]
    work: tuple[str, ...] = ()
    if all(with_gradients):
        work = (GRADIENTS,)
    elif not any(with_gradients) and all(used(one, EVALUATIONS) for one in curves):
        work = (EVALUATIONS,)
    return (STEPS, *work, *((SECONDS,) if all(used(one, SECONDS) for one in curves) else ()))


def contrast(first: Curves, second: Curves, axis: str, level: float) -> Contrast:
    """Compare two samplers at the largest cost that both have been run at, or between.

    The first is the better one where the upper limit of the ratio that decides is below 1 over the margin, and the
    other bound does not say the opposite.

    Parameters
    ----------
    first, second : Curves
        Of the same data sets.
    axis : {"steps", "gradients", "evaluations", "seconds"}
    level : float
        Two-sided level of each interval.

    Returns
    -------
    Contrast
    """
    ran = [np.isfinite(one.costs[axis]) for one in (first, second)]
    if axis == STEPS:  # at a T that both have run
        ran = [ran[0] & ran[1]] * 2
    pair = [_rows(one, axis, rows) for one, rows in zip((first, second), ran, strict=True)]
    if any(not len(costs) for costs, _ in pair):
        return _nothing()
    cost = float(min(costs[-1] for costs, _ in pair))
    errors = [at_cost(rows.errors, costs, cost) for costs, rows in pair]
    gaps = [at_cost(rows.gaps, costs, cost) for costs, rows in pair]
    if any(np.isnan(one.values).any() for one in errors):
        return _nothing()
    margin = TIMED if axis == SECONDS else INTERPOLATED if any(one.share > 0 for one in errors) else 1.0
    error_ratio = ratio_interval(errors[0].values, errors[1].values, level)
    difference = difference_interval(errors[0].values, errors[1].values, level)
    has_gaps = all(np.isfinite(one.values).all() for one in gaps)
    gap_ratio = ratio_interval(gaps[0].values, gaps[1].values, level) if has_gaps else _NO_INTERVAL
    is_reliable = all(_is_reliable(rows, costs, cost) for costs, rows in pair)
    decides = "B" if has_gaps and is_reliable else "V"
    by_gap = _better(gap_ratio, margin)
    by_error = _better(error_ratio, margin)
    better = (by_gap if by_error in (0, by_gap) else 0) if decides == "B" else by_error
    return Contrast(
        cost, gap_ratio, error_ratio, difference, (float(gaps[0].values.mean()), float(gaps[1].values.mean())),
        (float(errors[0].values.mean()), float(errors[1].values.mean())), decides, better, margin,
    )  # fmt: skip


def _rows(curves: Curves, axis: str, ran: NDArray[np.bool_]) -> tuple[FloatArray, Curves]:
    """Return the costs and rows that were run, in increasing order of cost; equal costs keep the last."""
    rows = np.flatnonzero(ran)
    costs = curves.costs[axis][rows]
    order = np.argsort(costs, kind="stable")
    keep = [int(i) for place, i in enumerate(order) if place + 1 == len(order) or costs[i] < costs[order[place + 1]]]
    chosen = rows[keep]
    return costs[keep], curves._replace(
        gaps=curves.gaps[chosen], errors=curves.errors[chosen], is_reliable=curves.is_reliable[chosen]
    )


def _is_reliable(rows: Curves, costs: FloatArray, cost: float) -> bool:
    """Return whether B is reliable at the costs beside ``cost``."""
    place = int(np.searchsorted(costs, cost))
    beside = [place] if costs[place] == cost else [place - 1, place]
    return bool(rows.is_reliable[beside].all())


def _better(ratio: Interval, margin: float) -> int:
    """Return -1 where the first is smaller beyond doubt, 1 where the second is, else 0 (also where it is NaN)."""
    return -1 if ratio.upper < 1.0 / margin else 1 if ratio.lower > margin else 0


def _nothing() -> Contrast:
    return Contrast(
        _NAN, _NO_INTERVAL, _NO_INTERVAL, _NO_INTERVAL, (_NAN, _NAN), (_NAN, _NAN), "", 0, 1.0
    )  # fmt: skip
