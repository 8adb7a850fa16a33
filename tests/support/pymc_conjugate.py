"""Conjugate models written in PyMC, with their exact log evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

SHORT = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
X = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])
ERROR = np.array([1.0, 1.5, 0.8])
TRIALS, ALPHA, BETA = np.array([4, 3]), 2.0, 3.0


def normal_mean() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.5, 1.5)
        pm.Normal("y", mu, 1.2, observed=np.array([0.4, 1.9, 1.1]))
    return model


def regression() -> pm.Model:
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1, shape=2)
        pm.Normal("y", X @ slope, 1.5, observed=np.array([1.0, -0.3, 2.0, 0.7, 0.1]))
    return model


def beta_binomial() -> pm.Model:
    with pm.Model() as model:
        p = pm.Beta("p", ALPHA, BETA)
        pm.Binomial("y", n=TRIALS, p=p, observed=np.array([3, 1]))
    return model


def hierarchical() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.3, 1)
        theta = pm.Normal("theta", mu, 0.7, shape=3)
        pm.Normal("y", theta, ERROR, observed=np.array([1.5, -0.2, 0.6]))
    return model


def label_mixture() -> pm.Model:
    with pm.Model() as model:
        label = pm.Bernoulli("label", 0.3)
        mean = pm.Normal("mean", 2 * label, 1)
        pm.Normal("y", mean, 1, observed=np.array([1.2, 0.6]))
    return model


def _normal(y: np.ndarray, mean: float | np.ndarray, covariance: np.ndarray) -> float:
    return float(stats.multivariate_normal(np.broadcast_to(mean, len(y)), covariance).logpdf(y))


def beta_binomial_evidence(y: np.ndarray) -> float:
    choose = gammaln(TRIALS + 1) - gammaln(y + 1) - gammaln(TRIALS - y + 1)
    return float(choose.sum() + betaln(ALPHA + y.sum(), BETA + (TRIALS - y).sum()) - betaln(ALPHA, BETA))


MODELS: dict[str, tuple[Callable[[], pm.Model], Callable[[np.ndarray], float]]] = {
    "normal_mean": (normal_mean, lambda y: _normal(y, 0.5, 1.5**2 + 1.2**2 * np.eye(3))),
    "regression": (regression, lambda y: _normal(y, 0.0, X @ X.T + 1.5**2 * np.eye(5))),
    "beta_binomial": (beta_binomial, beta_binomial_evidence),
    "hierarchical": (hierarchical, lambda y: _normal(y, 0.3, 1 + 0.7**2 * np.eye(3) + np.diag(ERROR**2))),
    "label_mixture": (
        label_mixture,
        lambda y: float(
            logsumexp([np.log(w) + _normal(y, shift, 1 + np.eye(2)) for w, shift in ((0.7, 0.0), (0.3, 2.0))])
        ),
    ),
}


def exact_of(name: str) -> Callable[[Any], float]:
    return lambda data: MODELS[name][1](data["y"])
