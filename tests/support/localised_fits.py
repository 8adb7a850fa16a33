"""Localised reference models of one parameter, with exact posterior draws by a grid."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from bread.paths.mixture import gaussian

WIDTH = 1.5  # of the law over the posterior on the real data, as a check has it
N_CELLS = 2001


def localised_draws(model, rng, n):
    """Return the model with a widened Gaussian fit to its posterior as its law, and n posterior draws (n, 1) of it."""
    own = model.draw_posterior(model.observed_data, 2000, rng)
    centre, scale = own.mean(axis=0), WIDTH * own.std(axis=0)
    localised = model.localise(tuple(model.parameters), gaussian(centre, np.diag(scale**2)))
    grid = centre + scale * np.linspace(-6.0, 6.0, N_CELLS)[:, None]
    statistics = localised.summarise(model.observed_data)
    log_density = localised.log_prior(grid) + localised.log_likelihood(grid, statistics)
    chosen = rng.choice(N_CELLS, n, p=np.exp(log_density - logsumexp(log_density)))
    return localised, grid[chosen] + (rng.random((n, 1)) - 0.5) * (grid[1] - grid[0])
