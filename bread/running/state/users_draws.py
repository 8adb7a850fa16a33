"""Draws of the posterior of the user's own model, where another one may have been annealed.

Under "localised" the annealed draws are of a model with another prior; where nothing can be certified there are none.
Where modes are, and whether the real data look like the model's, is asked of the user's own model: with its density,
and with draws of the fit.
"""

from __future__ import annotations

import numpy as np

from bread.backends.base import Fit, FloatArray, Model
from bread.running.state.results import CheckResult
from bread.statistics.agreement.agreement import effective_sample_size

MOST_DRAWS = 1000  # of the user's or of the fit: more are thinned
_ORDER = 0  # seed of the order of the draws: the same for every random_seed


def own_draws(model: Model, fit: Fit | None) -> FloatArray | None:
    """Return draws of a fit, thinned to about a thousand, as states of shape (chain, draw, dim); None without them."""
    names = tuple(model.info.layout.positions)
    if fit is None or not set(names) <= set(fit.draws):
        return None
    n_chains, n_draws = np.shape(fit.draws[names[0]])[:2]
    every = max(1, -(-n_chains * n_draws // MOST_DRAWS))
    thinned = {name: np.asarray(fit.draws[name])[:, ::every] for name in names}
    n_kept = thinned[names[0]].shape[1]
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in thinned.items()}
    return model.unconstrain(flat).reshape(n_chains, n_kept, -1)


def posterior_draws(model: Model, result: CheckResult, fewest: int = 0) -> FloatArray | None:
    """Return draws of the posterior of the user's model on the real data, shape (n, dim); None without them.

    The annealed ones, or under "localised" and where nothing is annealed draws of the fit in an order without chains:
    as many as they are worth, but no fewer than ``fewest`` where there are so many.
    """
    if not result.is_about_fit:
        return result.observed_draws
    own = own_draws(model, result.fit)
    if own is None or result.fit is None:
        return None
    states = own.reshape(-1, own.shape[-1])
    worth = result.fit.distinct_share * float(effective_sample_size(own).min()) if own.shape[-1] else len(states)
    n = int(min(len(states), max(worth, fewest)))
    return states[np.random.default_rng(_ORDER).permutation(len(states))[:n]]
