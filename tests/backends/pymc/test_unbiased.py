"""`bread.lab.unbiased` on PyMC models: exact means, and flat priors from a stated start."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import bread
from bread.report.compat import require_group
from tests.support import pymc_conjugate


@pytest.mark.slow
@pytest.mark.statistical
def test_means_of_a_conjugate_model():
    """mu ~ N(0.5, 1.5^2), three observations of variance 1.2^2 with sum 3.4: within 5 standard errors."""
    report = bread.lab.unbiased(pymc_conjugate.normal_mean(), pairs=60, random_seed=1, progressbar=False)
    found = require_group(report, "unbiased")
    precision = 1 / 1.5**2 + 3 / 1.2**2
    exact = (0.5 / 1.5**2 + 3.4 / 1.2**2) / precision
    error = float(found["mean_standard_error"][0])
    assert abs(float(found["mean"][0]) - exact) < 5 * error < 0.1  # and the prior's mean, 0.5, is 0.5 away
    assert list(found["parameter"].values) == ["mu"] and found.attrs["n_unmet"] == 0


@pytest.mark.slow
def test_flat_priors_start_from_a_normal_law():
    with pm.Model() as model:
        mu = pm.Flat("mu")
        pm.Normal("y", mu, 1.0, observed=np.array([0.3, 0.5, 1.2]))
    found = require_group(
        bread.lab.unbiased(model, start=2.0, pairs=40, lag=15, tune=60, random_seed=1, progressbar=False), "unbiased"
    )
    assert abs(float(found["mean"][0]) - 2 / 3) < 5 * float(found["mean_standard_error"][0])
