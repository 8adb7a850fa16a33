"""The Stan programs that are timed, each with its data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from measuring import SEED

LOGISTIC = """data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  alpha ~ normal(0, 2.5);
  beta ~ normal(0, 2.5);
  y ~ bernoulli_logit(alpha + x * beta);
}
"""

FACTORISATION = """data {
  int<lower=1> N;
  int<lower=1> K;
  int<lower=1> D;
  matrix[N, D] y;
}
parameters {
  matrix[N, K] u;
  matrix[K, D] v;
}
model {
  to_vector(u) ~ std_normal();
  to_vector(v) ~ std_normal();
  to_vector(y) ~ normal(to_vector(u * v), 1);
}
"""

EIGHT_SCHOOLS = """data {
  int<lower=1> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] eta;
}
model {
  mu ~ normal(0, 5);
  tau ~ normal(0, 5);
  eta ~ std_normal();
  y ~ normal(mu + tau * eta, sigma);
}
"""


class Case(NamedTuple):
    """A program, its data, and its outcome."""

    program: str
    data: dict[str, Any]
    observed: str


def case(name: str) -> Case:
    """Return a case: "logistic 768 x 8", "factorisation 50 x 5 x 25" or "eight schools"."""
    rng = np.random.default_rng(SEED)
    if name == "eight schools":
        y, sigma = [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
        return Case(EIGHT_SCHOOLS, {"J": 8, "y": y, "sigma": sigma}, "y")
    if name == "factorisation 50 x 5 x 25":
        y = rng.normal(size=(50, 5)) @ rng.normal(size=(5, 25)) + rng.normal(size=(50, 25))
        return Case(FACTORISATION, {"N": 50, "K": 5, "D": 25, "y": y}, "y")
    # Correlated predictors, so that trajectories are about as long as on real data.
    x = rng.normal(size=(768, 8)) + 0.5 * rng.normal(size=(768, 1))
    outcome = rng.random(768) < 1 / (1 + np.exp(0.5 - x @ np.linspace(-1, 1, 8)))
    return Case(LOGISTIC, {"N": 768, "K": 8, "x": x, "y": outcome.astype(int)}, "y")
