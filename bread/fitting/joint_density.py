"""The joint log density of parameters and data, which backends give along paths."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray, Posterior
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import Component, MixtureReference


def joint_log_density(posterior: Posterior, states: FloatArray) -> FloatArray:
    """Return log prior + log likelihood (nats) at each state, shape (n,); -inf where it is NaN.

    From the log ratio of a reference path. Its reference is a Student t with one degree of freedom in each coordinate,
    whose log density is small however far a state is: little is lost when the two are added.
    """
    dim = states.shape[1]
    wide = Component(np.zeros(dim), np.ones(dim), degrees=np.ones(dim))
    reference = MixtureReference((wide,), np.ones(1), "")
    usable = np.isfinite(states).all(axis=1)
    values = np.full(len(states), -np.inf)
    if usable.any():
        ratio = posterior.log_ratio(ReferencePath(reference), np.ascontiguousarray(states[usable]))
        values[usable] = ratio + reference.log_density(states[usable])
    return np.where(np.isnan(values) | (values == np.inf), -np.inf, values)
