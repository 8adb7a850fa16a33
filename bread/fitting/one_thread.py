"""Gaussian mixtures fitted by scikit-learn, on one thread.

Its k-means starts OpenMP threads for each of thousands of short loops: on points as few as ours they wait for each
other longer than they work (a second for what takes ten milliseconds, where the cores are busy), and add in the order
in which they finish, so that the last bit may differ between runs. A limit that was set before scikit-learn was
imported does not hold for its OpenMP.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from bread.backends.base import FloatArray

ENOUGH_WORSE = 2


def gaussian_mixture(points: FloatArray, n_components: int, **settings: Any) -> Any:
    """Return a fitted `sklearn.mixture.GaussianMixture`.

    Parameters
    ----------
    points : ndarray, shape (n, dim)
    n_components : int
    **settings
        Of the mixture.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings(), _controller().limit(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(n_components, random_state=0, **settings).fit(points)


def best_mixture(points: FloatArray, most: int) -> Any:
    """Return the mixture of at most so many components that has the smallest BIC.

    Where it has risen with two components in turn, more are not tried.
    """
    best = gaussian_mixture(points, 1)
    least, n_worse = best.bic(points), 0
    for n in range(2, most + 1):
        model = gaussian_mixture(points, n)
        bic = model.bic(points)
        if bic < least:
            best, least, n_worse = model, bic, 0
        else:
            n_worse += 1
            if n_worse == ENOUGH_WORSE:
                break
    return best


@cache
def _controller() -> ThreadpoolController:
    """Return the pools of this process, scikit-learn's too, which must be imported before."""
    return ThreadpoolController()
