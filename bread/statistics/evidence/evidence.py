"""Estimators of the log evidence from annealed log weights of one data set, each with its standard error.

``forward`` and ``reverse`` are log weights (nats) of the chains of one data set, shape (chain,): of chains from the
path's base, -inf where one met a ratio of zero, and of chains from exact posterior draws, all finite. Standard errors
take the chains for independent; reverse chains that share an exact draw are not, so that those are then too small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import forward_log_weights, reverse_log_weights

FloatArray = NDArray[np.float64]

_REACH = 50.0  # nats beyond the outermost log weight: no root of Bennett's equation lies further


class Estimate(NamedTuple):
    """An estimate of the log evidence and its standard error, in nats; NaN where it is not known."""

    value: float
    standard_error: float


def mean_log_weight(log_weights: ArrayLike) -> Estimate:
    """Return the mean log weight: of forward chains E <= log evidence, of reverse chains E >= it (nats).

    The logs of single chains are averaged, so that these are bounds and no estimates: their distance is the Jeffreys
    bound. -inf where a weight is zero. Source: Habeck (2017), equation 7.
    """
    values = _forward(log_weights)
    if not np.isfinite(values).all():
        return Estimate(float("-inf"), float("nan"))
    return Estimate(float(values.mean()), _error_of_mean(values))


def average_weight(forward: ArrayLike) -> Estimate:
    """Return forward annealed importance sampling: the log of the mean weight (nats).

    The mean weight is unbiased, so that its log lies below the log evidence on average and exceeds it by log(1 / a)
    with probability at most a. The standard error is the delta method's; it means nothing where few weights make up the
    mean: `evidence_interval.weight_interval` says whether. Source: Habeck (2017), equation 4.
    """
    values = _forward(forward)
    highest = float(values.max())
    if not np.isfinite(highest):
        return Estimate(float("-inf"), float("nan"))
    weights = np.exp(values - highest)
    return Estimate(float(np.log(weights.mean()) + highest), _error_of_mean(weights) / float(weights.mean()))


def harmonic_weight(reverse: ArrayLike) -> Estimate:
    """Return reverse annealed importance sampling: minus the log of the mean inverse weight (nats).

    The inverse weights are unbiased for 1 / evidence, so that it lies above the log evidence on average. Source: Burda,
    Grosse & Salakhutdinov (2015), "Accurate and conservative estimates of MRF log-likelihood using reverse annealing".
    """
    value, error = average_weight(-_reverse(reverse))
    return Estimate(-value, error)


def cumulant_forward(forward: ArrayLike) -> Estimate:
    """Return the mean forward log weight plus half its variance (nats): right where log weights are Gaussian.

    Its error where they are not does not fall with the number of chains. Source: Habeck (2017), equation 12.
    """
    values = _forward(forward)
    return _cumulant(values, 0.5)


def cumulant_reverse(reverse: ArrayLike) -> Estimate:
    """Return the mean reverse log weight minus half its variance (nats). Source: Habeck (2017), equation 12."""
    return _cumulant(_reverse(reverse), -0.5)


def cumulant_combined(forward: ArrayLike, reverse: ArrayLike) -> Estimate:
    """Return the mean of both mean log weights plus a twelfth of the difference of variances (nats).

    Right to the third cumulant. The variances' sign is that of the work's, W = -log weight.
    Source: Hummer (2001); Habeck (2017), equation 13.
    """
    up, down = _forward(forward), _reverse(reverse)
    if not np.isfinite(up).all() or min(len(up), len(down)) < 2:
        return Estimate(float("nan"), float("nan"))
    value = (up.mean() + down.mean()) / 2.0 + (up.var(ddof=1) - down.var(ddof=1)) / 12.0
    variance = sum(
        float(x.var(ddof=1)) / (4 * len(x)) + float(x.var(ddof=1)) ** 2 / (72 * (len(x) - 1)) for x in (up, down)
    )
    return Estimate(float(value), float(np.sqrt(variance)))


def bennett(forward: ArrayLike, reverse: ArrayLike) -> Estimate:
    """Return Bennett's acceptance ratio (nats): the estimate that uses both directions best.

    The root of ``sum_forward sigmoid(w - c) = sum_reverse sigmoid(c - w)``, c = log evidence + log(n_forward /
    n_reverse): the maximum likelihood of Crooks' relation, and of the work distribution, which Habeck's histogram
    estimator is too.

    Parameters
    ----------
    forward, reverse : array_like, shape (n_forward,), (n_reverse,)

    Returns
    -------
    Estimate
        With the asymptotic standard error of independent chains (Bennett 1976, equation 10b; Shirts, Bair, Hooker &
        Pande 2003). NaN where every forward weight is zero.

    References
    ----------
    Bennett (1976), "Efficient estimation of free energy differences from Monte Carlo data", equation 12; Habeck (2017),
    equation 14.
    """
    up, down = _forward(forward), _reverse(reverse)
    finite = up[np.isfinite(up)]
    if not finite.size:
        return Estimate(float("nan"), float("nan"))
    reach = _REACH + float(np.log(len(up) + len(down)))
    low = float(min(finite.min(), down.min())) - reach
    high = float(max(finite.max(), down.max())) + reach

    def excess(level: float) -> float:
        return float(np.sum(expit(up - level)) - np.sum(expit(level - down)))

    level = float(brentq(excess, low, high))
    variance = sum(
        1.0 / _effective(values) - 1.0 / len(values) for values in (log_expit(up - level), log_expit(level - down))
    )
    return Estimate(level - float(np.log(len(up) / len(down))), float(np.sqrt(max(variance, 0.0))))


def thermodynamic_integral(betas: ArrayLike, log_ratio: ArrayLike) -> Estimate:
    """Return the integral of the mean log ratio over inverse temperature, by trapezia (nats).

    Parameters
    ----------
    betas : array_like, shape (T,)
    log_ratio : array_like, shape (chain, T)
        Along chains in one direction. Chains lag behind the tempered densities, so that it is biased as the mean log
        weights are, and by the trapezia.

    Returns
    -------
    Estimate
        -inf or NaN where a log ratio is.
    """
    values = np.asarray(log_ratio, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        each = np.asarray(np.trapezoid(values, np.asarray(betas, dtype=np.float64), axis=-1), dtype=np.float64)
    return Estimate(float(each.mean()), _error_of_mean(each) if np.isfinite(each).all() else float("nan"))


def n_effective(log_weights: ArrayLike) -> float:
    """Return (sum w)^2 / sum w^2, how many equal weights the mean is worth; 0 where all are zero."""
    values = _forward(log_weights)
    if not np.isfinite(values.max()):
        return 0.0
    return _effective(values)


def _effective(values: FloatArray) -> float:
    return float(np.exp(2.0 * logsumexp(values) - logsumexp(2.0 * values)))


def _forward(values: ArrayLike) -> FloatArray:
    return forward_log_weights(_row(values)).ravel()


def _reverse(values: ArrayLike) -> FloatArray:
    return reverse_log_weights(_row(values)).ravel()


def _row(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InvalidArgumentError(
            f"log weights of one data set must have shape (chain,), but got {array.shape}. Pass one data set at a time."
        )
    return array[None, :]


def _cumulant(values: FloatArray, factor: float) -> Estimate:
    n = len(values)
    if not np.isfinite(values).all() or n < 2:
        return Estimate(float("nan"), float("nan"))
    variance = float(values.var(ddof=1))
    error = np.sqrt(variance / n + variance**2 / (2 * (n - 1)))
    return Estimate(float(values.mean()) + factor * variance, float(error))


def _error_of_mean(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
