"""Bridge sampling: the log evidence from the fit's own draws, beside what annealed chains say."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import default_rng

from bread.backends.base import FloatArray, Model
from bread.errors import BreadError
from bread.running.check.comparison import density_tasks, is_compared
from bread.running.pilots.fitted_hyperparameters import mixing_of
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import CheckResult
from bread.seeds import Purpose, seed_sequence
from bread.statistics.exactness.normalisation import DRAWS_A_DIMENSION, log_constant

MOST = 4000  # draws that are bridged


def bridge_the_fit(model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
    """Estimate the log evidence by the fit's draws and those of a Student t law; ``result.bridge`` keeps it.

    Left out where there is no fit or one of another law, coordinates are discrete, chains have not mixed, or draws,
    thinned to what they are worth, are fewer than 40 a coordinate.
    """
    if plan.draws == 0 or not is_compared(result) or result.fit_log_density is None or not result.info.layout.dim:
        return
    assert result.fit is not None
    found = mixing_of(result.fit)
    if result.info.layout.discrete.any() or result.fit.distinct_share < 1.0 or found.is_doubtful:
        return
    draws = _thinned(model.unconstrain(result.fit.flat_draws()), result.fit_log_density.shape, found.n_effective)
    if len(draws) < 2 * DRAWS_A_DIMENSION * draws.shape[1] or not np.isfinite(draws).all():
        return

    def log_density(states: FloatArray) -> FloatArray:
        tasks = density_tasks(states, result)
        with ledger.phase("bridge sampling", "compare", len(tasks)):
            return np.concatenate(ledger.in_order(tasks))

    constant = 0.0 if result.prior_integrals is None else result.prior_integrals.log_constant
    try:
        bridged = log_constant(draws, log_density, default_rng(seed_sequence(plan.root, Purpose.BRIDGE)))
    except BreadError:
        return  # the density cannot be told at a draw: the comparison says so
    result.bridge = bridged._replace(log_constant=bridged.log_constant - constant)


def _thinned(states: FloatArray, shape: tuple[int, ...], n_effective: float) -> FloatArray:
    """Return draws (n, dim), in the order of time, as many as they are worth."""
    by_chain = np.asarray(states, dtype=np.float64).reshape(*shape, -1)
    every = math.ceil(max(1.0, shape[0] * shape[1] / min(n_effective, MOST)))
    kept = by_chain[:, ::every]
    return kept.swapaxes(0, 1).reshape(-1, kept.shape[-1])
