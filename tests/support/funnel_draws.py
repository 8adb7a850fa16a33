"""Exact draws of a funnel, and the divergence of a reference from it."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from bread.paths.kinds import ReferencePath
from tests.support.funnel import FUNNEL

OTHER = {"y": np.array([-4.1, 2.2, 5.3, -2.7, 0.4])}  # says that the spread is large


N_DRAWS = 20_000


def exact_draws(data, n=N_DRAWS):
    return FUNNEL.draw_posterior(data, n, default_rng(1))


def divergence(data, reference):
    """Jeffreys divergence (nats) between a reference and the exact posterior, and its standard error."""
    posterior, path = FUNNEL.condition(data), ReferencePath(reference)
    at_end = posterior.log_ratio(path, exact_draws(data))
    at_start = posterior.log_ratio(path, reference.sample(N_DRAWS, default_rng(2)))
    return at_end.mean() - at_start.mean(), np.sqrt((at_end.var() + at_start.var()) / N_DRAWS)
