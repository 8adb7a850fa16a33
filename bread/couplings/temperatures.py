"""The law of a random inverse temperature, and unbiased estimates of a log ratio of normalising constants.

With f_lambda the unnormalised densities of a path, path sampling (Gelman & Meng 1998) says that log Z_1 - log Z_0 is
the integral over lambda in [0, 1] of E_lambda[d log f_lambda / d lambda]. At one random lambda with density q, an
unbiased estimate of that expectation divided by q(lambda) is an unbiased estimate of the log ratio (Rischard, Jacob &
Pillai 2018, equation 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TemperatureLaw:
    """A random place u with a density that is constant between knots, and the inverse temperature lambda = u^power.

    A power above 1 looks closely at small inverse temperatures, where expectations of log likelihoods under a wide
    prior are huge: where P(|log ratio| > x) falls off as x^-a under the base of the path, estimates have a variance
    only if power * a > 1.

    Attributes
    ----------
    knots : ndarray, shape (n,)
        Places, from 0 to 1, increasing.
    shares : ndarray, shape (n - 1,)
        Probability of each interval; they sum to 1.
    power : float
    """

    knots: FloatArray
    shares: FloatArray
    power: float = 1.0

    def draw(self, uniforms: FloatArray) -> FloatArray:
        """Return places, one for each uniform number."""
        return np.asarray(np.interp(uniforms, np.concatenate([[0.0], np.cumsum(self.shares)]), self.knots))

    def density(self, places: FloatArray) -> FloatArray:
        """Return the density of the places."""
        index = np.clip(np.searchsorted(self.knots, places, side="right") - 1, 0, len(self.shares) - 1)
        return np.asarray((self.shares / np.diff(self.knots))[index])

    def inverse_temperature(self, places: FloatArray) -> FloatArray:
        """Return lambda."""
        return np.asarray(np.asarray(places) ** self.power)

    def slope(self, places: FloatArray) -> FloatArray:
        """Return d lambda / d u."""
        return np.asarray(self.power * np.asarray(places) ** (self.power - 1.0))


def law_from_spread(knots: ArrayLike, spread: ArrayLike, *, power: float = 1.0, even: float = 0.0) -> TemperatureLaw:
    """Return the law whose density follows ``spread``, as mean over both ends of an interval.

    Parameters
    ----------
    knots : array_like, shape (n,)
    spread : array_like, shape (n,)
        Root of the second moment of estimates of d log Z / d u at each knot: the density proportional to it has the
        least variance where all places cost the same; else it is divided by the root of the cost.
    power : float
    even : float
        Part of the probability that is spread evenly, so that a moment that was underestimated costs little.

    Returns
    -------
    TemperatureLaw

    References
    ----------
    Rischard, Jacob & Pillai (2018), "Unbiased estimation of log normalizing constants with applications to Bayesian
    cross-validation", arXiv:1810.01382, section 2.4.2 and equation 10.
    """
    at, roots = np.asarray(knots, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    widths = np.diff(at)
    is_right = len(at) == len(roots) > 1 and at[0] == 0.0 and at[-1] == 1.0 and (widths > 0.0).all()
    if not (is_right and np.isfinite(roots).all() and (roots >= 0.0).all()):
        raise InvalidArgumentError(
            "knots must increase from 0 to 1, with a finite spread of at least 0 at each; got knots "
            f"{at.tolist()} and spread {roots.tolist()}."
        )
    mass = widths * 0.5 * (roots[1:] + roots[:-1])
    followed = mass / mass.sum() if mass.sum() > 0.0 else widths
    shares = (1.0 - even) * followed + even * widths
    return TemperatureLaw(at, shares / shares.sum(), power)


def log_ratio_estimates(
    law: TemperatureLaw, places: FloatArray, expectations: FloatArray, centre: ArrayLike | None = None
) -> FloatArray:
    """Return unbiased estimates of log Z_1 - log Z_0, nats, shape (n,).

    Parameters
    ----------
    law : TemperatureLaw
    places : ndarray, shape (n,)
        Drawn from the law.
    expectations : ndarray, shape (n,)
        Unbiased estimates of E_lambda[d log f / d lambda] at each.
    centre : array_like, shape (len(law.knots),), optional
        A guess of d log Z / d u at the knots that knows nothing of these estimates, joined by straight lines: its
        integral is known, and only the difference from it is estimated. Any guess leaves estimates unbiased; a good one
        takes out the variance that comes from where lambda falls. None is the estimator of the paper.
    """
    slopes = law.slope(places) * expectations
    if centre is None:
        return np.asarray(slopes / law.density(places))
    guess = np.asarray(centre, dtype=np.float64)
    difference = slopes - np.interp(places, law.knots, guess)
    return np.asarray(np.trapezoid(guess, law.knots) + difference / law.density(places))
