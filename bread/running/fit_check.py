"""Do the real data look like the model's? Annealed draws on the real data, and replicates of every node given each.

Runs where the model was opened, after the draws; its random numbers are its own, so that no other number shifts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, IntArray, Model, Node, Replicates
from bread.errors import BreadError, UnsupportedModelError
from bread.running.interrupts import interruptible
from bread.seeds import Purpose, seed_sequence
from bread.statistics import replication
from bread.statistics.fit import FIT_LEVEL, N_EXTREMES, draw_p_value, fit_p_value, n_replicates

FIT_DRAWS = 20
MOST_AT_ONCE = 1_000_000  # elements of a batch
MOST_ELEMENTS = 4_000_000  # of the second stage of one node and draw, where that still leaves FEWEST_REPLICATES
FEWEST_REPLICATES = 2000
LAST_ELEMENTS = 20_000_000  # of a node so long that even so many replicates would cost too much


@dataclass(frozen=True)
class NodeTest:
    """One node against its replicates, over draws.

    Attributes
    ----------
    node : Node
    p_values : ndarray, shape (draw, statistic)
        Of `bread.statistics.replication.STATISTICS`; NaN where the node has none.
    effect : ndarray, shape (draw,)
        Median log density of replicates minus that of the node, in nats; NaN where there is none.
    n_replicates : ndarray of int, shape (draw,)
        Used, in the stage that gave the p-values.
    deviation : ndarray, shape (element,)
        Mean over draws of (value - centre) / scale, from replicates.
    """

    node: Node
    p_values: FloatArray
    effect: FloatArray
    n_replicates: IntArray
    deviation: FloatArray

    @property
    def extremes(self) -> IntArray:
        """Return the elements that lie furthest from their centre, furthest first; at most 5."""
        return np.asarray(np.argsort(-np.abs(self.deviation), kind="stable")[:N_EXTREMES], dtype=np.int64)


@dataclass(frozen=True)
class FitCheck:
    """The fit test of one data set.

    Attributes
    ----------
    tests : tuple of NodeTest
    left_out : dict of str to str
        Nodes that were not tested, and why.
    """

    tests: tuple[NodeTest, ...]
    left_out: dict[str, str]

    @property
    def p_value_by_draw(self) -> FloatArray:
        """Return Bonferroni's p-value of each draw, shape (draw,)."""
        return np.array([draw_p_value(row) for row in np.concatenate([one.p_values for one in self.tests], axis=1)])

    @property
    def p_value(self) -> float:
        """Return the p-value over nodes and draws."""
        return fit_p_value(self.p_value_by_draw)


def check_fit(
    model: Model, states: FloatArray, root: int, data: Mapping[str, NDArray[Any]] | None = None, key: int = -1
) -> FitCheck | None:
    """Test the fit of every node at annealed draws (draw, dim) on one data set; None where no node can be tested.

    Parameters
    ----------
    model : Model
    states : ndarray, shape (draw, dim)
        At most `FIT_DRAWS` of them are used, the first.
    root : int
        Root entropy.
    data : mapping of str to ndarray, optional
        The data set; by default the real one.
    key : int
        Names its random numbers: the index of the data set.
    """
    states = states[:FIT_DRAWS]
    nodes = [node for node in model.nodes() if node.size]
    left_out = {node.name: node.refusal for node in nodes if node.refusal}
    testable = [node for node in nodes if not node.refusal]
    n_tests = sum(1 if node.kind == "parameter" and node.size == 1 else 2 for node in testable)
    tests = []
    for place, node in enumerate(testable):
        tester = _NodeTester(model, node, n_tests, data)
        try:
            tests.append(
                tester.run(
                    states, [seed_sequence(root, Purpose.REPLICATE, key, place, draw) for draw in range(len(states))]
                )
            )
        except BreadError as error:
            left_out[node.name] = str(error)
    return FitCheck(tuple(tests), left_out) if tests and len(states) else None


class _NodeTester:
    """Tests one node at one state after another."""

    def __init__(self, model: Model, node: Node, n_tests: int, data: Mapping[str, NDArray[Any]] | None) -> None:
        self._model, self._node, self._data = model, node, data
        self._has_no_parents = node.kind == "parameter"
        self._kept: dict[tuple[tuple[int, ...], int], Replicates] = {}
        # as many as p-values at this level need
        wanted = n_replicates(n_tests * (node.size if node.kind == "parameter" else 1), FIT_LEVEL)
        most = max(MOST_ELEMENTS // node.size, min(FEWEST_REPLICATES, LAST_ELEMENTS // node.size))
        self._most = max(min(wanted, most, node.most or wanted), replication.FIRST_REPLICATES)

    def run(self, states: FloatArray, seeds: Sequence[SeedSequence]) -> NodeTest:
        """Test the node at each state.

        Raises
        ------
        UnsupportedModelError
            It cannot be replicated, or a value is not a number.
        """
        if self._has_no_parents:  # one set of replicates serves every draw
            seeds = [seeds[0]] * len(states)
        rows = [self._at(state, seed) for state, seed in zip(states, seeds, strict=True)]
        p_values, effect, number, deviation = (list(part) for part in zip(*rows, strict=True))
        return NodeTest(self._node, np.array(p_values), np.array(effect), np.array(number), np.mean(deviation, axis=0))

    def _at(self, state: FloatArray, seed: SeedSequence) -> tuple[FloatArray, float, int, FloatArray]:
        """Return p-values by statistic, effect in nats, how many replicates gave them, and each element's deviation."""
        spreading, first, second = (_child(seed, part) for part in range(3))
        n_first = replication.FIRST_REPLICATES
        pilot = self._replicate(state, n_first, spreading)
        spread = replication.centre_and_scale(pilot.values[1:])
        signed = np.sign(pilot.values[0] - spread[0]) * replication.deviations(pilot.values[0], spread)
        tally, statistic, effect = self._tally(state, first, n_first, spread)
        p_values = tally.p_values(statistic)
        if (p_values < replication.FIRST_LEVEL).any() and self._most > n_first:
            tally, _, effect = self._tally(state, second, self._most, spread)
            p_values = replication.staged(p_values, tally.p_values(statistic))
        return replication.by_statistic(p_values, statistic), effect, tally.n, signed

    def _tally(
        self, state: FloatArray, seed: SeedSequence, n: int, spread: tuple[FloatArray, FloatArray]
    ) -> tuple[replication.Tally, IntArray, float]:
        """Compare the node with ``n`` replicates, a batch at a time; return counts, statistics and effect in nats."""
        tally, log_density = replication.Tally(), [np.empty(0)]
        batch_size = max(1, MOST_AT_ONCE // self._node.size)
        statistic, effect = np.empty(0, dtype=np.int64), float("nan")
        for batch, low in enumerate(range(0, n, batch_size)):
            made = self._replicate(state, min(batch_size, n - low), _child(seed, batch))
            columns = replication.columns(
                made.values, made.log_density, made.pointwise, spread, is_parameter=self._node.kind == "parameter"
            )
            if np.isnan(columns.values).any():
                raise UnsupportedModelError(f"the log density of {self._node.name!r} is not a number at a draw.")
            tally.add(columns)
            statistic = columns.statistic
            if made.log_density is not None:
                log_density.append(made.log_density[1:])
                effect = float(np.median(np.concatenate(log_density)) - made.log_density[0])
        return tally, statistic, effect

    def _replicate(self, state: FloatArray, n: int, seed: SeedSequence) -> Replicates:
        if not self._has_no_parents:
            return self._made(state, n, seed)
        key = (seed.spawn_key, n)
        if key not in self._kept:
            self._kept[key] = self._made(state, n, seed)
        own, others = self._made(state, 1, seed), self._kept[key]
        log_density = None
        if own.log_density is not None and others.log_density is not None:
            log_density = np.concatenate([own.log_density[:1], others.log_density[1:]])
        return Replicates(np.concatenate([own.values[:1], others.values[1:]]), log_density)

    def _made(self, state: FloatArray, n: int, seed: SeedSequence) -> Replicates:
        with interruptible():
            made = self._model.replicate(state, self._node.name, n, seed=seed, data=self._data)
        if np.isnan(made.values).any():
            raise UnsupportedModelError(f"{self._node.name!r} has values that are not numbers.")
        return made


def _child(seed: SeedSequence, index: int) -> SeedSequence:
    return SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index), pool_size=seed.pool_size)
