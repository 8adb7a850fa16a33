"""`bread.lab.path_sampling` on a Stan program: exact evidence and score, a constant of the prior left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import bread
from bread.report.compat import require_group
from tests.support.stan_conjugate import toolchain

PROGRAM = """
data { int<lower=1> N; vector[N] y; }
parameters { real<lower=0> sigma; }
model {
  sigma ~ normal(0, 1);
  y ~ normal(0, 0.5 + sigma);
}
"""
Y = np.array([0.3, -1.2, 2.0, 0.4])


@pytest.mark.statistical
@pytest.mark.slow
def test_evidence_of_a_scale_and_a_score():
    """Within 4 standard errors of integrals with a normalised prior, which Stan's own density is half of."""
    toolchain()
    options = {"data": {"N": 4, "y": Y}, "random_seed": 1, "tune": 60, "progressbar": False}

    def log_evidence(y):
        def joint(sigma):
            return 2.0 * stats.norm.pdf(sigma) * np.prod(stats.norm.pdf(y, 0.0, 0.5 + sigma))

        return np.log(integrate.quad(joint, 0.0, 12.0)[0])

    found = require_group(bread.lab.path_sampling(PROGRAM, pairs=150, **options), "path_sampling")
    exact, error = log_evidence(Y), float(found["standard_error"][0])
    assert abs(float(found["value"][0]) - exact) < 4 * error < 0.5

    scores = require_group(bread.lab.path_sampling(PROGRAM, leave_out=[2], pairs=150, **options), "path_sampling")
    score, error = exact - log_evidence(np.delete(Y, 2)), float(scores["standard_error"][0])
    assert abs(float(scores["value"][0]) - score) < 4 * error < 0.5
    assert abs(exact - log_evidence(np.delete(Y, 0)) - score) > 4 * error  # control: another observation's
