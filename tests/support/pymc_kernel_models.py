"""Models on which PyMC's step methods are tried."""

from __future__ import annotations

import numpy as np
import pymc as pm

COVARIANCE = np.array([[1.0, 0.9], [0.9, 1.0]])


def correlated() -> pm.Model:
    with pm.Model() as model:
        x = pm.MvNormal("x", [0.0, 0.0], cov=COVARIANCE)
        pm.Normal("y", x, 2.0, observed=[1.0, -0.5])
    return model


def skewed() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        pm.Exponential("y", rate, observed=[0.5, 2.0, 0.3])
    return model


def binary() -> pm.Model:
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3)
        w = pm.Bernoulli("w", 0.1 + 0.8 * z)
        pm.Normal("y", z + 2.0 * w, 1.0, observed=1.2)
    return model


def categorical() -> pm.Model:
    with pm.Model() as model:
        z = pm.Categorical("z", [0.5, 0.3, 0.2])
        w = pm.Categorical("w", pm.math.stack([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]])[z])
        pm.Normal("y", z + 0.5 * w, 1.0, observed=1.2)
    return model
