"""`bread.path_sampling` on a Stan program: exact evidence, a constant of the prior left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import bread
from bread.errors import UnsupportedModelError
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
def test_evidence_of_a_scale_and_no_scores():
    """Within 4 standard errors of the integral with a normalised prior, which Stan's own density is half of."""
    toolchain()
    options = {"data": {"N": 4, "y": Y}, "random_seed": 1, "tune": 60, "progressbar": False}
    found = require_group(bread.path_sampling(PROGRAM, pairs=150, **options), "path_sampling")

    def joint(sigma):
        return 2.0 * stats.norm.pdf(sigma) * np.prod(stats.norm.pdf(Y, 0.0, 0.5 + sigma))

    exact, error = np.log(integrate.quad(joint, 0.0, 12.0)[0]), float(found["standard_error"][0])
    assert abs(float(found["value"][0]) - exact) < 4 * error < 0.5
    with pytest.raises(UnsupportedModelError, match="leave-one-out"):
        bread.path_sampling(PROGRAM, leave_out=[0], **options)
