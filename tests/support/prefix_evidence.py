"""Data annealing of a regression, on every prefix of its data, against the exact evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from bread.backends.base import FloatArray
from bread.running.particles.block_kernels import tuned_targets
from bread.running.particles.particles import Filter, Targets, conditional, forward


def check_prefixes(model: Any, x: FloatArray, y: FloatArray, log_evidence: FloatArray, rng: Generator) -> None:
    """Assert that both estimators are within 0.4 nats of the exact evidence of 2 and of 5 observations.

    The model has standard normal coefficients of two columns ``x``, and noise of variance 2.25.
    """
    model.n_observations()
    targets = tuned_targets(model, {"y": y}, (1, 2, 3, 4, 5), 60, SeedSequence(1))
    for n in (2, 5):
        first = Targets(targets.posteriors[:n], targets.kernels[:n])
        precision = np.eye(2) + x[:n].T @ x[:n] / 2.25
        mean = np.linalg.solve(precision, x[:n].T @ y[:n] / 2.25)
        exact = rng.multivariate_normal(mean, np.linalg.inv(precision))
        seeds = [SeedSequence(9, spawn_key=(n, i)) for i in range(4)]
        below, above = forward(first, Filter(48), seeds), conditional(first, Filter(48), exact, seeds)
        assert abs(below.log_evidence.mean() - log_evidence[n - 1]) < 0.4
        assert abs(above.log_evidence.mean() - log_evidence[n - 1]) < 0.4
        assert (below.n_gradients > 0).all()
