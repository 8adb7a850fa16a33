"""Log evidence (nats) of the data of the small models, in closed form or by sums over one or two parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from path_models import PathModel
from scipy.special import logsumexp
from scipy.stats import halfcauchy, halfnorm, multivariate_normal, norm

POINTS = 4001  # of a grid in one parameter
PLANE = 801  # of each side of one in two


def log_evidence(name: str, model: PathModel) -> float | None:
    """Return the log evidence of a model's data; None where it is not known."""
    known: dict[str, Callable[[dict[str, Any]], float]] = {
        "regression, 5 data": _regression,
        "two modes": _two_modes,
        "funnel": _funnel,
        "half-normal scale": lambda data: _normal_sample(data, halfnorm(scale=1.0).logpdf),
        "half-Cauchy scale": lambda data: _normal_sample(data, halfcauchy(scale=1.0).logpdf),
        "schools, centred": _schools,
        "schools, non-centred": _schools,
    }
    return known[name](model.data) if name in known else None


def _regression(data: dict[str, Any]) -> float:
    x = np.asarray(data["x"])
    return float(multivariate_normal(np.zeros(len(x)), x @ x.T + np.eye(len(x))).logpdf(data["y"]))


def _two_modes(data: dict[str, Any]) -> float:
    mu = np.linspace(-8.0, 8.0, POINTS)
    level = norm(np.abs(mu), 0.3).logpdf(np.asarray(data["y"])[:, None]).sum(axis=0) + norm(0.2, 1.0).logpdf(mu)
    return _sum(level, mu)


def _funnel(data: dict[str, Any]) -> float:
    log_scale = np.linspace(-15.0, 15.0, POINTS)
    total = np.sqrt(1.0 + np.exp(2.0 * log_scale))
    level = norm(0.0, total).logpdf(np.asarray(data["y"])[:, None]).sum(axis=0) + norm(0.0, 1.5).logpdf(log_scale)
    return _sum(level, log_scale)


def _normal_sample(data: dict[str, Any], log_prior: Callable[[NDArray[Any]], NDArray[Any]]) -> float:
    """Sum over the logarithm of sigma; mu is integrated out."""
    y, log_sigma = np.asarray(data["y"]), np.linspace(-6.0, 6.0, POINTS)
    n, level = len(y), np.empty(POINTS)
    for index, sigma in enumerate(np.exp(log_sigma)):
        level[index] = multivariate_normal(np.zeros(n), sigma**2 * np.eye(n) + 4.0).logpdf(y)
    return _sum(level + log_prior(np.exp(log_sigma)) + log_sigma, log_sigma)


def _schools(data: dict[str, Any]) -> float:
    """Sum over mu and the logarithm of tau; the effects are integrated out."""
    y, error = np.asarray(data["y"]), np.asarray(data["sigma"])
    mu, log_tau = np.linspace(-40.0, 40.0, PLANE), np.linspace(-12.0, 12.0, PLANE)
    level = np.zeros((PLANE, PLANE))
    for value, sigma in zip(y, error, strict=True):
        level += norm(mu[:, None], np.sqrt(sigma**2 + np.exp(2.0 * log_tau))).logpdf(value)
    level += norm(0.0, 5.0).logpdf(mu)[:, None] + halfcauchy(scale=5.0).logpdf(np.exp(log_tau)) + log_tau
    return _sum(level, mu, log_tau)


def _sum(level: NDArray[Any], *axes: NDArray[Any]) -> float:
    return float(logsumexp(level) + sum(np.log(axis[1] - axis[0]) for axis in axes))
