"""Stan programs of different kinds on which the paths are compared, with their data."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "stan_models"))
from recipes import RECIPES

EIGHT_SCHOOLS = {
    "J": 8,
    "y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    "sigma": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
}

SCHOOLS_CENTRED = """
data { int J; vector[J] y; vector<lower=0>[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] theta; }
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  theta ~ normal(mu, tau);
  y ~ normal(theta, sigma);
}
"""

SCHOOLS_NON_CENTRED = """
data { int J; vector[J] y; vector<lower=0>[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] z; }
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  z ~ std_normal();
  y ~ normal(mu + tau * z, sigma);
}
"""

NORMAL_SAMPLE = """
data {{ int N; vector[N] y; }}
parameters {{ real mu; real<lower=0> sigma; }}
model {{
  mu ~ normal(0, 2);
  sigma ~ {scale_prior};
  y ~ normal(mu, sigma);
}}
"""

DATA_POOR_REGRESSION = """
data { int N; int K; matrix[N, K] x; vector[N] y; }
parameters { vector[K] beta; }
model {
  beta ~ std_normal();
  y ~ normal(x * beta, 1.0);
}
"""

TWO_MODES = """
data { int N; vector[N] y; }
parameters { real mu; }
model {
  mu ~ normal(0.2, 1);
  for (n in 1:N)
    y[n] ~ normal(abs(mu), 0.3);
}
"""

FUNNEL = """
data { int N; vector[N] y; }
parameters { real log_scale; vector[N] x; }
model {
  log_scale ~ normal(0, 1.5);
  x ~ normal(0, exp(log_scale));
  y ~ normal(x, 1.0);
}
"""


@dataclass(frozen=True)
class PathModel:
    """A program with its data, and settings of `bread.check` that it needs."""

    program: Any
    data: dict[str, Any]
    observed: tuple[str, ...] = ("y",)
    settings: dict[str, Any] = field(default_factory=dict)


def _own() -> dict[str, PathModel]:
    rng = np.random.default_rng(0)
    sample = {"N": 20, "y": list(rng.normal(0.5, 0.7, size=20))}
    x = rng.normal(size=(5, 3))
    poor = {"N": 5, "K": 3, "x": x.tolist(), "y": list(x @ np.array([0.5, -0.5, 1.0]) + rng.normal(size=5))}
    return {
        "regression, 5 data": PathModel(DATA_POOR_REGRESSION, poor),
        "schools, centred": PathModel(SCHOOLS_CENTRED, EIGHT_SCHOOLS),
        "schools, non-centred": PathModel(SCHOOLS_NON_CENTRED, EIGHT_SCHOOLS),
        "half-normal scale": PathModel(NORMAL_SAMPLE.format(scale_prior="normal(0, 1)"), sample),
        "half-Cauchy scale": PathModel(NORMAL_SAMPLE.format(scale_prior="cauchy(0, 1)"), sample),
        "two modes": PathModel(TWO_MODES, {"N": 4, "y": [1.1, 0.9, 1.2, 1.0]}),
        "funnel": PathModel(FUNNEL, {"N": 6, "y": [0.3, -1.2, 2.1, 0.4, -0.2, 0.9]}),
    }


def path_models() -> dict[str, PathModel]:
    """Return every model by name: the papers' and our own."""
    names = (
        "logistic_regression", "linear_regression", "clustering", "time_series", "movielens", "matrix_factorisation",
    )  # fmt: skip
    papers = {}
    for name in names:
        recipe = RECIPES[name]
        settings = {"simulate_from": recipe.simulate_from, "hyperparameters": recipe.hyperparameters}
        papers[name] = PathModel(recipe.program, recipe.data(None), tuple(recipe.observed), settings)
    return _own() | papers
