"""Do forward and reverse log weights come in the order that Crooks' relation says? Exact for every number of pairs.

With Delta = log w_reverse - log w_forward of one chain each, p(Delta) = exp(Delta) p(-Delta), whatever the evidence and
the data set are. So given its size, Delta is positive with probability sigmoid(|Delta|): independent coins of known
weights, one a simulation, under whatever law the sizes have. Sums over them have exact bounds (Chernoff).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import expit

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray

LARGEST_SIZE = 4.0  # nats: beyond, the order is next to certain, and one exception should not weigh more
MOST_TILT = 60.0  # of the exponent that is minimised over, times the largest weight


class CrooksOrder(NamedTuple):
    """Result of `crooks_order`; one entry a statistic, in the order of `STATISTICS`.

    Attributes
    ----------
    p_values : ndarray, shape (2,)
        Two-sided, at most as small as they should be; 1 where no pair says anything.
    effect : ndarray, shape (2,)
        Sum of observed less expected, in its standard deviations. Above 0: reverse weights are the larger ones too
        often (gaps are too large for their spread), below 0: too seldom.
    """

    p_values: FloatArray
    effect: FloatArray


STATISTICS = ("order", "order by size")


def crooks_order(forward: ArrayLike, reverse: ArrayLike) -> CrooksOrder:
    """Test how often the reverse log weight is the larger one, given how far apart the two are.

    Parameters
    ----------
    forward : array_like, shape (simulation,)
        Log weights in nats of one forward chain a simulation; -inf is allowed.
    reverse : array_like, shape (simulation,)
        Of one reverse chain from the exact draw on the same data. Finite.

    Returns
    -------
    CrooksOrder
        "order" counts; "order by size" weights each pair with |Delta| up to 4 nats, which is the score of the slope b
        in sigmoid(b Delta) at b = 1. Pairs that are equal, or of which one weight is zero, say nothing.

    Raises
    ------
    InvalidArgumentError
        NaN, a reverse log weight that is not finite, +inf forward, or shapes that differ.

    References
    ----------
    Crooks (1999), "Entropy production fluctuation theorem", Phys. Rev. E 60, 2721, equation 2.
    """
    fwd, rev = np.asarray(forward, dtype=np.float64), np.asarray(reverse, dtype=np.float64)
    if fwd.ndim != 1 or fwd.shape != rev.shape:
        raise InvalidArgumentError(
            f"forward and reverse must be one log weight a simulation each, but have shapes {fwd.shape} and "
            f"{rev.shape}."
        )
    if np.isnan(fwd).any() or np.isposinf(fwd).any() or not np.isfinite(rev).all():
        raise InvalidArgumentError(
            "log weights must be finite, or -inf forward, but "
            f"{int((np.isnan(fwd) | np.isposinf(fwd)).sum())} forward and {int((~np.isfinite(rev)).sum())} reverse "
            "ones are not."
        )
    delta = rev - fwd
    delta = delta[np.isfinite(delta) & (delta != 0.0)]
    size, is_above = np.abs(delta), delta > 0.0
    weights = (np.ones_like(size), np.minimum(size, LARGEST_SIZE))
    found = [_coins(weight, expit(size), is_above) for weight in weights]
    return CrooksOrder(np.array([p for p, _ in found]), np.array([effect for _, effect in found]))


def _coins(weight: FloatArray, probability: FloatArray, is_above: FloatArray) -> tuple[float, float]:
    """Return a two-sided p-value of sum of weight (coin - probability), and the sum in standard deviations."""
    if not len(weight):
        return 1.0, 0.0
    excess = float((weight * (is_above - probability)).sum())
    variance = float((weight**2 * probability * (1.0 - probability)).sum())
    if excess == 0.0 or variance == 0.0:
        return 1.0, 0.0
    # The tail beyond the sum, for coins that are turned over where it is negative.
    chance = probability if excess > 0.0 else 1.0 - probability
    p_value = 2.0 * np.exp(_log_tail_bound(weight, chance, abs(excess)))
    return float(min(1.0, p_value)), excess / float(np.sqrt(variance))


def _log_tail_bound(weight: FloatArray, chance: FloatArray, excess: float) -> float:
    """Return the smallest over tilts of log E exp(tilt (sum - excess)): an upper bound of the log of the tail."""

    def log_bound(tilt: float) -> float:
        moments = np.log1p(chance * np.expm1(tilt * weight)) - tilt * weight * chance
        return float(moments.sum() - tilt * excess)

    largest = MOST_TILT / float(weight.max())
    found = minimize_scalar(log_bound, bounds=(0.0, largest), method="bounded", options={"xatol": 1e-6 * largest})
    return min(0.0, float(found.fun))
