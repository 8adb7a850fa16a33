"""Resampling of particles: which particle each new one comes from, also given that one line of descent survives.

Both schemes give particle i a number of children with mean K W_i and treat particles alike, whatever their places: a
particle filter's mean of weights is then unbiased, and a filter that keeps one line of descent (conditional sequential
Monte Carlo) has the law that the unbiased one has once reweighted by its estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SCHEMES = ("systematic", "multinomial")


def ancestors(log_weights: FloatArray, scheme: str, rng: Generator) -> IntArray:
    """Return the index of the particle that each new particle comes from.

    Parameters
    ----------
    log_weights : ndarray, shape (K,)
        Nats, up to a constant; at least one is finite.
    scheme : {"systematic", "multinomial"}
        Systematic resampling takes the particles in random order, so that places do not matter.
    rng : Generator

    Returns
    -------
    ndarray of int, shape (K,)

    Raises
    ------
    InvalidArgumentError
        There is no such scheme.
    """
    shares, n = _shares(log_weights), len(log_weights)
    if _is_multinomial(scheme):
        return _at(shares, rng.random(n))
    order = rng.permutation(n)
    return np.asarray(order[_at(shares[order], (rng.random() + np.arange(n)) / n)])


def ancestors_of_kept(log_weights: FloatArray, scheme: str, rng: Generator) -> IntArray:
    """Return ancestors given that new particle 0 comes from particle 0, which is the kept one.

    Parameters
    ----------
    log_weights : ndarray, shape (K,)
        Nats, up to a constant; that of particle 0 is finite.
    scheme : {"systematic", "multinomial"}
    rng : Generator

    Returns
    -------
    ndarray of int, shape (K,)
        The first is 0.

    Raises
    ------
    InvalidArgumentError
        There is no such scheme.

    Notes
    -----
    Multinomial: the others are drawn as ever. Systematic: with the kept particle first on the circle it has m or m + 1
    children as the uniform number u lies above or below r, with K W_0 = m + r; given that a child chosen at random is
    its own, u has a density proportional to the number of its children.

    References
    ----------
    Andrieu, Doucet & Holenstein (2010), "Particle Markov chain Monte Carlo methods", JRSS B 72, section 2.4.3.
    Chopin & Singh (2015), "On particle Gibbs sampling", Bernoulli 21, section 5.
    """
    shares, n = _shares(log_weights), len(log_weights)
    if _is_multinomial(scheme):
        chosen = _at(shares, rng.random(n))
        chosen[0] = 0
        return chosen
    expected = n * shares[0]
    whole = float(np.floor(expected))
    rest = expected - whole
    has_more = rng.random() * expected < rest * (whole + 1.0)
    start = rest * rng.random() if has_more else rest + (1.0 - rest) * rng.random()
    order = np.concatenate([[0], 1 + rng.permutation(n - 1)])
    chosen = order[_at(shares[order], (start + np.arange(n)) / n)]
    chosen[0] = 0  # where rounding has put the first point a hair beyond its share
    return np.asarray(chosen)


def _is_multinomial(scheme: str) -> bool:
    if scheme not in SCHEMES:
        raise InvalidArgumentError(f"resampling must be one of {', '.join(map(repr, SCHEMES))}; received {scheme!r}.")
    return scheme == "multinomial"


def _shares(log_weights: FloatArray) -> FloatArray:
    weights = np.exp(log_weights - np.max(log_weights))
    return np.asarray(weights / weights.sum())


def _at(shares: FloatArray, points: FloatArray) -> IntArray:
    """Return whose share each point of [0, 1) lies in; none of share zero."""
    total = np.cumsum(shares)
    return np.asarray(np.searchsorted(total, points * total[-1], side="right").clip(0, len(shares) - 1), dtype=np.int64)
