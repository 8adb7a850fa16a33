"""Which simulations count in tests of what is broken, and the paths among which the exact draw of each is ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, FloatArray, IntArray
from bread.report.bounds import usable_simulations
from bread.running.pilots.fitted_hyperparameters import mixing_of
from bread.running.state.results import CheckResult
from bread.statistics.bounds.alarms import independent_share

EXACT, DIAGNOSTIC = "exact test", "diagnostic of init_steps, or a bug"
OF_DRAWS = "exact test of the draws that data were simulated at"
RANKED_PATH = "0: the reverse chain from the exact draw; from 1 on: the forward chains"


class CountedRuns(NamedTuple):
    """Pairs of simulation and T that count in tests, up to the first that has not finished.

    Attributes
    ----------
    rows : ndarray of int, shape (row, 2)
        Simulation and number of temperatures.
    forward, reverse : ndarray, shape (row, chain)
        Log weights, nats.
    usable : ndarray of bool, shape (row,)
        Rows without a failed chain.
    """

    rows: IntArray
    forward: FloatArray
    reverse: FloatArray
    usable: NDArray[np.bool_]
    forward_runs: Sequence[AnnealRun]
    reverse_runs: Sequence[AnnealRun]


class RankedPaths(NamedTuple):
    """One row a simulation: reverse chain 0, which begins at the exact draw, and the K forward chains.

    Attributes
    ----------
    simulations, n_temperatures : ndarray of int, shape (simulation,)
    forward : ndarray, shape (simulation, K)
        Log weights, nats; -inf where a chain met a ratio of zero.
    reverse : ndarray, shape (simulation,)
    forward_runs, reverse_runs : list of AnnealRun
    """

    simulations: IntArray
    n_temperatures: IntArray
    forward: FloatArray
    reverse: FloatArray
    forward_runs: Sequence[AnnealRun]
    reverse_runs: Sequence[AnnealRun]

    @property
    def log_weight(self) -> FloatArray:
        """Log weights (simulation, 1 + K) of the reverse chain and of the forward chains."""
        return np.column_stack([self.reverse, self.forward])

    @property
    def states(self) -> FloatArray:
        """Where these paths end at beta = 1, shape (simulation, 1 + K, dim)."""
        pairs = zip(self.reverse_runs, self.forward_runs, strict=True)
        return np.array([np.vstack([down.state_at_end[:1], up.state_at_end]) for down, up in pairs])


def meaning(result: CheckResult) -> str:
    """Return what a small p-value of these tests means."""
    return {"fitted": DIAGNOSTIC, "posterior": OF_DRAWS}.get(str(result.settings.get("simulate_from")), EXACT)


def effective_share(result: CheckResult, n_simulations: int) -> float:
    """Return the share of simulations that count as independent: all, but where all of each is a draw of the fit."""
    if result.settings.get("simulate_from") != "posterior" or result.fit is None:
        return 1.0
    n_effective = mixing_of(result.fit).n_effective
    return independent_share(n_simulations, n_effective) if np.isfinite(n_effective) else 1.0


def tested_runs(result: CheckResult) -> CountedRuns | None:
    """Return what counts in tests; None where no simulation is usable."""
    pairs, forward_runs, reverse_runs = result.attempts.finished_tests(result.runs)
    if not pairs:
        return None
    forward, reverse = (np.array([run.log_weight for run in runs]) for runs in (forward_runs, reverse_runs))
    usable = usable_simulations(forward, reverse)
    rows = np.array(pairs, dtype=np.int64)
    return CountedRuns(rows, forward, reverse, usable, forward_runs, reverse_runs) if usable.any() else None


def ranked_paths(result: CheckResult) -> RankedPaths | None:
    """Return the paths that are ranked: of each simulation those at its largest tested T; None without any."""
    tested = tested_runs(result)
    if tested is None:
        return None
    last = _last_rows(tested.rows, tested.usable)
    return RankedPaths(
        tested.rows[last, 0],
        tested.rows[last, 1],
        tested.forward[last],
        tested.reverse[last, 0],
        [tested.forward_runs[row] for row in last],
        [tested.reverse_runs[row] for row in last],
    )


def _last_rows(rows: IntArray, usable: NDArray[np.bool_]) -> IntArray:
    """Return the usable row of each simulation that has the largest T."""
    last: dict[int, int] = {}
    for row in np.flatnonzero(usable):
        held = last.get(int(rows[row, 0]))
        if held is None or rows[held, 1] < rows[row, 1]:
            last[int(rows[row, 0])] = int(row)
    return np.array([last[simulation] for simulation in sorted(last)], dtype=np.int64)
