"""Bounds of the total variation of Markov chains at an iteration, from the meeting times of coupled chains.

X is L iterations ahead of Y; with tau the meeting time, N_t = max(0, ceil((tau - L - t) / L)) and pi_t the law of plain
MCMC after t iterations, TV(pi_t, pi) <= E[N_t] (Biswas, Jacob & Vanetti 2019, "Estimating convergence of Markov chains
with L-lag couplings", NeurIPS 32, theorem 2.5). The first term of the sum that makes N_t alone bounds
TV(pi_t, pi_(t + L)) <= P(N_t > 0): a probability, whose limit assumes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import default_rng
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from scipy.stats import chi2

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.intervals import mean_interval

FloatArray = NDArray[np.float64]

LEVEL = 0.95
FEWEST_PAIRS = 40  # half of them, 20, tell how the tail of meeting times falls
_FEWEST_IN_TAIL = 20
_TAIL_LEVEL = 0.01  # of the test that meeting times have a tail which falls geometrically
_N_REPLICATES = 5000
_MOST_ROWS = 200  # iterations of a table


@dataclass(frozen=True)
class MeetingBound:
    """Bounds of TV(pi_t, pi), for iterations t.

    Attributes
    ----------
    iterations : ndarray of int, shape (n,)
        t, from 0.
    bound, standard_error : ndarray, shape (n,)
        Mean of N_t, and its standard error. Infinite (and NaN) where a pair never met: not known, and not small.
    limit : ndarray, shape (n,)
        Upper 95% limit of E[N_t] if meeting times beyond the largest seen fall off at least as fast as the slower
        half of those seen; infinite where a pair never met, or where the tail of meeting times is too heavy.
    limit_exact : ndarray, shape (n,)
        Upper 95% limit of TV(pi_t, pi_(t + L)), which assumes nothing: what the next L iterations can still change.
    n_pairs, n_unmet : int
        How many pairs, and how many of them did not meet up to the horizon.
    tail_p_value : float
        Of the test that excesses of meeting times over their median are no more variable than exponential ones.
    """

    iterations: NDArray[np.int64]
    bound: FloatArray
    standard_error: FloatArray
    limit: FloatArray
    limit_exact: FloatArray
    n_pairs: int
    n_unmet: int
    tail_p_value: float

    @property
    def is_heavy(self) -> bool:
        """Whether the tail of meeting times is heavier than a geometric one."""
        return self.tail_p_value <= _TAIL_LEVEL

    def first_below(self, error: float) -> int | None:
        """Return the first iteration of the table at which ``limit`` is below ``error``; None where none is.

        Limits never rise with t, because no N_t does: so to look for it costs no level.
        """
        found = np.flatnonzero(self.limit < error)
        return int(self.iterations[found[0]]) if found.size else None


def meeting_bound(meeting_times: ArrayLike, lag: int, horizon: int) -> MeetingBound:
    """Return bounds of the total variation at a grid of iterations.

    Parameters
    ----------
    meeting_times : array_like, shape (n,)
        Of independent pairs: whole numbers above ``lag``; infinite where a pair had not met at ``horizon``.
    lag : int
        L, at least 1.
    horizon : int
        Last iteration of X: at least ``2 * lag``.

    Returns
    -------
    MeetingBound

    Raises
    ------
    InvalidArgumentError
        Fewer than 40 pairs, times of at most ``lag`` or beyond ``horizon``, or too short a horizon.

    Notes
    -----
    No limit of E[N_t] holds whatever the law of tau: one pair in a million may take 10^9 iterations, and no sample of
    ordinary size sees it. ``limit`` is the product of an exact limit (Clopper & Pearson) of P(N_t > 0) and of one of
    E[N_t | N_t > 0] <= 1 + r / L; r is the largest upper limit of the mean excess of meeting times over a threshold
    that at least 20 pairs exceed, for exponential excesses. Where the mean of N_t itself has a larger limit (Student t
    and Hall), that one is taken.
    """
    times = np.asarray(meeting_times, dtype=np.float64).ravel()
    _check(times, lag, horizon)
    is_met = np.isfinite(times)
    n_unmet = int((~is_met).sum())
    end = horizon - lag if n_unmet else min(int(times.max()) - lag, horizon - lag)
    last = max(horizon - 2 * lag, 0)  # the last t that can be compared with t + L
    grid = np.unique(np.round(np.linspace(0, min(end, last), _MOST_ROWS)).astype(np.int64))
    counts = excess_counts(np.where(is_met, times, horizon + 1), lag, grid)
    p_value = _tail_p_value(times - lag) if not n_unmet else 0.0
    excess = _excess_limit(times - lag) if not n_unmet else np.inf
    bound, error, limit = _unbounded(counts, n_unmet, p_value, excess, lag)
    return MeetingBound(
        iterations=grid,
        bound=bound,
        standard_error=error,
        limit=limit,
        limit_exact=np.array([_share_limit(int((row > 0).sum()), len(row), LEVEL) for row in counts.T]),
        n_pairs=len(times),
        n_unmet=n_unmet,
        tail_p_value=p_value,
    )


def excess_counts(times: FloatArray, lag: int, iterations: NDArray[np.int64]) -> FloatArray:
    """Return N_t of each pair, shape (n, len(iterations))."""
    counts = np.ceil((times[:, None] - lag - iterations[None, :]) / lag)
    return np.asarray(np.maximum(counts, 0.0))


def _check(times: FloatArray, lag: int, horizon: int) -> None:
    if len(times) < FEWEST_PAIRS:
        raise InvalidArgumentError(
            f"meeting_times must hold at least {FEWEST_PAIRS} pairs, got {len(times)}: fewer do not tell how the tail "
            "falls. Run more pairs."
        )
    if lag < 1 or horizon < 2 * lag:
        raise InvalidArgumentError(
            f"horizon must be at least twice the lag, and the lag at least 1, got horizon {horizon} and lag {lag}. "
            "Run pairs for longer, or with a smaller lag."
        )
    is_wrong = np.isnan(times) | (times <= lag) | (np.isfinite(times) & (times > horizon))
    if is_wrong.any():
        raise InvalidArgumentError(
            f"meeting times must be above the lag {lag}, and at most the horizon {horizon} or infinite, got "
            f"{times[np.argmax(is_wrong)]}."
        )


def _unbounded(
    counts: FloatArray, n_unmet: int, p_value: float, excess: float, lag: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard error and upper limit of N_t."""
    n, n_rows = counts.shape
    if n_unmet:
        return np.full(n_rows, np.inf), np.full(n_rows, np.nan), np.full(n_rows, np.inf)
    mean, error = counts.mean(axis=0), counts.std(axis=0, ddof=1) / np.sqrt(n)
    if p_value <= _TAIL_LEVEL:
        return mean, error, np.full(n_rows, np.inf)
    half = 0.5 * (1.0 + LEVEL)  # of each of two limits whose product is taken
    limits = [
        max(
            _share_limit(int((row > 0).sum()), n, half) * (1.0 + excess / lag),
            mean_interval(row, 2 * LEVEL - 1).upper,
        )
        for row in counts.T
    ]
    return mean, error, _falling(limits)


def _falling(limits: list[float]) -> FloatArray:
    """Return the largest limit from each iteration on, which never rises with t."""
    return np.maximum.accumulate(np.array(limits)[::-1])[::-1]


def _share_limit(count: int, n: int, level: float) -> float:
    """Return the upper limit of a probability, one-sided (Clopper & Pearson 1934)."""
    return 1.0 if count >= n else float(betaincinv(count + 1, n - count, level))


def _excess_limit(times: FloatArray) -> float:
    """Return the largest upper limit of the mean excess over a threshold, if excesses are exponential."""
    ordered = np.sort(times)
    found = 0.0
    for kept in np.unique(np.geomspace(_FEWEST_IN_TAIL, max(len(times) // 2, _FEWEST_IN_TAIL), 6).astype(int)):
        excess = ordered[-kept:] - ordered[-kept - 1]
        found = max(found, 2.0 * excess.sum() / float(chi2.ppf(0.5 * (1.0 - LEVEL), 2 * kept)))
    return found


def _tail_p_value(times: FloatArray) -> float:
    """Return the p-value of too much variation (Greenwood 1946) of the excesses over the median.

    Against exponential ones; meeting times are whole numbers, and uniform noise of less than one makes their excesses
    continuous, so that ties stand for no more than they say.
    """
    rng = default_rng(20240611)  # of noise below one iteration
    kept = len(times) // 2
    ordered = np.sort(times + rng.random(len(times)))
    excess = ordered[-kept:] - ordered[-kept - 1]
    seen = float(np.sum(excess**2) / np.sum(excess) ** 2)
    return float((1 + np.sum(_null_spread(kept) >= seen)) / (_N_REPLICATES + 1))


@lru_cache(maxsize=8)
def _null_spread(n: int) -> FloatArray:
    """Return Greenwood's statistic of n exponential excesses, many times."""
    null = default_rng(20240612).exponential(size=(_N_REPLICATES, n))
    return np.asarray(np.sum(null**2, axis=1) / np.sum(null, axis=1) ** 2)
