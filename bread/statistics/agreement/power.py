"""What the comparison of the user's draws with the annealed ones could have seen: smallest shift, missing mass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import kstwo

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.content import N_TESTS, QUANTILES
from bread.statistics.agreement.content_counts import content_p_values, count_at_least, count_at_most, quantile_nodes
from bread.statistics.agreement.disagreement import LEVEL, N_FAMILIES
from bread.statistics.bounds.bounds import FloatArray

ONE_SD = float(2.0 * ndtr(0.5) - 1.0)  # largest error of P(x <= c) where a normal quantity is off by one sd: 0.38
LARGEST_SHIFT = 10.0  # standard deviations: the largest effect that is looked for


class Setting(NamedTuple):
    """What the power of the comparison depends on.

    Attributes
    ----------
    n_annealed : int
        Independent annealed draws.
    n_effective : float
        Effective size of the user's draws.
    n_quantities : int
        How many have interval contents (d).
    n_tested : int
        How many the test of equality looks at: d, the log density, products of pairs.
    error : float
        V's limit; 0 for a difference of any size.
    """

    n_annealed: int
    n_effective: float
    n_quantities: int
    n_tested: int
    error: float


class Detectable(NamedTuple):
    """Result of `detectable`.

    Attributes
    ----------
    shift : float
        Smallest shift of one quantity, in posterior standard deviations, that is seen; inf if none below 10 is.
    missing_mass : float
        Smallest posterior mass without any of the user's draws, beyond all of them in one quantity, that is seen;
        inf if none is.
    """

    shift: float
    missing_mass: float


def detectable(setting: Setting, *, power: float = 0.9) -> Detectable:
    """Return what shift and what missing mass the comparison would have seen with probability ``power``.

    Normal posterior, one quantity wrong, all others right. Approximate: of the ways to see it only the
    best is counted, one of three quantiles or the test of equality at one point, which makes it cautious; that the
    effective size is an estimate, smaller than the true one more often than not, makes it a little less so.

    Parameters
    ----------
    setting : Setting
    power : float
        In (0, 1).

    Returns
    -------
    Detectable

    Raises
    ------
    InvalidArgumentError
        If a number of ``setting`` or ``power`` is out of range.
    """
    _check(setting)
    if not 0.0 < power < 1.0:
        raise InvalidArgumentError(f"power must lie strictly between 0 and 1, but got {power}.")
    limits = _content_limits(setting), _equality_limit(setting)
    return Detectable(
        _smallest(lambda shift: _power_of_shift(shift, setting, *limits) - power, LARGEST_SHIFT),
        _smallest(lambda mass: _power_of_missing_mass(mass, setting, *limits) - power, 1.0),
    )


def detectable_probability(setting: Setting, *, power: float = 0.9) -> float:
    """Return the smallest error of a probability P(x <= c) that the comparison would have seen, for any law.

    Of a discrete quantity a shift says nothing: the test of equality alone counts, at the probability where it sees
    least. A normal quantity shifted by one standard deviation is off by `ONE_SD`. inf if no error is seen.
    """
    _check(setting)
    largest = _equality_limit(setting)

    def excess(off: float) -> float:
        return _equality_power((1.0 - off) / 2.0, (1.0 + off) / 2.0, setting, largest) - power

    return _smallest(excess, 1.0)


def power_of_shift(shift: float, setting: Setting) -> float:
    """Return the probability to see a shift of one normal quantity by ``shift`` standard deviations."""
    _check(setting)
    return _power_of_shift(shift, setting, _content_limits(setting), _equality_limit(setting))


def power_of_missing_mass(mass: float, setting: Setting) -> float:
    """Return the probability to see that posterior mass ``mass`` beyond all the user's draws is missing."""
    _check(setting)
    return _power_of_missing_mass(mass, setting, _content_limits(setting), _equality_limit(setting))


def _power_of_shift(shift: float, setting: Setting, limits: FloatArray, largest: float) -> float:
    # A user's quantile with probability u below it, of the user's law, has ndtr(ndtri(u) + shift) of the posterior.
    contents = _content_power(lambda u: np.asarray(ndtr(ndtri(u) + abs(shift))), setting, limits)
    half = abs(shift) / 2.0
    return max(contents, _equality_power(float(ndtr(-half)), float(ndtr(half)), setting, largest))


def _power_of_missing_mass(mass: float, setting: Setting, limits: FloatArray, largest: float) -> float:
    contents = _content_power(lambda u: (1.0 - mass) * u, setting, limits)
    return max(contents, _equality_power(1.0, 1.0 - mass, setting, largest))


def _content_limits(setting: Setting) -> FloatArray:
    """Return for each quantile the largest count that is too low and the smallest that is too high, (3, 2)."""
    n, allowed = setting.n_annealed, LEVEL / N_FAMILIES / (N_TESTS * setting.n_quantities)
    limits = []
    for nominal in QUANTILES:

        def is_rejected(count: int, nominal: float = nominal) -> bool:
            return bool(content_p_values(count, n, setting.n_effective, nominal, error=setting.error) <= allowed)

        # P-values fall on either side of the count that is expected.
        middle = round(nominal * n)
        n_low = bisect_left(range(middle), True, key=lambda count: not is_rejected(count))
        first_high = middle + bisect_left(range(middle, n + 1), True, key=is_rejected)
        limits.append((n_low - 1.0, float(first_high)))
    return np.array(limits)


def _content_power(content: Callable[[FloatArray], FloatArray], setting: Setting, limits: FloatArray) -> float:
    """Return the best quantile's probability that its count is outside; ``content`` maps user's to annealed shares."""
    nodes, weights = quantile_nodes(setting.n_effective, np.array(QUANTILES))
    probability = np.clip(content(nodes), 0.0, 1.0)
    n = setting.n_annealed
    outside = count_at_most(limits[:, :1], n, probability) + count_at_least(limits[:, 1:], n, probability)
    return float((weights * outside).sum(axis=1).max())


def _equality_limit(setting: Setting) -> float:
    """Return the difference of distribution functions from which on the test of equality rejects."""
    n, m = setting.n_annealed, setting.n_effective
    pooled = max(1.0, round(n * m / (n + m)))
    return float(kstwo.isf(LEVEL / N_FAMILIES / setting.n_tested, pooled)) + setting.error


def _equality_power(user: float, annealed: float, setting: Setting, largest: float) -> float:
    """Return the probability that the difference is too large at one x, where both have the probabilities given."""
    deviation = np.sqrt(user * (1.0 - user) / setting.n_effective + annealed * (1.0 - annealed) / setting.n_annealed)
    excess = abs(user - annealed) - largest
    return float(ndtr(excess / deviation)) if deviation > 0.0 else float(excess >= 0.0)


def _smallest(excess: Callable[[float], float], largest: float) -> float:
    """Return where an increasing function crosses 0 on [0, largest]; inf if it does not."""
    if excess(largest) < 0.0:
        return float("inf")
    if excess(0.0) >= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, largest, xtol=1e-4))


def _check(setting: Setting) -> None:
    if min(setting.n_annealed, setting.n_quantities, setting.n_tested) < 1 or not setting.n_effective > 0.0:
        raise InvalidArgumentError(f"numbers of draws and quantities must be positive, but got {setting}.")
    if not 0.0 <= setting.error < 1.0:
        raise InvalidArgumentError(f"error must be at least 0 and below 1, but got {setting.error}.")
