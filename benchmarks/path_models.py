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

POISSON_REGRESSION = """
data { int N; int K; matrix[N, K] x; array[N] int y; }
parameters { real alpha; vector[K] beta; }
model {
  alpha ~ normal(0, 1);
  beta ~ normal(0, 0.5);
  y ~ poisson_log(alpha + x * beta);
}
"""

SURVIVAL = """
data { int N; int K; matrix[N, K] x; vector<lower=0>[N] y; }
parameters { real alpha; vector[K] beta; real<lower=0> shape; }
model {
  alpha ~ normal(0, 1);
  beta ~ normal(0, 1);
  shape ~ lognormal(0, 0.5);
  y ~ weibull(shape, exp(alpha + x * beta));
}
"""

VARYING_INTERCEPTS = """
data { int N; int J; array[N] int<lower=1, upper=J> group; vector[N] x; vector[N] y; }
parameters { real mu; real<lower=0> tau; real slope; vector[J] intercept; real<lower=0> sigma; }
model {
  mu ~ normal(0, 2);
  tau ~ lognormal(-0.5, 0.5);
  slope ~ normal(0, 1);
  sigma ~ lognormal(0, 0.5);
  intercept ~ normal(mu, tau);
  y ~ normal(intercept[group] + slope * x, sigma);
}
"""


LONG = {"kernel": "hmc", "chains": 2, "max_temperatures": 32768}  # the matrix factorisation: NUTS costs 4 times as much
MOVIELENS = {"kernel": "hmc", "chains": 2, "simulations": 10, "max_temperatures": 8192}  # 503 parameters


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
    design = 0.7 * rng.normal(size=(200, 5))
    counts = rng.poisson(np.exp(0.5 + design @ np.array([0.5, -0.4, 0.3, 0.0, 0.2])))
    group = np.repeat(np.arange(10), 20)
    slopes = rng.normal(size=200)
    response = 1.0 + 0.6 * rng.normal(size=10)[group] + 0.5 * slopes + 0.8 * rng.normal(size=200)
    varying = {"N": 200, "J": 10, "group": (group + 1).tolist(), "x": slopes.tolist(), "y": response.tolist()}
    times = np.exp(0.3 + design[:, :3] @ np.array([0.6, -0.4, 0.2])) * rng.weibull(1.5, size=200)
    survival = {"N": 200, "K": 3, "x": design[:, :3].tolist(), "y": times.tolist()}
    return {
        "Poisson regression": PathModel(
            POISSON_REGRESSION, {"N": 200, "K": 5, "x": design.tolist(), "y": counts.tolist()}
        ),
        "varying intercepts": PathModel(VARYING_INTERCEPTS, varying),
        "Weibull survival": PathModel(SURVIVAL, survival),
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
        settings: dict[str, Any] = {
            "simulate_from": recipe.simulate_from, "hyperparameters": recipe.hyperparameters
        }  # fmt: skip
        settings |= {"matrix_factorisation": LONG, "movielens": MOVIELENS}.get(name, {})
        papers[name] = PathModel(recipe.program, recipe.data(None), tuple(recipe.observed), settings)
    return _own() | papers
