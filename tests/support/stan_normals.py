"""A Stan program of which nothing is asked but a density that is none of a reference's."""

from __future__ import annotations

import numpy as np
from scipy import stats

from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.path_arguments import Law
from tests.support.stan_engine_programs import compiled

NORMALS = """
data {
  int<lower=1> d;
}
parameters {
  vector[d] theta;
}
model {
  theta ~ normal(0.3, 1.7);
}
"""


def log_normals(states: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(states, 0.3, 1.7).sum(axis=-1)


def normals(dim: int, law: Law | None = None) -> StanInstance:
    return compiled(NORMALS).instance({"d": dim}, law=law)
