"""Do the walkers of an ensemble keep their joint law? Distances of pairs, which no function of single walkers sees.

Walkers that move along lines through one another while both move keep each its own law and lose their joint one:
correlations change by 0.01, and the number of close pairs by half, since a line through a pair leaves it close.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bread.debugging.finding import BatteryTest, Finding, LeftOut
from bread.debugging.kernel_tests import FEW, difference_of_averages
from bread.debugging.sample import Sample
from bread.debugging.subject import FloatArray
from bread.statistics.exactness.functions import Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS, crossing_p_values
from bread.statistics.exactness.means import mean_zero_test

NEAR = (0.02, 0.1)  # quantiles of the distance below which a pair is near: single pairs
NEAR_OF_MANY = (0.005, 0.02, 0.1)  # of all pairs of a group together
MOST_PAIRS = 15  # that are looked at one by one
MOST_OF_GROUP = 200  # pairs of one group
BLOCK = 200_000  # distances held at a time
DISTANCE = "distance"


class PairDistances:
    """Whether pairs of walkers are near one another: indicators and their means over groups of pairs.

    Groups are all pairs, those within the first and within the second half of the ensemble, and those across, since
    halves take turns in many kernels. Distances are in units of each coordinate's spread; thresholds are quantiles
    over ``first``, draws on which nothing is tested.

    Parameters
    ----------
    first : ndarray, shape (m, n_walkers * d)
    n_walkers : int
        At least two.

    Attributes
    ----------
    labels, group_labels : tuple of Label
        Of the indicators, and of the means.
    """

    def __init__(self, first: FloatArray, n_walkers: int) -> None:
        self._n = n_walkers
        by_coordinate = first.reshape(len(first) * n_walkers, -1)
        low, high = np.quantile(by_coordinate, [1.0 / 6.0, 5.0 / 6.0], axis=0)
        spread = 0.5 * (high - low)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        pairs = np.array(list(combinations(range(n_walkers), 2)), dtype=np.int64)
        self._single = pairs if len(pairs) <= MOST_PAIRS else pairs[:0]
        is_first = pairs < n_walkers // 2
        within_first, within_second = is_first.all(axis=1), ~is_first.any(axis=1)
        groups = {
            "all pairs": np.ones(len(pairs), dtype=np.bool_),
            "pairs of the first half": within_first,
            "pairs of the second half": within_second,
            "pairs across the halves": ~within_first & ~within_second,
        }
        # A group of one pair, or that is all of them, says nothing more.
        groups = {
            name: rows for name, rows in groups.items() if rows.sum() > 1 and (name == "all pairs" or not rows.all())
        }
        self._groups: list[NDArray[np.int64]] = [_some(pairs[rows]) for rows in groups.values()]
        self._thresholds = _quantiles(self.distances(first, self._single), NEAR)
        self._group_thresholds = [np.quantile(self.distances(first, group), NEAR_OF_MANY) for group in self._groups]
        self.labels = tuple(
            Label(f"walkers {i + 1}, {j + 1}", f"{DISTANCE} < q{100 * q:g}") for i, j in self._single for q in NEAR
        )
        self.group_labels = tuple(Label(name, f"{DISTANCE} < q{100 * q:g}") for name in groups for q in NEAR_OF_MANY)

    def distances(self, states: FloatArray, pairs: NDArray[np.int64]) -> FloatArray:
        """Return distances of pairs, shape (..., len(pairs))."""
        walkers = states.reshape(*states.shape[:-1], self._n, -1) / self._scale
        gap = walkers[..., pairs[:, 0], :] - walkers[..., pairs[:, 1], :]
        return np.asarray(np.sqrt((gap**2).sum(axis=-1)), dtype=np.float64)

    def single(self, states: FloatArray) -> NDArray[np.int8]:
        """Return whether each pair is near, shape (..., len(labels))."""
        is_near = self.distances(states, self._single)[..., None] <= self._thresholds
        return np.asarray(is_near.reshape(*states.shape[:-1], -1), dtype=np.int8)

    def groups(self, states: FloatArray) -> FloatArray:
        """Return shares of pairs that are near, shape (..., len(group_labels))."""
        flat = states.reshape(-1, states.shape[-1])
        values = np.empty((len(flat), len(self.group_labels)))
        column = 0
        for group, thresholds in zip(self._groups, self._group_thresholds, strict=True):
            rows = max(1, BLOCK // len(group))
            for low in range(0, len(flat), rows):
                distance = self.distances(flat[low : low + rows], group)
                shares = [(distance <= threshold).mean(axis=-1) for threshold in thresholds]
                values[low : low + rows, column : column + len(thresholds)] = np.stack(shares, axis=-1)
            column += len(thresholds)
        return values.reshape(*states.shape[:-1], -1)

    def every(self, states: FloatArray) -> FloatArray:
        """Return both, shape (..., len(labels) + len(group_labels))."""
        return np.concatenate([self.single(states), self.groups(states)], axis=-1)


def _quantiles(distances: FloatArray, levels: tuple[float, ...]) -> FloatArray:
    """Return quantiles of each column, shape (column, level)."""
    if not distances.shape[-1]:
        return np.empty((0, len(levels)))
    return np.asarray(np.quantile(distances, levels, axis=0).T, dtype=np.float64)


def _some(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return at most `MOST_OF_GROUP` pairs, evenly."""
    return pairs[np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_OF_GROUP)).astype(np.int64)]


def run_pairs_of_walkers(sample: Sample) -> Finding | LeftOut:
    """Count close pairs of walkers before and after, and along chains."""
    rows = sample.sound_rows()
    if rows.sum() < FEWEST_DRAWS:
        return FEW
    pilot = sample.pilot.states
    pairs = PairDistances(pilot[~np.isnan(pilot).any(axis=1)], sample.subject.n_walkers)
    start, last = sample.table[rows, :-1], sample.first[rows][:, -1, :-1]
    crossing = pairs.single(last).astype(np.int64) - pairs.single(start)
    before = pairs.every(start)
    chains = [sample.first[rows][:, sample.spaced, :-1], sample.second[rows][..., :-1]]
    averages = 0.5 * sum(pairs.every(states).mean(axis=1) for states in chains)
    exact = pairs.every(sample.fresh[rows][..., :-1]).mean(axis=1)
    difference, _ = difference_of_averages(before, np.asarray(averages, dtype=np.float64), exact)
    test = mean_zero_test(difference, is_bounded=True)
    n_steps = sample.keep[-1]
    labels = (
        *(Label(label.quantity, f"{label.function} after {n_steps} steps") for label in pairs.labels),
        *(Label(label.quantity, f"{label.function} in chains") for label in (*pairs.labels, *pairs.group_labels)),
    )
    p_values = np.concatenate([crossing_p_values(crossing), test.p_values])
    effect = np.concatenate([crossing.mean(axis=0), difference.mean(axis=0)])
    return Finding(labels, p_values, effect, int(rows.sum()))


WALKERS = BatteryTest(
    "pairs of walkers",
    "ensemble",
    "Along chains from exact ensembles, as many pairs of walkers are near one another as in fresh ones.",
    "Indicators after the last step: exact for every n (McNemar). Averages along chains: t tests of bounded "
    "differences, with a counter-value.",
    (
        "Walkers are moved against one another at the same time: a proposal may use only walkers that do not move with "
        "it.",
    ),
    "probability",
    run_pairs_of_walkers,
    needs=("kernel",),
)
ENSEMBLE_TESTS = (WALKERS,)
