"""PyMC's LKJ laws before 6.4.0: draws of LKJCholeskyCov(n=3), and what the density of LKJCorr integrates to.

Up to 6.3.1 random draws of three or more dimensions had an off-diagonal variance of 0.20 where the density says 0.25
(eta = 1), and the density was not normalised. Run it under both: ``pip install "pymc==6.3.1"``, then "pymc==6.4.0", or
by ``run.py lkj``. `bread.check` comes to the same verdict on the draws, before it anneals.
"""

from __future__ import annotations

import warnings

import numpy as np
import pymc as pm

import bread

warnings.filterwarnings("ignore")


def cholesky() -> pm.Model:
    """Return a model with correlated effects of three dimensions."""
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=3, eta=1.0, sd_dist=pm.HalfNormal.dist(1.0, shape=3))
        pm.MvNormal("y", np.zeros(3), chol=chol, observed=np.array([[0.3, -0.2, 0.5], [1.0, 0.4, -0.7]]))
    return model


def correlation() -> pm.Model:
    """Return a model with a correlation of two variables."""
    with pm.Model() as model:
        matrix = pm.LKJCorr("matrix", n=2, eta=2.0)
        pm.Normal("y", matrix[0, 1] if matrix.ndim == 2 else matrix[0], 1.0, observed=np.array([0.3]))
    return model


if __name__ == "__main__":
    for name, build in (("LKJCholeskyCov(n=3)", cholesky), ("LKJCorr(n=2)", correlation)):
        report = bread.debug(build(), only="simulator", random_seed=1, progressbar=False)
        print(f"PyMC {pm.__version__}, {name}: {bread.verdict(report)}")
        table = bread.summary(report)
        print(table[table["fails"]][["test", "p_value", "worst"]].to_string(index=False), "\n")
    report = bread.check(
        cholesky(), simulate_from="prior", path="prior", n_temperatures=[64], random_seed=1, progressbar=False
    )
    print(f"PyMC {pm.__version__}, LKJCholeskyCov(n=3), bread.check: {bread.verdict(report)}")
