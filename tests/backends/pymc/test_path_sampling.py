"""`bread.lab.path_sampling` on PyMC models: exact evidence under heavy priors, exact leave-one-out scores."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import bread
from bread.report.compat import require_group
from tests.support.pymc_conjugate import X, regression

Y = np.array([1.0, -0.3, 2.0, 0.7, 0.1])


def run(model, **options):
    report = bread.lab.path_sampling(model, random_seed=1, tune=60, progressbar=False, **options)
    assert bread.verdict(report).status == "estimated"
    return require_group(report, "path_sampling")


@pytest.mark.slow
@pytest.mark.statistical
def test_evidence_under_a_cauchy_prior():
    """By quadrature; within 4 standard errors. The prior has no mean, and the log likelihood none under it."""
    y = np.array([4.1, 5.3, 4.4])
    with pm.Model() as model:
        mu = pm.Cauchy("mu", 0, 1)
        pm.Normal("y", mu, 1.2, observed=y)
    found = run(model, pairs=150)

    def joint(value):
        return stats.cauchy.pdf(value) * np.prod(stats.norm.pdf(y, value, 1.2))

    exact = np.log(integrate.quad(joint, 0.0, 10.0, epsabs=1e-14)[0])
    assert abs(float(found["value"][0]) - exact) < 4 * float(found["standard_error"][0]) < 0.8


@pytest.mark.slow
@pytest.mark.statistical
def test_leave_one_out_scores_of_a_regression():
    """Against the exact predictive densities, within 4 standard errors each."""

    def evidence(kept):
        return stats.multivariate_normal(np.zeros(len(kept)), X[kept] @ X[kept].T + 2.25 * np.eye(len(kept))).logpdf(
            Y[kept]
        )

    found = run(regression(), leave_out=[0, 2], pairs=60)
    for row, index in enumerate((0, 2)):
        exact = evidence(np.arange(5)) - evidence(np.delete(np.arange(5), index))
        assert abs(float(found["value"][row]) - exact) < 4 * float(found["standard_error"][row]) < 0.4
