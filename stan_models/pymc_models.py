"""The five models of Grosse, Ancha & Roy (2016), appendix C, in PyMC: parameters and data of the Stan programs' names.

Every function takes the data block of the Stan program of its name, as `recipes.py` makes it. Parameters have the
names and shapes of the program's, so that a draw of the one is a draw of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

Data = Mapping[str, Any]


def linear_regression(data: Data) -> pm.Model:
    """Regression with normal noise; both variances unknown."""
    with pm.Model() as model:
        sigma_sq = _variance("sigma_sq")
        mean = _predictor(data)
        pm.Normal("y", mean, pt.sqrt(sigma_sq), observed=data["y"])
    return model


def logistic_regression(data: Data) -> pm.Model:
    """Regression of a 0/1 outcome; coefficients with a common, unknown scale."""
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=_predictor(data), observed=data["y"])
    return model


def clustering(data: Data) -> pm.Model:
    """Mixture of round Gaussians in two dimensions, as p(y1) p(y2 | y1), like the Stan program."""
    n_clusters = int(data["K"])
    with pm.Model() as model:
        scale_sq, sigma_sq = _variance("scale_sq"), _variance("sigma_sq")
        mu1, mu2 = (pm.Normal(name, 0, pt.sqrt(scale_sq), shape=n_clusters) for name in ("mu1", "mu2"))
        weight = pm.Dirichlet("weight", np.ones(n_clusters))
        sigma = pt.sqrt(sigma_sq)
        y1 = pm.Mixture("y1", weight, pm.Normal.dist(mu1, sigma, shape=n_clusters), observed=data["y1"])
        log_odds = pt.log(weight) - 0.5 * mu1**2 / sigma_sq + y1[:, None] * mu1 / sigma_sq
        given_y1 = pm.math.softmax(log_odds, axis=-1)
        pm.Mixture("y2", given_y1, pm.Normal.dist(mu2, sigma, shape=n_clusters), observed=data["y2"])
    return model


def time_series(data: Data) -> pm.Model:
    """Autoregression of order one; the first value is given, not modelled: `y` holds the values after it."""
    y = np.asarray(data["y"], dtype=float)
    given = np.append(y[0], np.zeros(len(y) - 2))  # of the length of the outcome, as the signature wants
    with pm.Model() as model:
        alpha, beta = pm.Normal("alpha", 0, 1), pm.Normal("beta", 1, 0.1)
        sigma_sq = _variance("sigma_sq")
        pm.CustomDist(
            "y", alpha, beta, sigma_sq, given, logp=_series_log_density, random=_series_draw,
            signature="(),(),(),(n)->(n)", observed=y[1:],
        )  # fmt: skip
    return model


def movielens(data: Data) -> pm.Model:
    """Matrix factorisation with three unknown variances and a partly observed matrix, counted down its columns."""
    n_users, n_factors, n_films = (int(data[name]) for name in ("N", "L", "D"))
    with pm.Model() as model:
        scale_u_sq, scale_v_sq, sigma_sq = (_variance(name) for name in ("scale_u_sq", "scale_v_sq", "sigma_sq"))
        u = pm.Normal("u", 0, pt.sqrt(scale_u_sq), shape=(n_users, n_factors))
        v = pm.Normal("v", 0, pt.sqrt(scale_v_sq), shape=(n_factors, n_films))
        mean = (u @ v).T.flatten()[np.asarray(data["cell"]) - 1]
        pm.Normal("y", mean, pt.sqrt(sigma_sq), observed=data["y"])
    return model


MODELS: dict[str, Callable[[Data], pm.Model]] = {
    "linear_regression": linear_regression,
    "logistic_regression": logistic_regression,
    "clustering": clustering,
    "time_series": time_series,
    "movielens": movielens,
    "movielens_uncentred": movielens,
}


def _variance(name: str) -> Any:
    return pm.InverseGamma(name, 1, 1)


def _predictor(data: Data) -> Any:
    """Return the linear predictor: an intercept and coefficients that share a scale."""
    scale = pt.sqrt(_variance("scale_sq"))
    alpha, beta = pm.Normal("alpha", 0, scale), pm.Normal("beta", 0, scale, shape=int(data["K"]))
    return alpha + pt.dot(np.asarray(data["x"], dtype=float), beta)


def _series_log_density(value: Any, alpha: Any, beta: Any, sigma_sq: Any, given: Any) -> Any:
    """Return the log density of the values after a given first one, which `given` begins with."""
    before = pt.concatenate([given[..., :1], value[..., :-1]], axis=-1)
    error = value - alpha - beta * before
    return -0.5 * (error**2 / sigma_sq + pt.log(2 * np.pi * sigma_sq)).sum(axis=-1)


def _series_draw(
    alpha: Any, beta: Any, sigma_sq: Any, given: Any, rng: np.random.Generator | None = None, size: Any = None
) -> Any:
    """Draw the values after a given first one, each given the one before it; parameters may be of several series."""
    alpha, beta, sigma_sq = (np.asarray(one, dtype=float) for one in (alpha, beta, sigma_sq))
    given, n = np.asarray(given, dtype=float), np.shape(given)[-1]
    batch = np.broadcast_shapes(alpha.shape, beta.shape, sigma_sq.shape, given.shape[:-1], tuple(size or ()))
    noise = np.sqrt(sigma_sq)[..., None] * np.random.default_rng(rng).standard_normal((*batch, n))
    y, last = np.empty((*batch, n)), given[..., 0]
    for i in range(n):
        last = alpha + beta * last + noise[..., i]
        y[..., i] = last
    return y
