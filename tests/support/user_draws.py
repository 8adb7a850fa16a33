"""Draws as a user would bring them: autocorrelated chains with a known effective size, in several laws."""

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr
from scipy.stats import bernoulli, gamma, poisson, t


def autoregression(rng, correlation, shape):
    """Return stationary standard normal AR(1) draws, shape (chain, draw, component)."""
    noise = rng.normal(size=shape) * np.sqrt(1 - correlation**2)
    noise[:, 0] = rng.normal(size=(shape[0], shape[2]))
    return lfilter([1], [1, -correlation], noise, axis=1)


def correlation_for(n_draws, n_effective):
    """Return the AR(1) coefficient with which the mean of ``n_draws`` is worth ``n_effective``."""
    return (n_draws - n_effective) / (n_draws + n_effective)


LAWS = {
    "normal": lambda z: z,
    "cauchy": lambda z: t.ppf(ndtr(z), 1),
    "gamma": lambda z: gamma.ppf(ndtr(z), 0.5),
    "poisson": lambda z: poisson.ppf(ndtr(z), 1.5),
    "bernoulli": lambda z: bernoulli.ppf(ndtr(z), 0.3),
    "zero-inflated": lambda z: np.maximum(z, -0.3),
}


def hopping(rng, weight, stay, shape):
    """Return chains that stay about ``stay`` draws in a mode; the mode at 6 has ``weight``. Independent otherwise."""
    moves = rng.random(shape) < 1.0 / stay
    fresh = rng.random(shape) < weight
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(shape[1])[None, :, None], 0), axis=1)
    return rng.normal(size=shape) + 6.0 * np.take_along_axis(fresh, last, axis=1)
