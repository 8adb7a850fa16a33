"""Bounds from annealed log weights: evidence, divergences in nats, their intervals, and when a mean exists.

Throughout, ``forward`` and ``reverse`` are log weights of shape (simulation, chain) in nats. Simulations are
independent, chains of one simulation share its data set. A forward log weight may be -inf (a chain met a zero
likelihood); a reverse one may not, because it starts from an exact posterior draw. Everything is computed from
logs, so a constant added to all log weights of a simulation moves the evidence by it and no divergence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp, stdtrit

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]

START_LIMIT = 1.0  # a generalised Pareto tail has a mean if and only if its shape is below 1
LOG_WEIGHT_LIMIT = 0.7  # few log weights: only a tail that is clearly too heavy for a stable mean counts
NORMAL_QUANTILE = 1.64  # one-sided 95 %
MINIMUM_TAIL = 5


class Interval(NamedTuple):
    """An estimate with its two-sided confidence limits, in the unit of the estimate."""

    estimate: float
    lower: float
    upper: float


class TailIndex(NamedTuple):
    """Shape k of the generalised Pareto lower tail, its standard error, and the number of values in the tail.

    The mean is finite if and only if k < 1, the variance if and only if k < 1/2; light tails (Gaussian,
    exponential) have k near or below 0.
    """

    shape: float
    standard_error: float
    n_tail: int


def forward_log_weights(values: ArrayLike) -> FloatArray:
    """Return forward log weights, checked: (simulation, chain), finite or -inf; InvalidArgumentError otherwise."""
    return _log_weights(values, "forward", "a finite number or -inf", allow_zero=True)


def reverse_log_weights(values: ArrayLike) -> FloatArray:
    """Return reverse log weights, checked: (simulation, chain), all finite; InvalidArgumentError otherwise.

    A reverse weight of zero has probability zero: its start would lie outside the support.
    """
    return _log_weights(values, "reverse", "a finite number", allow_zero=False)


def simulation_gaps(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return D_r, mean reverse minus mean forward log weight of each simulation, shape (simulation,), in nats.

    Logs of single chains are averaged, never the weights (Grosse, Ancha & Roy 2016, section 4, footnote 3).
    +inf where any forward log weight is -inf. Single gaps may be negative; their expectation may not.
    """
    fwd, rev = _pair(forward, reverse)
    return log_evidence_upper(rev) - log_evidence_lower(fwd)


def mean_interval(values: ArrayLike, level: float) -> Interval:
    """Return the mean of independent values with a confidence interval that allows for skewness.

    Lower limit: Student t. Upper limit: the larger of Student t and Hall's skewness-corrected
    ``m - 3 s / g [cbrt(1 + g (-t / sqrt(n) - g / (6 n))) - 1]``, with g the moment skewness; a few large
    values, the usual shape of gaps, then widen the upper side only.

    Parameters
    ----------
    values : array_like, shape (n,)
        Independent values, one a simulation. No NaN.
    level : float
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        With n = 1 the limits are NaN: no interval. One infinite value makes all three infinite: an outcome
        that has been seen has positive probability, so the expectation itself is infinite.

    References
    ----------
    Hall (1992), "On the removal of skewness by transformation", JRSS B 54, 221-228.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    if x.size == 0 or np.isnan(x).any():
        raise InvalidArgumentError(
            f"values must hold at least one number and no NaN, but got {x.size} values, "
            f"{int(np.isnan(x).sum())} of them NaN. Leave out simulations that did not finish."
        )
    if not 0.0 < level < 1.0:
        raise InvalidArgumentError(f"level must lie strictly between 0 and 1, but got {level}.")
    if not np.isfinite(x).all():
        if np.inf in x and -np.inf in x:
            raise InvalidArgumentError("values hold both inf and -inf: their mean is not defined.")
        infinite = float(np.inf if np.inf in x else -np.inf)
        return Interval(infinite, infinite, infinite)
    n = x.size
    scale = max(1.0, float(np.abs(x).max()) / 1e100)  # a log likelihood of -1e200 must not overflow when squared
    mean = float((x / scale).mean() * scale)
    if n == 1:
        return Interval(mean, float("nan"), float("nan"))
    deviation = float((x / scale).std(ddof=1) * scale)
    if deviation == 0.0:
        return Interval(mean, mean, mean)
    quantile = float(stdtrit(n - 1, 0.5 + level / 2.0)) / np.sqrt(n)
    standardised = (x - mean) / deviation / np.sqrt(1.0 - 1.0 / n)
    skewness = float(np.mean(standardised**3))
    upper = mean + deviation * quantile
    if abs(skewness) > 1e-6:  # below, Hall's limit equals Student's to rounding
        root = np.cbrt(1.0 + skewness * (-quantile - skewness / (6.0 * n)))
        upper = max(upper, mean - 3.0 * deviation / skewness * float(root - 1.0))
    return Interval(mean, mean - deviation * quantile, upper)


def alpha_level(attempt: int) -> float:
    """Return the confidence level of confirmation number ``attempt`` (0, 1, ...): 1 - 0.05 / 2**attempt.

    Each failed confirmation halves the error that the next may spend. The verdict reads one end of a two-sided
    interval, so the one-sided errors sum to 2.5 % + 1.25 % + ... <= 5 %.
    """
    if attempt < 0:
        raise InvalidArgumentError(f"attempt must be 0 or more, but got {attempt}.")
    return 1.0 - 0.05 / 2.0**attempt


def jeffreys_bound(forward: ArrayLike, reverse: ArrayLike, level: float) -> Interval:
    """Bound the Jeffreys divergence between annealed draws and the posterior, in nats.

    B = E[reverse] - E[forward] >= KL(q||p) + KL(p||q), q the law of a forward chain's last state, p the
    posterior; an average over simulated data sets (Grosse, Ancha & Roy 2016, section 4).

    Returns
    -------
    Interval
        inf if any forward log weight is -inf. Below 1: close. B is an upper bound: a large one means "not
        shown to be near". Meaningless where `is_mean_reliable` is False.
    """
    return mean_interval(simulation_gaps(forward, reverse), level)


def log_evidence_lower(forward: ArrayLike) -> FloatArray:
    """Return the mean forward log weight of each simulation, shape (simulation,): E <= log evidence, nats."""
    return np.asarray(forward_log_weights(forward).mean(axis=1), dtype=np.float64)


def log_evidence_upper(reverse: ArrayLike) -> FloatArray:
    """Return the mean reverse log weight of each simulation, shape (simulation,): E >= log evidence, nats."""
    return np.asarray(reverse_log_weights(reverse).mean(axis=1), dtype=np.float64)


def log_evidence_lower_many(forward: ArrayLike) -> FloatArray:
    """Return lower_K, the log of the mean of K forward weights, shape (simulation,): E <= log evidence, nats.

    Tighter than `log_evidence_lower`; -inf only if all K are. Source: Grosse, Ghahramani & Adams (2015), section 4.1.
    """
    fwd = forward_log_weights(forward)
    return np.asarray(logsumexp(fwd, axis=1) - np.log(fwd.shape[1]), dtype=np.float64)


def log_evidence_upper_many(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return upper_K of each simulation, shape (simulation,): E >= log evidence, nats.

    The mean over reverse chains j, and over the forward chain i that is left out, of
    ``log[(w_reverse_j + sum of the K - 1 other forward weights) / K]``: conditional importance sampling, with
    K the number of forward chains. Every choice of i has the same expectation, so averaging the logs over i is
    valid, needs no arbitrary choice and does not depend on the order of the chains. K = 1 gives `log_evidence_upper`.
    """
    fwd, rev = _pair(forward, reverse)
    n_chains = fwd.shape[1]
    total = np.zeros(len(fwd))
    for left_out in range(n_chains):
        if n_chains == 1:
            mixed = rev
        else:
            others = logsumexp(np.delete(fwd, left_out, axis=1), axis=1, keepdims=True)
            mixed = np.logaddexp(rev, others)
        total += mixed.mean(axis=1)
    return np.asarray(total / n_chains - np.log(n_chains), dtype=np.float64)


def kl_exact_approx(forward: ArrayLike, reverse: ArrayLike, level: float) -> Interval:
    """Bound KL(p||q) <= E[reverse] - lower_K in nats: large if annealed draws miss posterior mass.

    lower_K has a finite mean once K exceeds the inverse tail index, so this certificate survives where the
    Jeffreys bound has no finite mean.
    """
    return mean_interval(log_evidence_upper(reverse) - log_evidence_lower_many(_pair(forward, reverse)[0]), level)


def kl_approx_exact(forward: ArrayLike, reverse: ArrayLike, level: float) -> Interval:
    """Bound KL(q||p) <= upper_K - E[forward] in nats: large if annealed draws lie where the posterior has no mass."""
    return mean_interval(log_evidence_upper_many(forward, reverse) - log_evidence_lower(forward), level)


def jeffreys_resampled(forward: ArrayLike, reverse: ArrayLike, level: float) -> Interval:
    """Bound the Jeffreys divergence of one draw *resampled* from K chains by weight: upper_K - lower_K, nats."""
    return mean_interval(log_evidence_upper_many(forward, reverse) - log_evidence_lower_many(forward), level)


def total_variation_from_jeffreys(jeffreys: float) -> float:
    """Return the largest V with 4 V artanh(V) <= ``jeffreys`` (nats), clipped to [0, 1].

    On average over data sets, a probability computed from one draw is wrong by at most V. Tight: reached by
    two-point laws; V = 0.479, 0.648, 0.834 at 1, 2, 4 nats. inf gives 1, NaN gives NaN, negative values 0.
    """
    if np.isnan(jeffreys):
        return float("nan")
    if jeffreys <= 0.0:
        return 0.0
    quarter = jeffreys / 4.0
    if quarter > 50.0:  # 1 - V < 1e-40
        return 1.0
    # With x = artanh(V): x tanh(x) = quarter, and x (1 - tanh(x)) < 0.3 brackets x.
    x = float(brentq(lambda a: a * np.tanh(a) - quarter, 0.0, quarter + 1.0, xtol=1e-14))
    return float(np.tanh(x))


def total_variation_from_kl(kl: float) -> float:
    """Return min(sqrt(kl / 2), sqrt(1 - exp(-kl))): Pinsker's and Bretagnolle & Huber's bounds, kl in nats.

    inf gives 1, NaN gives NaN, negative values 0.
    """
    divergence = max(float(kl), 0.0) if not np.isnan(kl) else float("nan")
    return float(min(np.sqrt(divergence / 2.0), np.sqrt(-np.expm1(-divergence))))


def total_variation(jeffreys: float, kl_exact_approx: float, kl_approx_exact: float) -> float:
    """Return the smallest valid bound of the error of a probability, from the upper ends of the intervals.

    Parameters
    ----------
    jeffreys, kl_exact_approx, kl_approx_exact : float
        Upper limits in nats; NaN stands for "not available" (no interval, or an unreliable mean).

    Returns
    -------
    float
        In [0, 1]; NaN if nothing is available. 1 says nothing; 0.05 says that on average over data sets no
        probability is off by more than 0.05.
    """
    bounds = [
        total_variation_from_jeffreys(jeffreys),
        total_variation_from_kl(kl_exact_approx),
        total_variation_from_kl(kl_approx_exact),
    ]
    return min((bound for bound in bounds if not np.isnan(bound)), default=float("nan"))


def unseen_failure_fraction(n_simulations: int) -> float:
    """Return 1 - 0.05 ** (1 / R): a failure in up to this fraction of data sets goes unseen with probability 5 %."""
    if n_simulations < 1:
        raise InvalidArgumentError(f"n_simulations must be 1 or more, but got {n_simulations}.")
    return float(1.0 - 0.05 ** (1.0 / n_simulations))


def tail_index(samples: ArrayLike) -> TailIndex:
    """Estimate the index of the *lower* tail by fitting a generalised Pareto law to the lowest values.

    The tail is the min(n / 5, 3 sqrt(n)) lowest values, as in Vehtari et al. (2024), "Pareto smoothed
    importance sampling"; the estimator is the quasi-Bayesian one of Zhang & Stephens (2009), without shrinkage.

    Parameters
    ----------
    samples : array_like
        Any shape. Log weights should be centred by the median of their simulation first. No NaN, no +inf.

    Returns
    -------
    TailIndex
        shape = inf where any sample is -inf (the mean is -inf); shape = -inf where the lowest value repeats
        so often that the tail ends there; NaN where fewer than five values make up the tail (n < 25).
    """
    x = np.asarray(samples, dtype=np.float64).ravel()
    n_wrong = int((np.isnan(x) | np.isposinf(x)).sum())
    if n_wrong:
        raise InvalidArgumentError(f"samples must be finite or -inf, but {n_wrong} of {x.size} are NaN or +inf.")
    n_tail = int(np.ceil(min(x.size / 5.0, 3.0 * np.sqrt(x.size))))
    n_infinite = int(np.isneginf(x).sum())
    if n_infinite:
        return TailIndex(float("inf"), 0.0, max(n_tail, n_infinite))
    if n_tail < MINIMUM_TAIL:
        return TailIndex(float("nan"), float("nan"), n_tail)
    lowest = np.partition(x, n_tail)[: n_tail + 1]
    exceedances = np.sort(lowest.max() - lowest)
    exceedances = exceedances[exceedances > 0.0]
    if exceedances.size == 0:
        return TailIndex(float("-inf"), 0.0, n_tail)
    if exceedances.size < MINIMUM_TAIL:
        return TailIndex(float("nan"), float("nan"), int(exceedances.size))
    shape = _pareto_shape(exceedances / exceedances[-1])
    return TailIndex(shape, float(max(1.0 + shape, 0.5) / np.sqrt(exceedances.size)), int(exceedances.size))


def is_mean_reliable(start: TailIndex, log_weights: TailIndex) -> bool:
    """Return whether the forward log weights have a finite mean, so that the Jeffreys bound means anything.

    Parameters
    ----------
    start : TailIndex
        Of log ratios at thousands of draws from the path's start. It decides: False unless k < 1 with 95 %
        confidence (k + 1.64 standard errors < 1).
    log_weights : TailIndex
        Of the forward log weights, centred per simulation. Too few to decide, so they only object to a tail
        that is clearly heavy: k - 1.64 standard errors > 0.7.

    Returns
    -------
    bool
        NaN (not estimated) objects to nothing. Measured: False in under 1 % of runs for Gaussian log weights (80) and
        starts (2000), in over 99 % where the ratio has no mean (-1 / sigma**2, sigma half-normal); also in
        about 30 % with a finite mean near the limit (k = 2/3).
    """
    start_objects = start.shape + NORMAL_QUANTILE * start.standard_error >= START_LIMIT
    weights_object = log_weights.shape - NORMAL_QUANTILE * log_weights.standard_error > LOG_WEIGHT_LIMIT
    return not (start_objects or weights_object)


def jeffreys_is_reliable(
    start_log_ratio: Sequence[ArrayLike], forward: ArrayLike, end_log_ratio: Sequence[ArrayLike] = ()
) -> bool:
    """Return `is_mean_reliable` from log ratios at the ends (one array a data set) and forward log weights.

    Each data set's values are centred by their median, then pooled. NaN log ratios are left out. ``end_log_ratio``, at
    draws at beta = 1, has an *upper* tail that spoils the mean of the reverse log weights; few correlated draws only
    object to a tail that is clearly heavy, as forward log weights do.
    """
    start = centred_tail_index(start_log_ratio)
    log_weights = centred_tail_index(list(forward_log_weights(forward)))
    return is_mean_reliable(start, log_weights) and is_end_calm(end_log_ratio)


def is_end_calm(end_log_ratio: Sequence[ArrayLike]) -> bool:
    """Return whether the upper tail of log ratios at beta = 1 leaves the reverse log weights a mean."""
    end = centred_tail_index([-np.asarray(values, dtype=np.float64) for values in end_log_ratio])
    return not end.shape - NORMAL_QUANTILE * end.standard_error > LOG_WEIGHT_LIMIT


def centred_tail_index(groups: Sequence[ArrayLike]) -> TailIndex:
    """Return `tail_index` of values pooled over groups, each centred by the median of its finite values; no NaN."""
    centred = [np.zeros(0)]
    for group in groups:
        values = np.asarray(group, dtype=np.float64).ravel()
        values = values[~np.isnan(values)]
        finite = values[np.isfinite(values)]
        centred.append(values - (np.median(finite) if finite.size else 0.0))
    return tail_index(np.concatenate(centred))


def _pareto_shape(exceedances: FloatArray) -> float:
    """Return the generalised Pareto shape of sorted positive exceedances (Zhang & Stephens 2009, section 3)."""
    n = exceedances.size
    n_grid = 30 + int(np.sqrt(n))
    quartile = exceedances[int(n / 4.0 + 0.5) - 1]
    quantiles = (np.arange(n_grid) + 0.5) / n_grid
    grid = 1.0 / exceedances[-1] + (1.0 - 1.0 / np.sqrt(quantiles)) / (3.0 * quartile)
    grid = grid[grid != 0.0]
    shapes = np.log1p(-grid[:, None] * exceedances).mean(axis=1)
    log_likelihood = n * (np.log(-grid / shapes) - shapes - 1.0)
    weights = np.exp(log_likelihood - logsumexp(log_likelihood))
    return float(np.log1p(-float(weights @ grid) * exceedances).mean())


def _pair(forward: ArrayLike, reverse: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both log weights, checked to have the same simulations; numbers of chains may differ."""
    fwd, rev = forward_log_weights(forward), reverse_log_weights(reverse)
    if len(fwd) != len(rev):
        raise InvalidArgumentError(
            f"forward and reverse must have the same simulations, but got shapes {fwd.shape} and {rev.shape}."
        )
    return fwd, rev


def _log_weights(values: ArrayLike, direction: str, rule: str, *, allow_zero: bool) -> FloatArray:
    """Check shape and values of log weights."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise InvalidArgumentError(
            f"{direction} log weights must have shape (simulation, chain) and not be empty, but got {array.shape}."
        )
    is_wrong = ~np.isfinite(array)
    if allow_zero:
        is_wrong &= ~np.isneginf(array)
    if is_wrong.any():
        simulation, chain = (int(i) for i in np.argwhere(is_wrong)[0])
        raise InvalidArgumentError(
            f"{direction} log weight [simulation {simulation}, chain {chain}] must be {rule}, but is "
            f"{array[simulation, chain]} ({int(is_wrong.sum())} such values). A failed density or start is an "
            "error to report; leave out only simulations that did not finish."
        )
    return array
