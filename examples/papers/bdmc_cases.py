"""The cases of BDMC's testbed: a model, data simulated from it, and the exact draw behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bdmc_models import Attributes, BlockGibbs, Clustering, LowRank
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import Data, FloatArray, OpenOptions

SCALES = {"clustering": (0.8, 1.0), "low_rank": (1.0, 1.0), "binary": (1.0, 1.0)}  # of parameters, of noise
KINDS: dict[str, Any] = {"clustering": Clustering, "low_rank": LowRank, "binary": Attributes}


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
    """Simulate a data set of one of `KINDS`; its log evidence is summed exactly where ``is_small``."""
    scale, noise = SCALES[name]
    size, blank = n_components * n_features, np.zeros((n_rows, n_features))
    numbers = (size + n_rows * n_components, 0) if name == "low_rank" else (size, n_rows)
    joint = KINDS[name](blank, n_rows, n_components, True, scale, noise, BlockGibbs(numbers))
    simulated = joint.simulate(1, fixed=None, seed=SeedSequence(seed))
    y, state = simulated.data["y"][0], simulated.states[0]
    joint = replace(joint, y=y)
    exact = joint.log_evidence({"y": y}) if is_small else None
    return Case(joint, replace(joint, has_latents=False), {"y": y}, state, state[:size], exact)


def in_pymc(attributes: Case) -> Case:
    """Return the same case as a PyMC model with discrete latents, moved bit by bit, and the features by NUTS."""
    import pymc as pm

    model = attributes.by_temperature
    features, labels = model.split(attributes.joint)
    with pm.Model() as user_model:
        z = pm.Bernoulli("z", 0.5, shape=(model.n_rows, model.n_components))
        a = pm.Normal("a", 0.0, model.scale, shape=features.shape)
        pm.Normal("y", z @ a, model.noise, observed=model.y)
    opened = open_model(user_model, OpenOptions())
    exact = {"z": model.patterns[labels.astype(int)][None].astype(int), "a": features[None]}
    state = opened.unconstrain(exact)[0]
    return Case(opened, opened, attributes.data, state, state, attributes.exact)
