"""Do the real data look like the model's? Annealed draws on the real data, and replicates of every node given each.

Runs where the model was opened, after the draws; its random numbers are its own, so that no other number shifts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, IntArray, Model, Node, Replicates
from bread.errors import UnsupportedModelError
from bread.jobs.interrupts import interruptible
from bread.seeds import Purpose, seed_sequence
from bread.statistics.real_data import replication
from bread.statistics.real_data.fit import (
    FIT_LEVEL,
    LOOKS,
    N_EXTREMES,
    ORDINARY,
    PLAIN,
    draw_p_value,
    n_replicates,
    ranked_fit_p_value,
    sequential_fit_p_value,
)

MOST_AT_ONCE = 2_000_000  # elements of a batch
MOST_ELEMENTS = 4_000_000  # of the last stage of one node and draw, where that still leaves FEWEST_REPLICATES
FEWEST_REPLICATES = 2000
LAST_ELEMENTS = 20_000_000  # of a node so long that even so many replicates would cost too much
MOST_ONE_BY_ONE = 50_000  # replicates of the last stage of a node, over its draws, where each is made by itself
MORE_DRAWS, MORE_DRAWS_DEAR = 1000, 40  # near the level; where replicates are made one by one, or are long
LONG = 2000  # elements of a node whose replicates are dear: the stages before its last have fewer
FIRST_LONG, SECOND_LONG = 50, 250  # of such a node; the smallest p-values they can give lie below the stages' levels
MOST_WORK = 300_000_000  # elements of replicates of a data set, from where on near the level too no more draws are used
FEW_SPREAD, MANY_SPREAD = 100, 1000  # replicates for the scale of each element; many where all draws share them
REPLICATE_ROOT = 0  # replicates are the same for every random_seed: no verdict changes with it for their sake
REFINED = 5  # times as many replicates near the level where all draws share them


@dataclass(frozen=True)
class NodeTest:
    """One node against its replicates, over draws.

    Attributes
    ----------
    node : Node
    p_values : ndarray, shape (draw, statistic)
        Of `bread.statistics.real_data.replication.STATISTICS`; NaN where the node has none.
    effect : ndarray, shape (draw,)
        Median log density of replicates minus that of the node, in nats; NaN where there is none.
    n_replicates : ndarray of int, shape (draw,)
        Used, in the stage that gave the p-values.
    deviation : ndarray, shape (element,)
        Mean over draws of (value - centre) / scale, from replicates; over the first 3 draws where the node is long.
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
    ranked_p_values : ndarray, shape (data set,)
        p-values, by fewer draws, of data sets simulated from the prior and then of the real data, all treated alike;
        empty where that was not asked or means nothing.
    """

    tests: tuple[NodeTest, ...]
    left_out: dict[str, str]
    ranked_p_values: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def p_value_by_draw(self) -> FloatArray:
        """Return Bonferroni's p-value of each draw, shape (draw,)."""
        return np.array([draw_p_value(row) for row in np.concatenate([one.p_values for one in self.tests], axis=1)])

    @property
    def p_value(self) -> float:
        """Return the p-value over nodes and draws."""
        return sequential_fit_p_value(self.p_value_by_draw).p_value

    @property
    def ranked_p_value(self) -> float:
        """Return the rank of the real data's p-value among those of simulated data sets; NaN where there are none."""
        p_values = self.ranked_p_values
        return ranked_fit_p_value(p_values[-1], p_values[:-1]) if len(p_values) else float("nan")


def check_fit(
    model: Model,
    states: FloatArray,
    root: int = REPLICATE_ROOT,
    data: Mapping[str, NDArray[Any]] | None = None,
    key: int = -1,
    pool: Pool | None = None,
) -> FitCheck | None:
    """Test the fit of every node at annealed draws (draw, dim) on one data set; None where no node can be tested.

    Three draws where the misfit is plain, else 20; more near the level, as far as `MOST_WORK` goes.

    Parameters
    ----------
    model : Model
    states : ndarray, shape (draw, dim)
        The first are used, as many as are needed.
    root : int
        Root entropy of the replicates.
    data : mapping of str to ndarray, optional
        The data set; by default the real one.
    key : int
        Names its random numbers: the index of the data set.
    pool : dict, optional
        Keeps replicates that are the same at every state, for other data sets; filled here.
    """
    pool = {} if pool is None else pool
    nodes = [node for node in model.nodes() if node.size]
    left_out = {node.name: node.refusal for node in nodes if node.refusal}
    testable = [node for node in nodes if not node.refusal]
    n_tests = sum(replication.n_statistics(node.kind, node.size) for node in testable)
    testers = [_NodeTester(model, node, n_tests, data, (root, key, place), pool) for place, node in enumerate(testable)]
    costs_time = any(is_dear(node) or node.size > LONG for node in testable)
    states = states[: MORE_DRAWS_DEAR if costs_time else MORE_DRAWS]
    check = None
    for look in (*(look for look in LOOKS if look < len(states)), len(states)):
        n_draws = look if check is None else min(look, _affordable(testers, len(check.p_value_by_draw)))
        for tester in list(testers):
            try:
                if n_draws > ORDINARY:
                    tester.refine()
                tester.extend(states[:n_draws])
            except Exception as error:  # a user's simulator may raise anything where no chain went
                left_out[tester.node.name] = str(error)
                testers.remove(tester)
        if not testers or not n_draws:
            return None
        check = FitCheck(tuple(tester.test for tester in testers), left_out)
        if n_draws < look or sequential_fit_p_value(check.p_value_by_draw).is_clear:
            break
    return check


def _affordable(testers: Sequence[_NodeTester], n_done: int) -> int:
    """Return how many draws there may be, from what those before needed: the same on every machine."""
    n_elements = sum(tester.n_elements for tester in testers)
    return max(n_done, ORDINARY, MOST_WORK * n_done // max(n_elements, 1))


def is_dear(node: Node) -> bool:
    """Return whether replicates are made one by one, anew at every draw."""
    return node.most is not None and not node.has_no_parents


Pool = dict[tuple[tuple[int, ...], int], Replicates]
_Row = tuple[FloatArray, float, int, FloatArray | None]


class _NodeTester:
    """Tests one node at one state after another."""

    def __init__(
        self,
        model: Model,
        node: Node,
        n_tests: int,
        data: Mapping[str, NDArray[Any]] | None,
        seed: tuple[int, int, int],
        pool: Pool,
    ) -> None:
        self.node = node
        self._model, self._data, self._seed, self._pool = model, data, seed, pool
        self._rows: list[_Row] = []
        # as many as p-values at this level need
        wanted = n_replicates(n_tests * (node.size if node.kind == "parameter" else 1), FIT_LEVEL)
        most = max(MOST_ELEMENTS // node.size, min(FEWEST_REPLICATES, LAST_ELEMENTS // node.size))
        first, second = FIRST_LONG, SECOND_LONG
        if node.size <= LONG:
            first, second = replication.FIRST_REPLICATES, replication.SECOND_REPLICATES
        most = max(min(wanted, most, node.most or wanted), first)
        self._n_replicates = (first, min(second, most), most)
        self._n_spread = MANY_SPREAD if node.has_no_parents and node.size <= LONG else FEW_SPREAD
        self._asks_spread = True
        self._left = MOST_ONE_BY_ONE if is_dear(node) else None
        self._is_refined = False
        self.n_elements = 0  # of replicates made so far

    @property
    def test(self) -> NodeTest:
        """Return what was found so far."""
        p_values, effect, number, deviations = (list(part) for part in zip(*self._rows, strict=True))
        deviation = np.mean([one for one in deviations if one is not None], axis=0)
        return NodeTest(self.node, np.array(p_values), np.array(effect), np.array(number), deviation)

    def refine(self) -> None:
        """Forget draws that share replicates, and take more of these: their chance is in every draw alike."""
        if self.node.has_no_parents and not self._is_refined:
            first, second, most = self._n_replicates
            self._n_replicates, self._rows, self._is_refined = (first, second, REFINED * most), [], True

    def extend(self, states: FloatArray) -> None:
        """Test the node at each of these states that comes after those before.

        Raises
        ------
        UnsupportedModelError
            It cannot be replicated, or a value is not a number.
        """
        root, key, place = self._seed
        for draw in range(len(self._rows), len(states)):
            if self._rows and self.node.kind == "predictive" and self.node.has_no_parents:
                self._rows.append(self._rows[0])  # data and replicates alike
                continue
            # one set of replicates serves every draw, and data set, where they are the same at each
            names = (-1, place, 0) if self.node.has_no_parents else (key, place, draw)
            self._rows.append(self._at(states[draw], seed_sequence(root, Purpose.REPLICATE, *names)))

    def _at(self, state: FloatArray, seed: SeedSequence) -> _Row:
        """Return p-values by statistic, effect in nats, how many replicates gave them, and deviations of elements."""
        spreading, *seeds = (_child(seed, part) for part in range(4))
        spread = signed = None
        if self._asks_spread or len(self._rows) < PLAIN:
            pilot = self._replicate(state, self._n_spread, spreading)
            spread = replication.centre_and_scale(pilot.values[1:])
            signed = np.sign(pilot.values[0] - spread[0]) * replication.deviations(pilot.values[0], spread)
            self._asks_spread = self.node.size <= LONG or pilot.pointwise is None
        tally, statistic, effect = self._tally(state, seeds[0], self._n_replicates[0], spread)
        p_values, n_columns = tally.p_values(statistic), self.node.size if self.node.kind == "parameter" else 1
        for stage, level in ((1, replication.FIRST_LEVEL), (2, replication.SECOND_LEVEL)):
            n, threshold = self._n_replicates[stage], replication.threshold(level, tally.n, n_columns)
            if n <= tally.n or not (p_values <= threshold).any() or not self._may_spend(n, stage):
                break
            tally, _, effect = self._tally(state, seeds[stage], n, spread)
            p_values = replication.staged(p_values, tally.p_values(statistic), threshold)
        return replication.by_statistic(p_values, statistic), effect, tally.n, signed

    def _may_spend(self, n: int, stage: int) -> bool:
        """Return whether ``n`` replicates may be made, and count them: those made one by one are few in all."""
        if self._left is None or stage == 1:
            return True
        self._left -= n
        return self._left >= 0

    def _tally(
        self, state: FloatArray, seed: SeedSequence, n: int, spread: tuple[FloatArray, FloatArray] | None
    ) -> tuple[replication.Tally, IntArray, float]:
        """Compare the node with ``n`` replicates, a batch at a time; return counts, statistics and effect in nats."""
        tally, log_density = replication.Tally(), [np.empty(0)]
        batch_size = max(1, MOST_AT_ONCE // self.node.size)
        statistic, effect = np.empty(0, dtype=np.int64), float("nan")
        for batch, low in enumerate(range(0, n, batch_size)):
            made = self._replicate(state, min(batch_size, n - low), _child(seed, batch))
            columns = replication.columns(made.values, made.log_density, made.pointwise, spread, kind=self.node.kind)
            if np.isnan(columns.values).any():
                raise UnsupportedModelError(f"the log density of {self.node.name!r} is not a number at a draw.")
            tally.add(columns)
            statistic = columns.statistic
            if made.log_density is not None:
                log_density.append(made.log_density[1:])
                effect = float(np.median(np.concatenate(log_density)) - made.log_density[0])
        return tally, statistic, effect

    def _replicate(self, state: FloatArray, n: int, seed: SeedSequence) -> Replicates:
        if not self.node.has_no_parents:
            return self._made(state, n, seed)
        key = (seed.spawn_key, n)
        if key not in self._pool:
            self._pool[key] = self._made(state, n, seed)
        own, others = self._made(state, 1, seed), self._pool[key]
        log_density = None
        if own.log_density is not None and others.log_density is not None:
            log_density = np.concatenate([own.log_density[:1], others.log_density[1:]])
        return Replicates(np.concatenate([own.values[:1], others.values[1:]]), log_density)

    def _made(self, state: FloatArray, n: int, seed: SeedSequence) -> Replicates:
        with interruptible():
            made = self._model.replicate(state, self.node.name, n, seed=seed, data=self._data)
        self.n_elements += n * self.node.size
        if np.isnan(made.values).any():
            raise UnsupportedModelError(f"{self.node.name!r} has values that are not numbers.")
        return made


def _child(seed: SeedSequence, index: int) -> SeedSequence:
    return SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index), pool_size=seed.pool_size)
