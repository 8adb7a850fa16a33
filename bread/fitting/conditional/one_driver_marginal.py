"""Mixtures of normal laws like a density on a line whose values are known, by expectation maximisation.

scikit-learn fits mixtures to points: a thousand quantiles of the density would stand for it, and take two to ten times
as long. Here a grid does, each place with its own weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bread.backends.base import FloatArray

GRID = 300  # places at most
DEPTH = 16.0  # nats below the largest density that are left out
A_LAW = 0.01  # nats of divergence that one law more must save, as by BIC with 1000 draws
ENOUGH_WORSE = 2  # laws more that do not pay, in turn, after which others are not tried
SUITS = 0.01  # nats of divergence within which laws like those of other data are kept
ITERATIONS, LITTLE = 100, 1e-5  # at most; nats saved by one after which there are no more
SMALLEST_VARIANCE, SMALLEST_WEIGHT = 1e-4, 1e-4  # of a law, of a density with variance 1
WIDE, NARROW = 1.6, 0.4  # standard deviations of laws with one middle, from and to


@dataclass(frozen=True)
class Laws:
    """Normal laws of one coordinate, each array of shape (K,)."""

    weights: FloatArray
    means: FloatArray
    scales: FloatArray

    def log_density(self, at: FloatArray) -> FloatArray:
        """Return the log density (nats) at places, shape (n,)."""
        return self._terms(at)[1]

    def moved(self, mean: float, scale: float) -> Laws:
        """Return the same laws with another mean and another standard deviation of all of them."""
        own = float(self.weights @ self.means)
        ratio = scale / float(np.sqrt(self.weights @ (self.scales**2 + (self.means - own) ** 2)))
        return Laws(self.weights, mean + ratio * (self.means - own), ratio * self.scales)

    def improved(self, at: FloatArray, mass: FloatArray) -> tuple[Laws, float]:
        """Return laws nearer to masses at places, and the mean log density there."""
        share, density = self._terms(at)
        own = share * mass
        total = own.sum(axis=1)
        means = own @ at / np.maximum(total, 1e-300)
        variances = own @ (at * at) / np.maximum(total, 1e-300) - means * means
        weights = np.maximum(total, SMALLEST_WEIGHT)
        scales = np.sqrt(np.maximum(variances, SMALLEST_VARIANCE))
        return Laws(weights / weights.sum(), means, scales), float(mass @ density)

    def _terms(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return to which law each place belongs, shape (K, n), and the log density there, shape (n,)."""
        away = (at - self.means[:, None]) / self.scales[:, None]
        terms = (np.log(self.weights / self.scales) - 0.5 * np.log(2.0 * np.pi))[:, None] - 0.5 * away * away
        largest = terms.max(axis=0)
        share = np.exp(terms - largest)
        total = share.sum(axis=0)
        return share / total, largest + np.log(total)


def laws_like(at: FloatArray, log_density: FloatArray, most: int, like: Laws | None = None) -> Laws:
    """Return a mixture of normal laws like a density.

    Parameters
    ----------
    at : ndarray, shape (n,)
        Places at equal distances, rising.
    log_density : ndarray, shape (n,)
        Its logarithm there, in nats, but for a constant.
    most : int
        Laws at most. Each further one must bring the mixture nearer by `A_LAW` nats.
    like : Laws, optional
        Of a similar density: kept in number, if they come within `SUITS` nats of this one.
    """
    chosen = np.flatnonzero(log_density > log_density.max() - DEPTH)
    inside = slice(chosen[0], chosen[-1] + 1, -(-(chosen[-1] + 1 - chosen[0]) // GRID))
    at, mass = at[inside], np.exp(log_density[inside] - log_density.max())
    spacing = at[1] - at[0] if len(at) > 1 else 1.0
    mass /= mass.sum()
    mean = float(mass @ at)
    scale = max(float(np.sqrt(mass @ (at - mean) ** 2)), spacing)
    x = (at - mean) / scale
    entropy = float(mass @ np.log(np.maximum(mass, 1e-300))) - np.log(spacing / scale)  # of the density, with its sign
    best = _fitted(x, mass, entropy, most, like)
    return Laws(best.weights, mean + scale * best.means, scale * best.scales)


def _fitted(x: FloatArray, mass: FloatArray, entropy: float, most: int, like: Laws | None) -> Laws:
    """Return laws like standardised masses."""
    best = Laws(np.ones(1), np.zeros(1), np.ones(1))
    least, n_worse = entropy - float(mass @ best.log_density(x)), 0
    if like is not None and len(like.weights) > 1:
        near, divergence = _converged(x, mass, entropy, like.moved(0.0, 1.0))
        if divergence < SUITS and divergence < least - A_LAW * (len(near.weights) - 1):
            return near
    for n in range(2, most + 1):
        if least < A_LAW * (n_worse + 1):  # nothing is left to be saved
            break
        tried = [_converged(x, mass, entropy, start) for start in _starts(x, mass, n)]
        found, divergence = min(tried, key=lambda one: one[1])
        if divergence < least - A_LAW * (n_worse + 1):
            best, least, n_worse = found, divergence, 0
        else:
            n_worse += 1
            if n_worse == ENOUGH_WORSE:
                break
    return best


def _starts(x: FloatArray, mass: FloatArray, n: int) -> tuple[Laws, Laws]:
    """Return laws side by side, and laws with one middle."""
    places = np.interp((np.arange(n) + 0.5) / n, np.cumsum(mass) - 0.5 * mass, x)
    weights = np.full(n, 1.0 / n)
    return Laws(weights, places, np.full(n, 1.0 / n)), Laws(weights, 0.1 * places, np.geomspace(NARROW, WIDE, n))


def _converged(x: FloatArray, mass: FloatArray, entropy: float, laws: Laws) -> tuple[Laws, float]:
    """Return laws after expectation maximisation, and KL(density || laws) in nats."""
    reached = -np.inf
    for _ in range(ITERATIONS):
        previous, before = reached, laws
        laws, reached = laws.improved(x, mass)  # the value is that of the laws before
        if reached < previous + LITTLE:
            break
    return before, entropy - reached
