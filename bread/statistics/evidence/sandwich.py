"""Log evidence between estimates unbiased for the evidence and estimates whose reciprocals are for 1 / evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from bread.statistics.bounds.betting import check_level
from bread.statistics.bounds.bounds import log_mean_exp
from bread.statistics.evidence.evidence_interval import weight_lower_limit


class Sandwich(NamedTuple):
    """Log evidence of one data set from both sides, in nats.

    Attributes
    ----------
    log_evidence : float
        Mean of the log of the mean forward estimate and the log of the harmonic mean of the reverse ones.
    lower, upper : float
        Confidence limits, -inf and inf where a run failed.
    gap : float
        Mean log reverse minus mean log forward estimate. Its expectation is not negative, and bounds the sum of the two
        divergences between the laws of the two kinds of runs.
    """

    log_evidence: float
    lower: float
    upper: float
    gap: float


class RealLimit(NamedTuple):
    """Log evidence of data without an exact draw, in nats: an estimate and its lower confidence limit."""

    value: float
    lower: float


def sandwich(forward: ArrayLike, reverse: ArrayLike, level: float) -> Sandwich:
    """Return log evidence with limits from both sides.

    Parameters
    ----------
    forward : array_like, shape (n,)
        Logs of independent non-negative estimates whose mean is the evidence; -inf is allowed, NaN is a failure.
    reverse : array_like, shape (m,)
        Logs of positive estimates, the mean of whose reciprocals is 1 / evidence. They may depend on each other.
    level : float
        Two-sided confidence level.

    Returns
    -------
    Sandwich
        Each limit fails with probability (1 - level) / 2 at most, whatever the laws are: the lower is
        `weight_lower_limit`; the upper adds log(2 / (1 - level)) to the log of the harmonic mean, by Markov's
        inequality for the mean of the reciprocals, which needs no independence.

    References
    ----------
    Grosse, Ghahramani & Adams (2015), section 4.1 and equation 30.
    """
    below, above = real_limit(forward, level), np.asarray(reverse, dtype=np.float64)
    if np.isnan(above).any() or np.isnan(below.value):
        return Sandwich(float("nan"), below.lower, float("inf"), float("nan"))
    harmonic = float(np.log(len(above)) - logsumexp(-above))
    gap = float(above.mean() - np.asarray(forward, dtype=np.float64).mean())
    return Sandwich((below.value + harmonic) / 2.0, below.lower, harmonic + float(np.log(2.0 / (1.0 - level))), gap)


def real_limit(forward: ArrayLike, level: float) -> RealLimit:
    """Return the log of the mean estimate and its lower limit, which fails with probability (1 - level) / 2 at most.

    Parameters
    ----------
    forward : array_like, shape (n,)
        As for `sandwich`.
    level : float
        Two-sided confidence level.

    Returns
    -------
    RealLimit
        NaN and -inf where a run failed.
    """
    check_level(level)
    values = np.asarray(forward, dtype=np.float64)
    if np.isnan(values).any():
        return RealLimit(float("nan"), float("-inf"))
    value = float(log_mean_exp(values))
    return RealLimit(value, weight_lower_limit(values, (1.0 + level) / 2.0))
