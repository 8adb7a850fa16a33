"""Whether a Gaussian law given some coordinates can be near the posterior, from a few of their values alone.

What a law of all coordinates is off is at least what it is off given the coordinates that drive the others, on average:
where that is far at every value that is tried, a search over a whole cloud of values is in vain, and takes a hundred
times as long to say so.
"""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.gaussian.laplace import Held, Laplace
from bread.fitting.gaussian.modes import CountedDensity
from bread.fitting.search.work import CHECK_DRAWS, FitWork, Part, plain, shown_divergence

AT = (0.0, 1.0, -1.0)  # standard deviations from the mean of the drivers, all together
HOPELESS = 2.0  # times the limit, beyond which what is shown is believed: the values may be far from where the mass is


def is_hopeless(work: FitWork, drivers: tuple[int, ...], start: FloatArray, at: FloatArray, limit: float) -> bool:
    """Return whether Gaussian laws given the drivers are far from the posterior's, at every value that is tried.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    drivers : tuple of int
    start : ndarray, shape (dim,)
        A state to look from.
    at : ndarray, shape (n, k)
        Draws of the drivers, which show about where they are.
    limit : float
        Nats of divergence that a law of all coordinates may show.
    """
    target = CountedDensity(work.posterior, work.dim)
    laplace = Laplace(target, drivers, work.dim)
    mean, spread, others = at.mean(axis=0), at.std(axis=0), start[laplace.others]
    is_far = True
    for number in AT:
        u = mean + number * spread
        found = laplace.at(u, others)
        if found is not None and _shown(work, laplace, u, found) <= HOPELESS * limit:
            is_far = False
            break
        others = others if found is None else found.mode
    work.n_gradients += target.n_gradients
    return is_far


def _shown(work: FitWork, laplace: Laplace, u: FloatArray, law: Held) -> float:
    """Return the Jeffreys divergence (nats) of a law at one value of the drivers by its own draws, weighted."""
    try:
        factor = np.linalg.cholesky(np.linalg.inv(law.precision))
    except np.linalg.LinAlgError:
        return float("inf")
    standard = work.rng(Part.OWN_DRAWS).standard_normal((CHECK_DRAWS, len(law.mode)))
    states = np.empty((CHECK_DRAWS, work.dim))
    states[:, laplace.others] = law.mode + standard @ factor.T
    states[:, laplace.held] = u
    base = plain(work.dim)
    ratio = work.log_ratio(base, states) + base.log_density(states) + 0.5 * (standard**2).sum(axis=1)
    return shown_divergence(np.sort(ratio)[1:])  # one far draw decides nothing
