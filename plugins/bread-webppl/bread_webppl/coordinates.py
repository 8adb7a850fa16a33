"""Values of sites as unconstrained coordinates: logarithms and logits of numbers whose support has ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bread.backends.base import FloatArray


@dataclass(frozen=True)
class Coordinates:
    """A map of each coordinate by itself.

    Values in (lower, infinity) are lower + exp(u), those in (lower, upper) are lower + (upper - lower) expit(u), and
    all others, discrete ones too, are u.

    Attributes
    ----------
    lower, upper : ndarray, shape (dim,)
        Ends of the support; -inf and inf where there are none.
    """

    lower: FloatArray
    upper: FloatArray

    @property
    def is_log(self) -> NDArray[np.bool_]:
        """Coordinates with a lower end alone."""
        return np.asarray(np.isfinite(self.lower) & ~np.isfinite(self.upper))

    @property
    def is_logit(self) -> NDArray[np.bool_]:
        """Coordinates with two ends."""
        return np.asarray(np.isfinite(self.lower) & np.isfinite(self.upper))

    def values(self, states: FloatArray) -> FloatArray:
        """Return the values of the sites at states (n, dim)."""
        values = np.array(states, dtype=np.float64)
        one, two = self.is_log, self.is_logit
        with np.errstate(over="ignore"):
            values[:, one] = self.lower[one] + np.exp(values[:, one])
        values[:, two] = self.lower[two] + (self.upper - self.lower)[two] * expit(values[:, two])
        return values

    def states(self, values: FloatArray) -> FloatArray:
        """Return the coordinates of values (n, dim); a draw that was rounded to an end stands beside it."""
        states = np.array(values, dtype=np.float64)
        one, two = self.is_log, self.is_logit
        low = np.nextafter(self.lower, np.inf)
        states[:, one] = np.log(np.maximum(states[:, one], low[one]) - self.lower[one])
        inside = np.clip(states[:, two], low[two], np.nextafter(self.upper, -np.inf)[two])
        share = (inside - self.lower[two]) / (self.upper - self.lower)[two]
        states[:, two] = logit(np.clip(share, np.finfo(float).tiny, 1.0 - 2.0**-53))
        return states

    def log_jacobian(self, states: FloatArray) -> FloatArray:
        """Return the log derivative of the values by the coordinates, summed, shape (n,)."""
        one, two = self.is_log, self.is_logit
        own = states[:, two]
        width = np.log((self.upper - self.lower)[two])
        logits = (width - np.logaddexp(0.0, own) - np.logaddexp(0.0, -own)).sum(axis=1)
        return np.asarray(states[:, one].sum(axis=1) + logits)

    def gradient(self, states: FloatArray, by_values: FloatArray) -> FloatArray:
        """Return the gradient of a log density by the coordinates, Jacobian included, from that by the values."""
        gradient = np.array(by_values)
        one, two = self.is_log, self.is_logit
        with np.errstate(over="ignore", invalid="ignore"):
            gradient[:, one] = gradient[:, one] * np.exp(states[:, one]) + 1.0
            share = expit(states[:, two])
            slope = (self.upper - self.lower)[two] * share * (1.0 - share)
            gradient[:, two] = gradient[:, two] * slope + 1.0 - 2.0 * share
        return gradient
