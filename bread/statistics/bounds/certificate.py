"""The certificate: an upper bound of the error of any probability, from log weights, finite whatever their tails.

Throughout, ``forward`` and ``reverse`` are log weights of shape (simulation, chain) in nats, as in
`bread.statistics.bounds.bounds`; K is the number of forward chains. The laws of a forward and of a reverse path have
density ratio Z / w at a path of weight w (Crooks). So the total variation between them is E_reverse[(1 - Z / w)_+],
and that of the last states, annealed draw and posterior draw, is at most as large. Z is not known. The function is
convex in Z, so an independent unbiased estimate in its place can only raise the expectation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, stdtrit

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import STAKES
from bread.statistics.bounds.betting import betting_upper_limit, unit_interval_values
from bread.statistics.bounds.bounds import log_mean_exp, log_weight_pair
from bread.statistics.bounds.groups import group_index, group_means
from bread.statistics.bounds.intervals import Interval, mean_interval

FloatArray = NDArray[np.float64]

# Differences far below this part of a probability are of no consequence, and may be rounding: where all weights are
# equal to 14 digits, which of two is the larger says nothing.
SMALLEST_STAKE = 0.01

# V_r below this count as this where spreads are measured in factors: verdicts print two decimals.
SMALLEST_ERROR = 1e-3


class FormsComparison(NamedTuple):
    """Result of `compare_forms`: raw minus conditional form of V, with its standard error, and an exact test."""

    difference: float
    standard_error: float
    log_e_value: float
    p_value: float


def error_by_simulation(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return V_r, whose expectation bounds the error of a probability computed from one annealed draw.

    Given K forward paths and one reverse path of a data set, but not which is which, path i is the reverse one with
    probability W_i = w_i / sum(w). Averaging ``(1 - Z_hat / w_reverse)_+``, Z_hat the mean of the other K weights,
    over that choice gives ``sum_i max(0, W_i - (1 - W_i) / K)`` over all K + 1 paths, which is (K + 1) / K
    times the total variation between W and equal probabilities. V_r is its mean over reverse chains j, each
    with all forward chains. K = 1 gives tanh(abs(log w_reverse - log w_forward) / 2).

    Parameters
    ----------
    forward, reverse : array_like, shape (simulation, chain)
        Log weights in nats; numbers of chains may differ. -inf is allowed forward. Reverse chains of a simulation
        may share their exact draw: each of them has the right law.

    Returns
    -------
    ndarray, shape (simulation,)
        In [0, 1]. The mean over simulations estimates V: on average over simulated data sets, any probability is
        wrong by at most V. 0.05 is close; 1 says nothing. V bounds the error of whole paths, so it is large
        where a path is long, even if its end is good. See `error_interval`, `bread.statistics.bounds.betting`.

    Raises
    ------
    InvalidArgumentError
        NaN log weights, a reverse log weight that is not finite, or different numbers of simulations.

    References
    ----------
    Crooks (1999), "Entropy production fluctuation theorem", Phys. Rev. E 60, 2721, equation 2.
    """
    return np.asarray(_both_forms(forward, reverse).conditional.mean(axis=1), dtype=np.float64)


def raw_error_by_simulation(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return the mean over reverse chains of (1 - Z_hat / w_reverse)_+, Z_hat the mean forward weight.

    Same expectation as `error_by_simulation`, more variance. It does not use Crooks' relation between the two
    directions, so a bug pulls the two forms apart: `compare_forms`. Parameters and errors are the same.

    Returns
    -------
    ndarray, shape (simulation,)
        In [0, 1].
    """
    return np.asarray(_both_forms(forward, reverse).raw.mean(axis=1), dtype=np.float64)


def error_interval(errors: ArrayLike, level: float = 0.95) -> Interval:
    """Return V, the mean of ``errors``, with a lower and an upper confidence limit, each one-sided at ``level``.

    Lower: Student t. Upper: the largest of Student t, Hall's skewness-corrected limit (`mean_interval`) and a limit of
    a lognormal mean, which widens where V_r differ by factors; but no more than `betting_upper_limit`, which holds
    for all populations. Both are cut to [0, 1].

    Parameters
    ----------
    errors : array_like, shape (simulation,)
        From `error_by_simulation`, in [0, 1], in the order in which they were computed.
    level : float
        One-sided level in (0.5, 1), so that both limits together hold at 2 level - 1.

    Returns
    -------
    Interval
        Read one limit: "upper <= max_error" shows that the draws are near, "lower > max_error" that this bound
        cannot show it. With one simulation both limits are NaN. Where all values are equal both limits are that
        value. See the notes for which populations the upper one has its level; `betting_upper_limit` has it for all.

    Raises
    ------
    InvalidArgumentError
        No value, a value outside [0, 1] or NaN, or a level outside (0.5, 1).

    Notes
    -----
    No limit that is useful can know of failures that no simulation met: where a share p of data sets has V_r near 1,
    R simulations meet none with probability (1 - p)^R. How often the upper limit covers, at level 0.975 (4000 runs at
    R = 20, 1500 at 40 and 100), and how often the larger of Student's and Hall's would:

    ============================================  ======  ======  =======  ===============
    V_r                                           R = 20  R = 40  R = 100  those, R = 20
    ============================================  ======  ======  =======  ===============
    alike                                          0.988   0.990    0.995    0.980
    lognormal, spread e^0.8                        0.967   0.974    0.985    0.946
    lognormal, spread e^1.5, median 0.003          0.954   0.965    0.979    0.896
    the same, median 0.02                          0.965   0.973    0.985    0.912
    0.9 in 5% of data sets, 0.045 in others        0.626   0.868    0.995    0.626
    0.9 in 2% of data sets, 0.045 in others        0.320   0.536    0.862    0.320
    ============================================  ======  ======  =======  ===============

    What it covers at its level whatever the population is the mean of V over all data sets but the worst share
    `bread.statistics.bounds.bounds.unseen_failure_fraction`, 0.17 at R = 20 and 0.06 at 60. Of 40 populations
    (lognormal, beta, Pareto, of two and three points) at these R the least was 0.977 at level 0.975, and 0.962 at 0.95.

    References
    ----------
    Olsson (2005), "Confidence intervals for the mean of a log-normal distribution", J. Statistics Education 13(1):
    the same limit with the standard deviation of all logarithms.
    """
    x = unit_interval_values(errors)
    if not 0.5 < level < 1.0:
        raise InvalidArgumentError(
            f"level is one-sided and must lie strictly between 0.5 and 1, but got {level}. Use 0.95 for 95%."
        )
    estimate, lower, upper = mean_interval(x, 2.0 * level - 1.0)
    if lower == upper or len(x) == 1:
        return Interval(estimate, lower, upper)
    upper = min(max(upper, _lognormal_limit(x, level)), betting_upper_limit(x, level))
    return Interval(estimate, max(lower, 0.0), max(upper, estimate))


def _lognormal_limit(x: FloatArray, level: float) -> float:
    """Return an upper limit of the mean of values whose logarithms are about normal above their median.

    It is exp(m + s^2 / 2 + t sqrt(s^2 (1 + s^2) / n)): m the median of the logarithms, s^2 twice the sum of squares
    above it over n - 1, so that a tail of small values widens nothing; t Student's quantile. The root is 0.9, 1.1, 1.1
    times the standard error of m + s^2 / 2 by the delta method at s = 0.3, 0.8, 1.5.
    """
    n, logs = len(x), np.log(np.maximum(x, SMALLEST_ERROR))
    middle = float(np.median(logs))
    variance = 2.0 * float((np.maximum(logs - middle, 0.0) ** 2).sum()) / (n - 1)
    exponent = middle + variance / 2.0 + float(stdtrit(n - 1, level)) * np.sqrt(variance * (1.0 + variance) / n)
    return float(np.exp(min(exponent, 0.0)))  # at most 1


def compare_forms(forward: ArrayLike, reverse: ArrayLike, simulation: ArrayLike | None = None) -> FormsComparison:
    """Test that raw and conditional form of V have one expectation, which Crooks' relation demands.

    Given the K + 1 paths of a reverse chain j as a set, raw_j has mean conditional_j, its range is known, and any
    stake chosen from the set is fair. So ``1 + b (raw_j - conditional_j) / room_j`` has expectation 1, with room_j
    the largest possible loss (plus 0.01, so that differences of rounding stake nothing), for abs(b) < 1. Reverse
    chains of a simulation are averaged (they are dependent), simulations multiplied, and b is averaged over
    +-{0.1, 0.25, 0.5, 0.75, 0.9}.

    Parameters
    ----------
    forward, reverse : array_like, shape (row, chain)
        As in `error_by_simulation`.
    simulation : array_like of int, shape (row,), optional
        Which simulation a row belongs to, as in `bread.statistics.bounds.alarms.theory_alarm`; its rows are averaged.

    Returns
    -------
    FormsComparison
        ``difference``: mean over simulations of raw minus conditional form, in [-1, 1]; ``standard_error``: its
        standard error, NaN with one simulation. They are for reading: few skewed values make no test.
        ``log_e_value``: the test, an e-value; ``p_value`` = min(1, 1 / e_value) is at most alpha with probability at
        most alpha, at any number of simulations and whenever one looks, if reverse chains start from exact draws.
        Below 0.01 something is broken. A large one proves little where V is near 0 or 1.

    Raises
    ------
    InvalidArgumentError
        As `error_by_simulation`.

    References
    ----------
    Vovk & Wang (2021), "E-values: calibration, combination and applications", Ann. Statist. 49, 1736.
    """
    forms = _both_forms(forward, reverse)
    gap = forms.raw - forms.conditional
    index = group_index(simulation, len(gap))
    by_simulation = group_means(gap.mean(axis=1), index)
    n = len(by_simulation)
    error = float(by_simulation.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    loss_of_more = gap / (forms.conditional + SMALLEST_STAKE)  # at least -1
    loss_of_less = gap / (forms.largest - forms.conditional + SMALLEST_STAKE)  # at most 1
    log_products = []
    for stake in STAKES:
        log_products.append(np.log1p(stake * group_means(loss_of_more.mean(axis=1), index)).sum())
        log_products.append(np.log1p(-stake * group_means(loss_of_less.mean(axis=1), index)).sum())
    log_e_value = float(log_mean_exp(log_products))
    return FormsComparison(float(by_simulation.mean()), error, log_e_value, float(np.exp(min(0.0, -log_e_value))))


def conditional_gaps(forward: ArrayLike, reverse: ArrayLike) -> FloatArray:
    """Return gaps between reverse and forward log weights that have the mean of `simulation_gaps` and less variance.

    With Delta = log w_reverse - log w_forward of one chain each, Delta is positive with probability
    sigmoid(abs(Delta)) given abs(Delta) (Crooks), so E[Delta | abs(Delta)] = abs(Delta) tanh(abs(Delta) / 2). Averaged
    over all pairs of a simulation: pairs are dependent, but each has this law, so the mean is right.

    Parameters
    ----------
    forward, reverse : array_like, shape (simulation, chain)
        As in `error_by_simulation`.

    Returns
    -------
    ndarray, shape (simulation,)
        Nats, never negative; +inf where any forward weight is zero. Its expectation is B. Like
        `error_by_simulation` it assumes Crooks' relation, so report the raw gap beside it.

    Raises
    ------
    InvalidArgumentError
        As `error_by_simulation`.
    """
    fwd, rev = log_weight_pair(forward, reverse)
    size = np.abs(rev[:, None, :] - fwd[:, :, None])
    return np.asarray((size * np.tanh(size / 2.0)).mean(axis=(1, 2)), dtype=np.float64)


class _Forms(NamedTuple):
    """Both forms of V and the largest value that the raw form could have taken, each (simulation, reverse chain)."""

    conditional: FloatArray
    raw: FloatArray
    largest: FloatArray


def _both_forms(forward: ArrayLike, reverse: ArrayLike) -> _Forms:
    """Compute both forms for every reverse chain.

    With x_i the log of w_i over the mean of all K + 1 weights, W_i - (1 - W_i) / K is expm1(x_i) / K, and the raw
    form that path i would give as the reverse one is that over W_i = exp(x_i) / (K + 1).
    """
    fwd, rev = log_weight_pair(forward, reverse)
    n_simulations, n_chains = fwd.shape
    n_reverse = rev.shape[1]
    everyone = np.broadcast_to(fwd[:, None, :], (n_simulations, n_reverse, n_chains))
    weights = np.concatenate([everyone, rev[:, :, None]], axis=2)
    weights = weights - weights.max(axis=2, keepdims=True)  # reverse ones are finite, so the maximum is
    relative = weights - logsumexp(weights, axis=2, keepdims=True) + np.log(n_chains + 1)
    conditional = np.maximum(np.expm1(relative), 0.0).sum(axis=2) / n_chains
    # 1 - Z_hat / w_i = (1 + 1 / K) (1 - exp(-x_i)); of a zero weight it is -inf, cut to 0
    raw = -np.expm1(-np.maximum(relative, 0.0)) * (n_chains + 1) / n_chains
    return _Forms(np.clip(conditional, 0.0, 1.0), np.clip(raw[:, :, -1], 0.0, 1.0), np.clip(raw.max(axis=2), 0.0, 1.0))
