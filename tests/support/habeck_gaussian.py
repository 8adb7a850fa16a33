"""Habeck (2017), section 4: a path of Gaussians whose kernels, and so all moments of the work, are known."""

from __future__ import annotations

import numpy as np

LOG_EVIDENCE = -np.log(10.0)


def laws(n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the n_steps + 1 laws from N(20, 10^2) to N(0, 1)."""
    return np.linspace(20.0, 0.0, n_steps + 1), np.linspace(10.0, 1.0, n_steps + 1)


def log_weights(
    rng: np.random.Generator, shape: tuple[int, ...], *, n_steps: int = 10, tau: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Return forward and reverse log weights, independent; kernels keep ``tau`` of the distance to the mean."""
    mean, deviation = laws(n_steps)
    forward, reverse = np.zeros(shape), np.zeros(shape)
    x = mean[0] + deviation[0] * rng.standard_normal(shape)
    for k in range(n_steps):
        forward += _log_density(x, mean[k + 1], deviation[k + 1]) - _log_density(x, mean[k], deviation[k])
        x = _step(rng, x, mean[k + 1], deviation[k + 1], tau)
    x = mean[-1] + deviation[-1] * rng.standard_normal(shape)
    for k in reversed(range(n_steps)):
        x = _step(rng, x, mean[k + 1], deviation[k + 1], tau)
        reverse += _log_density(x, mean[k + 1], deviation[k + 1]) - _log_density(x, mean[k], deviation[k])
    return forward, reverse


def expected_log_weight(n_steps: int = 10, tau: float = 0.5) -> float:
    """Return the mean forward log weight, in closed form: the laws of the chain stay Gaussian."""
    mean, deviation = laws(n_steps)
    centre, variance, total = mean[0], deviation[0] ** 2, 0.0
    for k in range(n_steps):
        for sign, place in ((-0.5, k + 1), (0.5, k)):
            total += sign * (variance + (centre - mean[place]) ** 2) / deviation[place] ** 2
        centre = mean[k + 1] + tau * (centre - mean[k + 1])
        variance = tau**2 * variance + (1 - tau**2) * deviation[k + 1] ** 2
    return float(total)


def _log_density(x: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    return -0.5 * ((x - mean) / deviation) ** 2


def _step(rng: np.random.Generator, x: np.ndarray, mean: float, deviation: float, tau: float) -> np.ndarray:
    return mean + tau * (x - mean) + np.sqrt(1 - tau**2) * deviation * rng.standard_normal(x.shape)
