"""Localising `ordered` and `positive_ordered` parameters: their law becomes the reference, Jacobians and all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.paths.mixture import diagonal
from tests.support.stan_conjugate import opened

PROGRAM = """data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  ordered[3] mu;
  positive_ordered[2] s;
}
model {
  y ~ normal(mu[1] + mu[3], s[1] + s[2]);
}
"""


@pytest.mark.slow
@pytest.mark.stan
def test_law_of_ordered_parameters_becomes_the_reference() -> None:
    data = {"N": 3, "y": [0.1, 1.0, -0.4]}
    model = opened(PROGRAM, data, observed="y", simulate_from="localised")
    assert set(model.info.layout.hyperparameters) == {"mu", "s"}
    reference = diagonal(np.linspace(-0.5, 0.5, 5), np.full(5, 0.4))
    localised = model.localise(("mu", "s"), reference)
    states = default_rng(1).normal(size=(20, 5))
    difference = localised.instance.terms(states)[0] - reference.log_density(states)
    assert np.ptp(difference) < 1e-9  # nats; rounding leaves about 1e-14
    # negative control: without the Jacobian of the gaps
    assert np.ptp(difference + states[:, 1]) > 0.5
    simulations = localised.simulate(4000, fixed=None, seed=SeedSequence(2))
    mean, sd = simulations.states.mean(axis=0), simulations.states.std(axis=0)
    assert (np.abs(mean - np.linspace(-0.5, 0.5, 5)) < 6 * 0.4 / 4000**0.5).all()  # 6 standard errors
    assert (np.abs(sd - 0.4) < 6 * 0.4 / 8000**0.5).all()
