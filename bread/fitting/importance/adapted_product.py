"""Independent mixtures (`bread.paths.product`) adapted to a posterior by importance sampling.

A posterior of some coordinates each of which has two laws, or one of its own shape, and which are otherwise near to
Gaussian: mixtures of a few laws of all coordinates miss parts of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bread.backends.base import FloatArray, Kernel
from bread.errors import DensityError
from bread.fitting.gaussian.gaussian_mixtures import counted
from bread.fitting.importance.adaptation import ROUNDS, Family, Target, adapt, truncated
from bread.fitting.importance.product import fit_product
from bread.fitting.search.work import CHECK_DRAWS, FitWork, Part
from bread.paths.product import ProductReference

LARGEST_DIM = 25  # coordinates
DRAWS = 1000  # of the law in each round
RESAMPLED = 1500  # to which a law is fitted
WIDER = 1.3  # standard deviations of the laws of the first proposal, in their own
BURN_IN, MOVE_DRAWS = 40, 160  # of a chain that shows where the posterior of other data is


def product_adapted(
    target: Target, draws: FloatArray, n_draws: int = DRAWS, n_rounds: int = ROUNDS, n_kept: int = ROUNDS
) -> ProductReference | None:
    """Return independent mixtures adapted to a density, the one whose own draws show the least divergence.

    Parameters
    ----------
    target : Target
    draws : ndarray, shape (n, dim)
        They show where to begin.
    n_draws, n_rounds, n_kept : int
        Of `bread.fitting.importance.adaptation.Family`.

    Returns
    -------
    ProductReference or None
        None where draws do not move, and in more than `LARGEST_DIM` coordinates.
    """
    dim = draws.shape[1]
    first = fit_product(draws) if dim <= LARGEST_DIM else None
    if first is None:
        return None

    def fitted(states: FloatArray, weights: FloatArray, like: ProductReference | None) -> ProductReference | None:
        points, counts = counted(states, weights, RESAMPLED)
        return fit_product(points, like, counts)

    wide = replace(first, scales=WIDER * first.scales)
    return adapt(target, Family(n_draws, fitted, n_rounds=n_rounds, n_kept=n_kept), wide, dim)


def product_near(work: FitWork, reference: ProductReference, kernel: Kernel, limit: float) -> ProductReference | None:
    """Return independent mixtures adapted to another data set, from where a chain goes that begins at ``reference``.

    None where the chain fails, and above so many nats (`bread.fitting.importance.adaptation.truncated`).
    """
    mean, _ = reference.moments()
    keep = range(BURN_IN + 1, BURN_IN + MOVE_DRAWS + 1)
    try:
        draws = work.evolve(reference, kernel, mean, keep, work.seed(Part.MOVE)).states
    except DensityError:
        return None
    found = product_adapted(work, draws)
    if found is None:
        return None
    own = work.log_ratio(found, found.sample(CHECK_DRAWS, work.rng(Part.OWN_DRAWS)))
    return found if np.isfinite(own).any() and truncated(own) < limit else None
