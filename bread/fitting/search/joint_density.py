"""The joint log density of parameters and data, which backends give along paths."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from bread.backends.base import FloatArray, Posterior
from bread.errors import BreadError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference


def joint_log_density(posterior: Posterior, states: FloatArray) -> FloatArray:
    """Return log prior + log likelihood (nats) at each state, shape (n,); -inf where it is NaN."""
    usable = np.isfinite(states).all(axis=1)
    values = np.full(len(states), -np.inf)
    if usable.any():
        values[usable] = _log_density(posterior, np.ascontiguousarray(states[usable]))
    return np.where(np.isnan(values) | (values == np.inf), -np.inf, values)


def _log_density(posterior: Posterior, states: FloatArray) -> FloatArray:
    """Return it at finite states: along the prior path where there is one, as that evaluates nothing else.

    Else from the log ratio of a reference path. Its reference is a Student t with one degree of freedom in each
    coordinate, whose log density is small however far a state is: little is lost when the two are added.
    """
    log_density = getattr(posterior, "log_density", None)  # which not every posterior inherits
    if log_density is not None:
        with suppress(BreadError):  # there is no prior path
            return np.asarray(log_density(PriorPath(), states), dtype=np.float64)
    dim = states.shape[1]
    wide = Component(np.zeros(dim), np.ones(dim), degrees=np.ones(dim))
    reference = MixtureReference((wide,), np.ones(1), "")
    return posterior.log_ratio(ReferencePath(reference), states) + reference.log_density(states)
