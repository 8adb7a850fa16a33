"""Gaussian mixtures fitted by scikit-learn, on one thread.

Its k-means starts OpenMP threads for each of thousands of short loops: on points as few as ours they wait for each
other longer than they work (a second for what takes ten milliseconds, where the cores are busy), and add in the order
in which they finish, so that the last bit may differ between runs. A limit that was set before scikit-learn was
imported does not hold for its OpenMP.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bread.backends.base import FloatArray
from bread.paths.mixture import Component, MixtureReference

ENOUGH_WORSE = 2
SUITS = 0.03  # largest distance of distribution functions


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


def resampled(states: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """Return ``n`` of weighted states, each about as often as its weight says, always the same, shape (n, dim)."""
    return np.asarray(states[_chosen(weights, n)])


def counted(states: FloatArray, weights: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the states of `resampled` once each, and how often they occur there, shapes (m, dim) and (m,)."""
    counts = np.bincount(_chosen(weights, n), minlength=len(states))
    return states[counts > 0], counts[counts > 0].astype(np.float64)


def _chosen(weights: FloatArray, n: int) -> NDArray[np.intp]:
    """Return the places of ``n`` states, rising, each about as often as its weight says."""
    cumulative = np.cumsum(weights)
    places = np.searchsorted(cumulative, (np.arange(n) + 0.5) / n * cumulative[-1])
    return np.asarray(np.minimum(places, len(weights) - 1), dtype=np.intp)


def best_mixture(points: FloatArray, most: int, enough_worse: int = ENOUGH_WORSE, **settings: Any) -> Any:
    """Return the mixture of at most so many components that has the smallest BIC.

    Where it has risen with so many more components in turn, others are not tried. ``settings`` are those of a mixture.
    """
    best = gaussian_mixture(points, 1)
    least, n_worse = best.bic(points), 0
    for n in range(2, most + 1):
        model = gaussian_mixture(points, n, **settings)
        bic = model.bic(points)
        if bic < least:
            best, least, n_worse = model, bic, 0
        else:
            n_worse += 1
            if n_worse == enough_worse:
                break
    return best


def mixture_near(
    points: FloatArray, most: int, like: MixtureReference | None = None, suits: float = SUITS, **settings: Any
) -> Any:
    """Return a mixture as `best_mixture` does, in a third of its time from one fitted to the same law of other data.

    That one is moved and stretched to the mean and the covariance of the points, and improved from there. Where one
    normal law is better by BIC, or a distribution function is off by more than ``suits``, all numbers are tried. Where
    it is one normal law, more are tried as long as each is better than the one before.

    Parameters
    ----------
    points : ndarray, shape (n, dim)
    most : int
        Components.
    like : MixtureReference, optional
        Of normal laws.
    suits : float
    **settings
        Of a mixture.
    """
    if like is None:
        return best_mixture(points, most, **settings)
    if len(like.components) == 1:
        return best_mixture(points, most, enough_worse=1, **settings)
    try:
        near = _moved(points, like, **settings)
    except (np.linalg.LinAlgError, ValueError):  # a covariance without an inverse, here or there
        return best_mixture(points, most, **settings)
    is_better = near.bic(points) < _normal_bic(points)
    return near if is_better and _misfit(points, near) < suits else best_mixture(points, most, **settings)


def _normal_bic(points: FloatArray) -> float:
    """Return the BIC of one normal law."""
    n, dim = points.shape
    _, log_volume = np.linalg.slogdet(np.atleast_2d(np.cov(points.T, bias=True)))
    n_parameters = dim + dim * (dim + 1) // 2
    return float(n * (dim * (1.0 + np.log(2.0 * np.pi)) + log_volume) + n_parameters * np.log(n))


def _moved(points: FloatArray, like: MixtureReference, **settings: Any) -> Any:
    """Return a mixture fitted from one that has been given the mean and the covariance of the points."""
    weights, means, covariances = _moments(like)
    mean = weights @ means
    covariance = np.einsum("k,kij->ij", weights, covariances) + (means - mean).T * weights @ (means - mean)
    own = np.linalg.cholesky(np.atleast_2d(np.cov(points.T)))
    stretch = own @ np.linalg.inv(np.linalg.cholesky(covariance))
    precisions = np.linalg.inv(stretch @ covariances @ stretch.T)
    return gaussian_mixture(
        points, len(weights), weights_init=weights, means_init=points.mean(axis=0) + (means - mean) @ stretch.T,
        precisions_init=0.5 * (precisions + np.swapaxes(precisions, 1, 2)), **settings,
    )  # fmt: skip


def _misfit(points: FloatArray, mixture: Any) -> float:
    """Return the largest distance between distribution functions of points and mixture, over the coordinates."""
    from scipy.special import ndtr

    ranks = (np.arange(len(points))[:, None] + 0.5) / len(points)
    scales = np.sqrt(np.einsum("kii->ki", mixture.covariances_))
    below = ndtr((np.sort(points, axis=0)[:, None, :] - mixture.means_) / scales)
    return float(np.abs(np.einsum("k,nki->ni", mixture.weights_, below) - ranks).max())


def _moments(mixture: MixtureReference) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights (k,), means (k, dim) and covariances (k, dim, dim) of normal components."""
    weights = np.asarray(mixture.weights, dtype=np.float64)
    means = np.array([one.mean for one in mixture.components])
    return weights / weights.sum(), means, np.array([_covariance(one) for one in mixture.components])


def _covariance(component: Component) -> FloatArray:
    colour = np.diag(component.scale)
    if component.matrix is not None:
        colour = colour @ np.linalg.inv(component.matrix)
    return np.asarray(colour @ colour.T)


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which linear algebra runs on one thread: several wait for each other on small matrices."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit


@cache
def _controller() -> ThreadpoolController:
    """Return the pools of this process, scikit-learn's too, which must be imported before."""
    return ThreadpoolController()
