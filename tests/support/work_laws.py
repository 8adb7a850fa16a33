"""Log weights whose law is known and obeys Crooks' relation, for populations of data sets that are alike or not."""

from __future__ import annotations

import numpy as np


def gaussian_work(
    rng: np.random.Generator, deviations: np.ndarray, n_forward: int, n_reverse: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return log weights N(-s^2 / 2, s^2) forward, N(s^2 / 2, s^2) in reverse, one s a simulation: Z = 1, B = s^2."""
    s = np.asarray(deviations, dtype=float)[:, None]
    forward = -(s**2) / 2 + s * rng.normal(size=(len(s), n_forward))
    reverse = s**2 / 2 + s * rng.normal(size=(len(s), n_reverse))
    return forward, reverse


def deviations(population: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return s of ``n`` data sets.

    even: all alike (V about 0.04); large: all alike (V about 0.4); uneven: s differs by a factor e^0.8 a standard
    deviation; failing: one data set in ten has V near 1.
    """
    if population == "even":
        return np.full(n, 0.1)
    if population == "large":
        return np.full(n, 1.0)
    if population == "uneven":
        return 0.2 * np.exp(0.8 * rng.normal(size=n))
    if population == "failing":
        return np.where(rng.random(n) < 0.1, 8.0, 0.1)
    raise KeyError(population)
