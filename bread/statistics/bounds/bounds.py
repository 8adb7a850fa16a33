"""Bounds from annealed log weights: evidence, divergences in nats, and what they mean for a probability.

Throughout, ``forward`` and ``reverse`` are log weights of shape (simulation, chain) in nats. Simulations are
independent, chains of one simulation share its data set. A forward log weight may be -inf (a chain met a zero
likelihood); a reverse one may not, because it starts from an exact posterior draw. Everything is computed from
logs, so a constant added to all log weights of a simulation moves the evidence by it and no divergence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.intervals import Interval, mean_interval
from bread.statistics.bounds.tails import centred_tail_index, is_end_calm, is_end_reliable, is_mean_reliable

FloatArray = NDArray[np.float64]


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
    fwd, rev = log_weight_pair(forward, reverse)
    return log_evidence_upper(rev) - log_evidence_lower(fwd)


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
    return log_mean_exp(forward_log_weights(forward))


def log_mean_exp(values: ArrayLike) -> FloatArray:
    """Return the log of the mean of exponentials along the last axis, which the result lacks."""
    values = np.asarray(values, dtype=np.float64)
    return np.asarray(logsumexp(values, axis=-1) - np.log(values.shape[-1]), dtype=np.float64)


def log_evidence_upper_many(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return upper_K of each simulation, shape (simulation,): E >= log evidence, nats.

    The mean over reverse chains j, and over the forward chain i that is left out, of
    ``log[(w_reverse_j + sum of the K - 1 other forward weights) / K]``: conditional importance sampling, with
    K the number of forward chains. Every choice of i has the same expectation, so averaging the logs over i is
    valid, needs no arbitrary choice and does not depend on the order of the chains. K = 1 gives `log_evidence_upper`.
    """
    fwd, rev = log_weight_pair(forward, reverse)
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
    return mean_interval(
        log_evidence_upper(reverse) - log_evidence_lower_many(log_weight_pair(forward, reverse)[0]), level
    )


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


def unseen_failure_fraction(n_simulations: int, level: float = 0.95) -> float:
    """Return 1 - (1 - level)^(1 / R): a failure in so many of all data sets goes unseen with probability 1 - level."""
    if n_simulations < 1:
        raise InvalidArgumentError(f"n_simulations must be 1 or more, but got {n_simulations}.")
    return float(1.0 - (1.0 - level) ** (1.0 / n_simulations))


def jeffreys_is_reliable(
    base_log_ratio: Sequence[ArrayLike],
    forward: ArrayLike,
    end_log_ratio: Sequence[ArrayLike] = (),
    exact_end_log_ratio: ArrayLike = (),
) -> bool:
    """Return whether both ends leave B a finite mean, from log ratios there and forward log weights.

    Each data set's values are standardised, then pooled. NaN log ratios are left out. Log ratios at draws at beta = 1
    have an *upper* tail that spoils the mean of the reverse log weights: ``end_log_ratio``, one array a data set, from
    pilots, few and correlated, only objects to a tail that is clearly heavy, as forward log weights do;
    ``exact_end_log_ratio``, at independent exact draws, decides as ``base_log_ratio`` does.
    """
    base = centred_tail_index(base_log_ratio)
    log_weights = centred_tail_index(list(forward_log_weights(forward)))
    is_end_fine = is_end_calm(end_log_ratio) and is_end_reliable(exact_end_log_ratio)
    return is_mean_reliable(base, log_weights) and is_end_fine


def log_weight_pair(forward: ArrayLike, reverse: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both log weights, each checked, and to have the same simulations; numbers of chains may differ."""
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
