"""Mixtures one of whose weights rounds to exactly 0: the component that is left is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.stan.model import StanModel
from tests.support.stan_conjugate import opened

pytestmark = pytest.mark.stan
# a mixture written in each of the three ways that bread reads; inv_logit(a) rounds to 1 or 0 at a = 800 and -800
PROGRAM = """data {
  int<lower=1> N;
  real centre;
  vector[N] x;
  vector[N] y;
  array[N] int<lower=0> k;
}
parameters {
  real a;
}
model {
  real p = inv_logit(a);
  a ~ normal(centre, 1);
  for (n in 1 : N) {
    vector[2] lp;
    target += log_mix(p, normal_lpdf(x[n] | 9, 1), normal_lpdf(x[n] | -9, 1));
    lp[1] = log(p) + normal_lpdf(y[n] | 9, 1);
    lp[2] = log1m(p) + normal_lpdf(y[n] | -9, 1);
    target += log_sum_exp(lp);
    if (k[n] == 0) {
      target += log_sum_exp(bernoulli_lpmf(1 | p), bernoulli_lpmf(0 | p) + poisson_lpmf(k[n] | 30));
    } else {
      target += bernoulli_lpmf(0 | p) + poisson_lpmf(k[n] | 30);
    }
  }
}
"""


def mixtures(centre: float) -> StanModel:
    data = {"N": 3, "centre": centre, "x": [9.0, 8, 10], "y": [9.0, 9, 9], "k": [0, 0, 0]}
    return opened(PROGRAM, data, observed=["x", "y", "k"])


@pytest.mark.slow
@pytest.mark.parametrize("centre", [800.0, -800.0])
def test_the_component_that_is_left_is_drawn(centre: float) -> None:
    drawn = mixtures(centre).simulate(20, fixed=None, seed=SeedSequence(1))
    assert abs(drawn.parameters["a"].mean() - centre) < 4 / np.sqrt(20)  # 4 standard errors
    for name in ("x", "y"):
        assert (np.sign(drawn.data[name]) == np.sign(centre)).all()
    assert (drawn.data["k"] == 0).all() == (centre > 0)


@pytest.mark.slow
def test_weights_inside_the_unit_interval_draw_both() -> None:
    drawn = mixtures(0.0).simulate(20, fixed=None, seed=SeedSequence(1))
    for name in ("x", "y"):
        assert len(np.unique(np.sign(drawn.data[name]))) == 2
    assert 0 < (drawn.data["k"] == 0).mean() < 1
