"""Pairs of chains with a lag, run until they meet: meeting times, and unbiased estimates of expectations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from bread.couplings.kernel import CoupledKernel, FloatArray, Points


@dataclass(frozen=True)
class Pairs:
    """What came of coupled pairs (X, Y): X is ``lag`` iterations ahead, and X_t = Y_(t - lag) from the meeting time on.

    Attributes
    ----------
    meeting_times : ndarray, shape (n,)
        First t > lag at which X_t = Y_(t - lag); infinite where that did not happen up to ``horizon``.
    lag, horizon : int
    estimates : ndarray, shape (n, p)
        Unbiased estimates of the expectations of the functions; NaN where a pair did not meet. p = 0 without functions.
    n_gradients : int
        What was spent.
    """

    meeting_times: FloatArray
    lag: int
    horizon: int
    estimates: FloatArray
    n_gradients: int


def run_pairs(
    kernel: CoupledKernel,
    initial: tuple[FloatArray, FloatArray],
    seeds: Sequence[SeedSequence],
    *,
    lag: int,
    horizon: int,
    functions: Callable[[FloatArray], FloatArray] | None = None,
    window: tuple[int, int] | None = None,
    advance: Callable[[int], None] | None = None,
) -> Pairs:
    """Run pairs of chains until they meet, or up to ``horizon`` iterations of X.

    Parameters
    ----------
    kernel : CoupledKernel
    initial : tuple of two ndarray, each (n, d)
        X_0 and Y_0: independent draws from one law.
    seeds : sequence of SeedSequence, length n
        One a pair: results do not depend on which pairs run together, up to rounding of the density.
    lag : int
        At least 1.
    horizon : int
        Last iteration of X.
    functions : callable, optional
        Of states (n, d): values (n, p) whose expectations under the target are wanted.
    window : (int, int), optional
        k and m, 0 <= k <= m: the average is over X_k, ..., X_m; by default from ``lag`` to ``5 * lag``.
    advance : callable, optional
        Called with the number of pairs that are done.

    Returns
    -------
    Pairs

    Notes
    -----
    With N = m - k + 1, the estimate is the average of h(X_t) over the window plus, for each t >= k with
    t + lag < meeting time, its share min(N, ...) / N of h(X_(t + lag)) - h(Y_t): the telescoping sum
    h(X_t) + sum over j >= 1 of h(X_(t + j lag)) - h(Y_(t + (j - 1) lag)), averaged over t in the window. It is unbiased
    if meeting times have a light enough tail, and its variance is then finite.

    References
    ----------
    Jacob, O'Leary & Atchade (2020), JRSS B 82, 543-600; with lags: Biswas, Jacob & Vanetti (2019), "Estimating
    convergence of Markov chains with L-lag couplings", NeurIPS 32.
    """
    n = len(seeds)
    first, last = (lag, 5 * lag) if window is None else window
    rngs = [default_rng(seed) for seed in seeds]
    before = kernel.n_gradients
    x, y = kernel.at(initial[0]), kernel.at(initial[1])
    times = np.full(n, np.inf)
    sums = _Sums(n, functions, first, last, lag)
    sums.add_window(np.arange(n), x, 0)
    n_done = 0
    for t in range(1, horizon + 1):
        is_met = np.isfinite(times)
        alone = np.flatnonzero(is_met & (t <= last)) if functions is not None else np.zeros(0, dtype=np.int64)
        together = np.flatnonzero(~is_met)
        if len(alone) + len(together) == 0:
            break
        if t <= lag:
            alone, together = together, together[:0]
        if len(alone):
            x.put(alone, kernel.move(x.rows(alone), _some(rngs, alone)))
        if len(together):
            moved_x, moved_y, is_one = kernel.move_pairs(x.rows(together), y.rows(together), _some(rngs, together))
            x.put(together, moved_x)
            y.put(together, moved_y)
            times[together[is_one]] = t
        running = np.concatenate([alone, together])
        sums.add_window(running, x, t)
        sums.add_corrections(np.flatnonzero(~np.isfinite(times)), x, y, t)
        if advance is not None and int(np.isfinite(times).sum()) > n_done:
            advance(int(np.isfinite(times).sum()) - n_done)
            n_done = int(np.isfinite(times).sum())
    estimates = sums.estimates()
    reached = np.isfinite(times) & (horizon >= last)
    estimates[~reached] = np.nan
    return Pairs(times, lag, horizon, estimates, kernel.n_gradients - before)


class _Sums:
    """Running sums of the functions along pairs."""

    def __init__(
        self, n: int, functions: Callable[[FloatArray], FloatArray] | None, first: int, last: int, lag: int
    ) -> None:
        self.functions, self.first, self.last, self.lag = functions, first, last, lag
        self.total: FloatArray | None = None
        self.n = n

    def _add(self, rows: NDArray[np.int64], values: FloatArray) -> None:
        if self.total is None:
            self.total = np.zeros((self.n, values.shape[1]))
        self.total[rows] += values

    def add_window(self, rows: NDArray[np.int64], x: Points, t: int) -> None:
        """Add h(X_t), where t is in the window."""
        if self.functions is not None and len(rows) and self.first <= t <= self.last:
            self._add(rows, self.functions(x.states[rows]))

    def add_corrections(self, rows: NDArray[np.int64], x: Points, y: Points, t: int) -> None:
        """Add h(X_t) - h(Y_(t - lag)) of pairs that have not met, as often as a window's iteration leads to it.

        Iteration s of the window leads to t where t = s + j lag with j >= 1.
        """
        if self.functions is None or t < self.lag or not len(rows):
            return
        latest = min(self.last, t - self.lag)
        if latest < self.first:
            return
        nearest = latest - (latest - t) % self.lag  # the largest s <= latest that leads to t
        count = (nearest - self.first) // self.lag + 1 if nearest >= self.first else 0
        if count:
            self._add(rows, count * (self.functions(x.states[rows]) - self.functions(y.states[rows])))

    def estimates(self) -> FloatArray:
        """Return the estimates, shape (n, p)."""
        if self.total is None:
            return np.zeros((self.n, 0))
        return self.total / (self.last - self.first + 1)


def _some(rngs: Sequence[Generator], rows: NDArray[np.int64]) -> list[Generator]:
    return [rngs[row] for row in rows]
