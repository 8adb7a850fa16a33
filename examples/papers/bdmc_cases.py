"""The cases of BDMC's testbed: a model, data simulated from it, and the exact draw behind them.

Binary attributes are a PyMC model with discrete latents, which `BinaryGibbsMetropolis` moves one by one and NUTS the
features given them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bdmc_models import BlockGibbs, Clustering, LowRank, log_normal_columns
from numpy.random import SeedSequence
from scipy.special import logsumexp

from bread.backends import open_model
from bread.backends.base import Data, FloatArray, OpenOptions

SCALES = {"clustering": (0.8, 1.0), "low_rank": (1.0, 1.0), "binary": (1.0, 1.0)}  # of parameters, of noise
MODELS = tuple(SCALES)


def binary_attributes(n_rows: int, n_features: int, n_components: int, scale: float, noise: float, y: Any) -> Any:
    """Return the PyMC model y_ij ~ N(sum_k z_ik a_kj, noise^2), z_ik ~ Bernoulli(1/2), a_kj ~ N(0, scale^2)."""
    import pymc as pm

    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=(n_rows, n_components))
        a = pm.Normal("a", 0.0, scale, shape=(n_components, n_features))
        pm.Normal("y", z @ a, noise, observed=y)
    return model


def log_evidence_of_attributes(y: FloatArray, n_components: int, scale: float, noise: float) -> float:
    """Sum over all attributes, with the features integrated out: small data only."""
    terms = []
    for bits in itertools.product((0.0, 1.0), repeat=len(y) * n_components):
        z = np.reshape(bits, (len(y), n_components))
        terms.append(log_normal_columns(y, scale**2 * z @ z.T + noise**2 * np.eye(len(y))))
    return float(logsumexp(terms) - y.size // y.shape[1] * n_components * np.log(2))


@dataclass(frozen=True)
class Case:
    """A model on simulated data: what anneals by temperature and row by row, and exact draws of both states."""

    by_temperature: Any
    by_rows: Any
    data: Data
    joint: FloatArray
    alone: FloatArray
    exact: float | None


def case(name: str, n_rows: int, n_features: int, n_components: int, seed: int, *, is_small: bool) -> Case:
    """Simulate a data set of one of `MODELS`; its log evidence is computed exactly where ``is_small``."""
    scale, noise = SCALES[name]
    blank, size = np.zeros((n_rows, n_features)), n_components * n_features
    if name == "binary":
        drawn = open_model(binary_attributes(n_rows, n_features, n_components, scale, noise, blank), OpenOptions())
        simulated = drawn.simulate(1, fixed=None, seed=SeedSequence(seed))
        y, state = np.asarray(simulated.data["y"][0]), simulated.states[0]
        model = open_model(binary_attributes(n_rows, n_features, n_components, scale, noise, y), OpenOptions())
        exact = log_evidence_of_attributes(y, n_components, scale, noise) if is_small else None
        return Case(model, model, {"y": y}, state, state, exact)
    kind, numbers = (
        (Clustering, (size, n_rows)) if name == "clustering" else (LowRank, (size + n_rows * n_components, 0))
    )
    joint = kind(blank, n_rows, n_components, True, scale, noise, BlockGibbs(numbers))
    simulated = joint.simulate(1, fixed=None, seed=SeedSequence(seed))
    y, state = simulated.data["y"][0], simulated.states[0]
    joint = replace(joint, y=y)
    exact = joint.log_evidence({"y": y}) if is_small else None
    return Case(joint, replace(joint, has_latents=False), {"y": y}, state, state[:size], exact)
