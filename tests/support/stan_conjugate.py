"""Conjugate models written in Stan, with exact log evidence, and eight schools; opened once a session."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.stan.model import StanModel
from bread.backends.stan.native.toolchain import Toolchain, find_toolchain
from bread.errors import MissingDependencyError

X = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])
ERROR = np.array([1.0, 1.5, 0.8])
TRIALS = np.array([4, 3])

NORMAL_MEAN = """data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0.5, 1.5);
  y ~ normal(mu, 1.2);
}
"""

REGRESSION = """data {
  int N;
  matrix[N, 2] X;
  vector[N] y;
}
parameters {
  vector[2] slope;
}
transformed parameters {
  vector[N] expected = X * slope;
}
model {
  target += normal_lpdf(slope | 0, 1);
  for (n in 1 : N) {
    target += normal_lpdf(y[n] | expected[n], 1.5);
  }
}
"""

BETA_BINOMIAL = """data {
  array[2] int trials;
  array[2] int<lower=0> y;
}
parameters {
  real<lower=0, upper=1> p;
}
model {
  p ~ beta(2, 3);
  y ~ binomial(trials, p);
}
"""

HIERARCHICAL = """data {
  vector<lower=0>[3] error;
  vector[3] y;
}
parameters {
  real mu;
  vector[3] theta;
}
model {
  y ~ normal(theta, error);
  theta ~ normal(mu, 0.7);
  mu ~ normal(0.3, 1);
}
"""

EIGHT_SCHOOLS = """// Eight schools, non-centred.
data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] eta;
}
transformed parameters {
  vector[J] theta = mu + tau * eta;
}
model {
  mu ~ normal(0, 5);
  tau ~ normal(0, 5);
  eta ~ std_normal();
  y ~ normal(theta, sigma);
}
"""
SCHOOLS = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}


def _normal(y: np.ndarray, mean: float | np.ndarray, covariance: np.ndarray) -> float:
    return float(stats.multivariate_normal(np.broadcast_to(mean, len(y)), covariance).logpdf(y))


def _beta_binomial(y: np.ndarray) -> float:
    choose = gammaln(TRIALS + 1) - gammaln(y + 1) - gammaln(TRIALS - y + 1)
    return float(choose.sum() + betaln(2 + y.sum(), 3 + (TRIALS - y).sum()) - betaln(2, 3))


@dataclass(frozen=True)
class Conjugate:
    """A program, its data, and the exact log evidence of any data set."""

    text: str
    data: dict[str, Any]
    log_evidence: Callable[[Any], float]


CONJUGATE = {
    "normal mean": Conjugate(
        NORMAL_MEAN,
        {"N": 3, "y": [0.4, 1.9, 1.1]},
        lambda data: _normal(data["y"], 0.5, 1.2**2 * np.eye(3) + 1.5**2),
    ),
    "regression": Conjugate(
        REGRESSION,
        {"N": 5, "X": X, "y": np.array([1.0, -0.3, 2.0, 0.7, 0.1])},
        lambda data: _normal(data["y"], 0.0, 1.5**2 * np.eye(5) + X @ X.T),
    ),
    "beta-binomial": Conjugate(
        BETA_BINOMIAL, {"trials": TRIALS, "y": np.array([3, 1])}, lambda data: _beta_binomial(data["y"])
    ),
    "hierarchical": Conjugate(
        HIERARCHICAL,
        {"error": ERROR, "y": [1.5, -0.2, 0.6]},
        lambda data: _normal(data["y"], 0.3, np.diag(ERROR**2 + 0.7**2) + 1.0),
    ),
}


@functools.cache
def toolchain() -> Toolchain:
    """Return the toolchain, or skip the test."""
    try:
        return find_toolchain()
    except MissingDependencyError as error:
        pytest.skip(str(error))


def opened(text: Any, data: Any = None, *, kernel: Any = None, hyperparameters: Any = None, **extra: Any) -> StanModel:
    """Open a Stan program as `bread.check` does."""
    toolchain()
    model = open_model(text, OpenOptions(kernel=kernel, hyperparameters=hyperparameters, data=data, **extra))
    assert isinstance(model, StanModel)
    return model


@functools.cache
def conjugate(name: str) -> StanModel:
    """Return an opened conjugate model."""
    return opened(CONJUGATE[name].text, CONJUGATE[name].data)


@functools.cache
def eight_schools() -> StanModel:
    """Return eight schools, opened."""
    return opened(EIGHT_SCHOOLS, SCHOOLS, observed="y")
