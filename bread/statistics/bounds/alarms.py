"""Is anything broken? Exact tests of the relations that forward and reverse log weights obey by theory.

Valid at any sample size and for any kernel when simulations come from the prior: a rejection is a bug
(simulator and density disagree, a kernel is not invariant or not reversed, the tempering is wrong). With fitted
hyperparameters it can also mean that the start of the reverse chains was not forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp, stdtrit

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import (
    FloatArray,
    forward_log_weights,
    log_mean_exp,
    log_weight_pair,
    reverse_log_weights,
)
from bread.statistics.bounds.groups import IntArray, group_index, group_log_means, group_sums
from bread.statistics.bounds.intervals import Interval

STAKES = (0.1, 0.25, 0.5, 0.75, 0.9)  # lambda
SLOPES = (0.25, 0.5, 2.0, 4.0)  # b
SLOPE_LEVEL = 0.95


class TheoryAlarm(NamedTuple):
    """Result of `theory_alarm`; the slope is an effect size (1 in theory), NaN where it is not defined."""

    log_e_value: float
    p_value: float
    crooks_slope: float
    crooks_slope_lower: float
    crooks_slope_upper: float


def theory_alarm(forward: ArrayLike, reverse: ArrayLike, simulation: ArrayLike | None = None) -> TheoryAlarm:
    """Test Crooks' relation between forward and reverse log weights with an e-value.

    With Delta = log w_reverse - log w_forward of one chain each, p(Delta) = exp(Delta) p(-Delta), whatever the
    evidence and the data set. So these have expectation at most 1: ``1 + lambda (exp(-Delta) - 1)`` with lambda
    in (0, 1), and ``sigmoid(b Delta) / sigmoid(Delta)``. Pairs of one simulation are averaged (they are
    dependent), simulations multiplied, and the mixture over lambda and b is taken of the products.

    Parameters
    ----------
    forward, reverse : array_like, shape (row, chain)
        Log weights in nats; numbers of chains may differ. -inf is allowed forward. A row is a simulation, or one of
        several numbers of temperatures at which it was annealed.
    simulation : array_like of int, shape (row,), optional
        Which simulation a row belongs to: its rows are averaged. By default every row is a simulation of its own.
        Which rows there are may depend on the outcome of earlier simulations, never on that of their own.

    Returns
    -------
    TheoryAlarm
        p_value = min(1, 1 / e_value), valid at any sample size: below 0.01 something is broken. A large p-value
        proves little: the power is small, because large gaps hide a defect and tiny gaps mean weights that
        no longer depend on the start. crooks_slope maximises the sum of log sigmoid(b Delta), limits robust to
        dependence within simulations (Student t, 95 %): above 1 the gap is larger than theory allows for its
        spread, below 1 smaller.

    Raises
    ------
    InvalidArgumentError
        NaN log weights, a reverse log weight that is not finite, or different numbers of simulations.

    References
    ----------
    Crooks (1999), "Entropy production fluctuation theorem", Phys. Rev. E 60, 2721, equation 2.
    Vovk & Wang (2021), "E-values: calibration, combination and applications", Ann. Statist. 49, 1736.
    """
    difference = _pairwise_differences(forward, reverse)
    index = group_index(simulation, len(difference))
    log_products = []
    for stake in STAKES:
        log_products.append(_log_product(np.logaddexp(np.log1p(-stake), np.log(stake) - difference), index))
    for slope in SLOPES:
        log_products.append(_log_product(log_expit(slope * difference) - log_expit(difference), index))
    log_e_value = float(log_mean_exp(log_products))
    slope_interval = _crooks_slope(difference, index)
    return TheoryAlarm(log_e_value, float(np.exp(min(0.0, -log_e_value))), *slope_interval)


def weighted_ranks(
    log_weight_forward: ArrayLike,
    log_weight_reverse: ArrayLike,
    h_forward: ArrayLike,
    h_reverse: ArrayLike,
    uniforms: ArrayLike,
) -> FloatArray:
    """Return weighted ranks of the reverse path among the forward paths: exactly uniform if all is right.

    Given the data, among one reverse and K forward paths, path i is the reverse one with probability
    w_i / sum(w). So for any function h of a path, ``U = sum over h_i < h_reverse of w_i / sum(w) + V * (weight of
    the paths with h_i = h_reverse) / sum(w)`` is uniform; without ties the last weight is w_reverse alone.

    Parameters
    ----------
    log_weight_forward : array_like, shape (simulation, chain)
    log_weight_reverse : array_like, shape (simulation,)
        Of one reverse chain a simulation, chosen before looking.
    h_forward : array_like, shape (simulation, chain, function)
    h_reverse : array_like, shape (simulation, function)
        Functions of a path: each coordinate at both ends, log prior, log likelihood, ... Infinite is allowed.
    uniforms : array_like, shape (simulation, function)
        Independent draws V from U(0, 1).

    Returns
    -------
    ndarray, shape (simulation, function)
        In [0, 1]. Pass to `rank_p_values`. Informative where gaps are a few nats at most: otherwise the reverse
        weight dominates and U is just V.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match, or NaN.
    """
    reverse = reverse_log_weights(np.asarray(log_weight_reverse, dtype=np.float64)[:, None])
    forward = forward_log_weights(log_weight_forward)
    h_fwd, h_rev, v = (np.asarray(values, dtype=np.float64) for values in (h_forward, h_reverse, uniforms))
    n, n_chains = forward.shape
    n_functions = h_rev.shape[-1] if h_rev.ndim else 0
    expected = {
        "log_weight_reverse": (reverse.shape[:1], (n,)),
        "h_forward": (h_fwd.shape, (n, n_chains, n_functions)),
        "h_reverse": (h_rev.shape, (n, n_functions)),
        "uniforms": (v.shape, (n, n_functions)),
    }
    for name, (received, wanted) in expected.items():
        if received != wanted:
            raise InvalidArgumentError(f"{name} must have shape {wanted}, but got {received}.")
    for name, values in (("h_forward", h_fwd), ("h_reverse", h_rev)):
        if np.isnan(values).any():
            function = int(np.argwhere(np.isnan(values))[0][-1])
            raise InvalidArgumentError(f"{name} must not hold NaN, but function {function} does. Leave it out.")
    if not ((v >= 0.0) & (v <= 1.0)).all():
        raise InvalidArgumentError("uniforms must lie in [0, 1].")
    log_total = np.logaddexp(logsumexp(forward, axis=1, keepdims=True), reverse)
    probability = np.exp(forward - log_total)[:, :, None]
    below = (probability * (h_fwd < h_rev[:, None, :])).sum(axis=1)
    tied = (probability * (h_fwd == h_rev[:, None, :])).sum(axis=1) + np.exp(reverse - log_total)
    return np.asarray(np.clip(below + v * tied, 0.0, 1.0), dtype=np.float64)


def independent_share(n: int, n_effective: float) -> float:
    """Return the share of ``n`` draws, taken at random from chains, that count as independent ones.

    A mean over them has the variance of one draw times ``1 / n + (1 - 1 / n) / n_effective``: they share the error of
    the chains, which are worth ``n_effective`` independent draws. The variance of an independent share of them is as
    large.
    """
    return 1.0 / (1.0 + (n - 1) / n_effective)


def rank_p_values(ranks: ArrayLike, share: float = 1.0) -> FloatArray:
    """Return p-values of uniformity, one per function: two-sided Kolmogorov-Smirnov, exact at any sample size.

    Parameters
    ----------
    ranks : array_like, shape (simulation, function)
        In [0, 1]; independent along simulations, or worth a share of as many.
    share : float
        Of simulations that count as independent (`independent_share`).

    Returns
    -------
    ndarray, shape (function,)
        Functions are dependent: combine with `combined_p_value` before reading the smallest.
    """
    from scipy.stats import kstwo  # a second of processor time: workers start before it is needed

    u = np.asarray(ranks, dtype=np.float64)
    if u.ndim != 2 or len(u) == 0 or not ((u >= 0.0) & (u <= 1.0)).all():
        raise InvalidArgumentError(
            f"ranks must have shape (simulation, function) and values in [0, 1], but got shape {u.shape}."
        )
    n = len(u)
    u = np.sort(u, axis=0)
    steps = np.arange(n + 1)[:, None] / n
    distance = np.maximum((steps[1:] - u).max(axis=0), (u - steps[:-1]).max(axis=0))
    return np.asarray(kstwo.sf(distance, max(1, round(share * n))), dtype=np.float64)


def combined_p_value(p_values: ArrayLike) -> float:
    """Combine p-values into one that is valid under any dependence: Bonferroni, min(1, F * smallest).

    Equal to the smallest p-value after Holm's adjustment. NaN means "not tested" and does not count; NaN if
    nothing was tested.
    """
    p = np.asarray(p_values, dtype=np.float64).ravel()
    p = p[~np.isnan(p)]
    if p.size == 0:
        return float("nan")
    if not ((p >= 0.0) & (p <= 1.0)).all():
        raise InvalidArgumentError(f"p_values must lie in [0, 1], but range from {p.min()} to {p.max()}.")
    return float(min(1.0, p.size * p.min()))


def _pairwise_differences(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return Delta of all pairs of each row, shape (row, pair); +inf for a zero forward weight."""
    fwd, rev = log_weight_pair(forward, reverse)
    return np.asarray((rev[:, None, :] - fwd[:, :, None]).reshape(len(fwd), -1), dtype=np.float64)


def _log_product(log_e_values: FloatArray, index: IntArray) -> float:
    """Average e-values over all pairs of a simulation and multiply over simulations, in logs."""
    by_row = log_mean_exp(log_e_values)
    return float(group_log_means(by_row, index).sum())


def _crooks_slope(difference: FloatArray, index: IntArray) -> Interval:
    """Maximise sum log sigmoid(b Delta) over b; sandwich limits with simulations as clusters.

    Infinite Delta say nothing about a positive slope and are left out. NaN without a finite maximum (all Delta
    of one sign); limits NaN with one simulation.
    """
    delta = np.where(np.isfinite(difference), difference, 0.0)
    nan = float("nan")
    if not (delta < 0.0).any() or not (delta > 0.0).any():
        return Interval(nan, nan, nan)
    scale = float(np.abs(delta).max())
    scaled = delta / scale

    def score(b: float) -> float:
        return float((scaled * expit(-b * scaled)).sum())

    bound = 1.0
    while score(bound) > 0.0 or score(-bound) < 0.0:
        bound *= 2.0
        if bound > 1e12:
            return Interval(nan, nan, nan)
    root = float(brentq(score, -bound, bound, xtol=1e-12))
    n = int(index.max()) + 1
    slope = root / scale
    if n == 1:
        return Interval(slope, nan, nan)
    scores = group_sums((scaled * expit(-root * scaled)).sum(axis=1), index)
    information = float((scaled**2 * expit(root * scaled) * expit(-root * scaled)).sum())
    error = float(np.sqrt((scores**2).sum() * n / (n - 1))) / information / scale
    half_width = float(stdtrit(n - 1, 0.5 + SLOPE_LEVEL / 2.0)) * error
    return Interval(slope, slope - half_width, slope + half_width)
