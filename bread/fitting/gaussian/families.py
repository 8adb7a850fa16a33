"""Fits of a reference to draws: families of normalised densities on unconstrained coordinates.

Every family is slightly wider than the draws (`INFLATION`): where a reference is narrower than the posterior, the
reverse log weights have heavy tails; where it is wider, little is lost. Heavy tails are given only to coordinates that
are no transform of a constrained parameter: a Student t on the logarithm of a scale would make the bound infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.fitting.gaussian.gaussian_mixtures import gaussian_mixture
from bread.paths.mixture import Component, FloatArray, MixtureReference

INFLATION = 1.2  # of the variances
DEGREES = 7.0  # of the Student t
LARGEST_FULL_DIM = 250  # coordinates of a full covariance matrix
LARGEST_MIXED_DIM = 60  # of each of several
CLEAR_DRAWS = 10.0  # draws a coordinate from which on a sample covariance is taken at its word
LARGEST_RANK = 10  # of a low-rank one
LARGEST_MIXTURE = 4  # components
SMALLEST_SCALE = 1e-8  # standard deviation where draws show none
ROUNDING = 1e-13  # of a mean: spread of equal numbers about it
SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix that has an inverse
SINGULAR_SHRINKAGE = 1e-4  # of the correlations where it has none
PRIOR_DRAWS = 30.0  # draws that a variance of the shared fit is worth when a reference is moved to another data set

WIDTH_COST = 0.16  # nats that an inflation may cost where coordinates are many


def inflation(dim: int) -> float:
    """Return by how much variances are wider than those of a law that is known well, `INFLATION` where dim <= 8.

    Variances that are 1 + e times as large cost about e^2 / 4 nats in each direction and coordinate, so the cost of
    all together is held at `WIDTH_COST` (nats, Jeffreys).
    """
    return 1.0 + min(INFLATION - 1.0, float(np.sqrt(2.0 * WIDTH_COST / dim)))


Fit = Callable[[FloatArray, NDArray[np.bool_]], "MixtureReference | None"]


def fit_diagonal(draws: FloatArray, transformed: NDArray[np.bool_]) -> MixtureReference:
    """Return a Gaussian of independent coordinates.

    Parameters
    ----------
    draws : ndarray, shape (n, dim)
        Draws from (about) the posterior, unconstrained.
    transformed : ndarray of bool, shape (dim,)
        Coordinates that may be the logarithm of a scale.
    """
    mean, scale = _moments(draws)
    return _single(Component(mean, scale), "diagonal Gaussian")


def fit_low_rank(draws: FloatArray, transformed: NDArray[np.bool_]) -> MixtureReference | None:
    """Return a Gaussian whose correlation is the identity but in a few directions; None where they are not seen.

    The directions are the eigenvectors of the sample correlation whose eigenvalues are furthest from 1; eigenvalues
    are shrunk towards 1 by as many draws as there are coordinates.
    """
    n, dim = draws.shape
    rank = min(LARGEST_RANK, dim // 2, n // 10)
    if rank < 1:
        return None
    mean, scale = _moments(draws)
    centred = (draws - draws.mean(axis=0)) / (scale / np.sqrt(INFLATION))
    _, singular, rows = np.linalg.svd(centred, full_matrices=False)
    eigenvalues = singular**2 / n
    shrunk = (n * eigenvalues + dim) / (n + dim)
    chosen = np.argsort(-np.abs(np.log(shrunk)))[:rank]
    directions, stretch = rows[chosen].T.copy(), np.sqrt(shrunk[chosen])
    variance = 1.0 + (directions**2 * (stretch**2 - 1.0)).sum(axis=1)  # keep that of each coordinate
    component = Component(mean, scale / np.sqrt(variance), directions=directions, stretch=stretch)
    return _single(component, f"Gaussian of low rank ({rank}) plus diagonal")


def fit_full(draws: FloatArray, transformed: NDArray[np.bool_]) -> MixtureReference | None:
    """Return a Gaussian with a full correlation matrix, shrunk towards the identity (Ledoit & Wolf 2004).

    Of few draws a coordinate, whose sample covariance shows too little of what is off its directions, the width is
    the one of the largest density at draws that were held out.
    """
    if not 1 < draws.shape[1] <= LARGEST_FULL_DIM:
        return None
    mean, scale = _moments(draws)
    component = Component(mean, scale, matrix=whitening(_correlation(draws), transformed))
    return _single(_held_out_width(component, draws, transformed), "Gaussian")


def fit_heavy(draws: FloatArray, transformed: NDArray[np.bool_]) -> MixtureReference | None:
    """Return a law with Student t tails in untransformed coordinates, given the transformed ones, which are Gaussian.

    The whitening is triangular with the transformed coordinates first: their joint law is exactly Gaussian.
    """
    dim = draws.shape[1]
    if transformed.all() or dim > LARGEST_MIXED_DIM:
        return None
    mean, scale = _moments(draws)
    normal = Component(mean, scale, matrix=whitening(_correlation(draws), transformed))
    return _single(with_heavy_tails(normal, transformed, DEGREES), f"Student t ({DEGREES:g} degrees)")


def fit_mixture(draws: FloatArray, transformed: NDArray[np.bool_]) -> MixtureReference | None:
    """Return a Gaussian mixture of 2 to 4 components; None where the draws show one mode (by BIC)."""
    n, dim = draws.shape
    if dim > LARGEST_MIXED_DIM or n < 20 * max(dim, 2):
        return None
    mean, scale = draws.mean(axis=0), np.maximum(draws.std(axis=0), SMALLEST_SCALE)
    centred = (draws - mean) / scale
    best: Any = None
    least = np.inf
    for n_components in range(1, LARGEST_MIXTURE + 1):
        model = gaussian_mixture(centred, n_components, n_init=2, reg_covar=1e-3)
        criterion = float(model.bic(centred))
        if criterion < least - 10.0:
            best, least = model, criterion
    if best is None or best.n_components == 1:
        return None
    components = mixture_components(best, mean, scale, transformed)
    weights = np.maximum(best.weights_, 1e-3)
    return MixtureReference(components, weights / weights.sum(), f"mixture of {best.n_components} Gaussian laws")


def mixture_components(
    model: Any, centre: FloatArray, spread: FloatArray, transformed: NDArray[np.bool_]
) -> tuple[Component, ...]:
    """Return the laws of a mixture that scikit-learn has fitted to ``(draws - centre) / spread``, slightly wider."""
    components = []
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        deviation = np.sqrt(np.diag(covariance))
        matrix = whitening(covariance / np.outer(deviation, deviation), transformed)
        components.append(Component(centre + spread * mean, spread * deviation * np.sqrt(INFLATION), matrix=matrix))
    return tuple(components)


def with_heavy_tails(component: Component, transformed: NDArray[np.bool_], degrees: float) -> Component:
    """Return a normal law that has a matrix with Student t tails in untransformed coordinates, and its variances."""
    assert component.matrix is not None  # with the transformed coordinates first
    matrix = component.matrix.copy()
    matrix[~transformed] *= np.sqrt(degrees / (degrees - 2.0))
    return replace(component, matrix=matrix, degrees=np.where(transformed, np.inf, degrees))


FAMILIES: dict[str, Fit] = {
    "diagonal": fit_diagonal,
    "low rank": fit_low_rank,
    "full": fit_full,
    "heavy": fit_heavy,
    "mixture": fit_mixture,
}

PLAINEST = ("full", "low rank")  # for data where nothing is found, if none was compared


def first_fit(draws: FloatArray, transformed: NDArray[np.bool_], names: Sequence[str] = PLAINEST) -> MixtureReference:
    """Return the fit of the first of some families that fits these draws; a diagonal Gaussian always does."""
    fits = (FAMILIES[name](draws, transformed) for name in (*names, "diagonal"))
    return next(fit for fit in fits if fit is not None)


def move_component(component: Component, draws: FloatArray) -> Component:
    """Return the component moved to the mean of ``draws``, its scales drawn towards theirs; correlations are kept."""
    n = len(draws)
    variance = (PRIOR_DRAWS * component.scale**2 + n * INFLATION * draws.var(axis=0)) / (PRIOR_DRAWS + n)
    return replace(component, mean=draws.mean(axis=0), scale=np.sqrt(variance))


def localisation(draws: FloatArray, width: float) -> MixtureReference:
    """Return a Gaussian with the mean and covariance of ``draws``, its standard deviations times ``width``.

    The law of the hyperparameters under ``simulate_from="localised"``.
    """
    mean = draws.mean(axis=0)
    scale = np.maximum(draws.std(axis=0, ddof=1), SMALLEST_SCALE) * width
    label = f"Gaussian fit, {width:g} times as wide"
    if draws.shape[1] == 1:
        return _single(Component(mean, scale), label)
    matrix = whitening(_correlation(draws), np.ones(draws.shape[1], dtype=bool))
    return _single(Component(mean, scale, matrix=matrix), label)


def _single(component: Component, label: str) -> MixtureReference:
    return MixtureReference((component,), np.ones(1), label)


def _moments(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    scale = np.maximum(draws.std(axis=0, ddof=1), SMALLEST_SCALE)
    return draws.mean(axis=0), scale * np.sqrt(INFLATION)


def _held_out_width(component: Component, draws: FloatArray, transformed: NDArray[np.bool_]) -> Component:
    """Return a Gaussian with the variances of the largest density at one half of the draws, fitted to the other half.

    Each half of the draws is every other one. No narrower than what dimensions allow (`inflation`). The same
    component where `CLEAR_DRAWS` draws a coordinate, or few coordinates, leave nothing to choose.
    """
    n, dim = draws.shape
    if dim <= LARGEST_MIXED_DIM or n >= CLEAR_DRAWS * dim or n < 8:
        return component
    widths = []
    for fitted, held_out in ((draws[::2], draws[1::2]), (draws[1::2], draws[::2])):
        mean, scale = fitted.mean(axis=0), np.maximum(fitted.std(axis=0, ddof=1), SMALLEST_SCALE)
        half = Component(mean, scale, matrix=whitening(_correlation(fitted), transformed))
        widths.append(float((half.standardise(held_out) ** 2).mean()))
    # Half of the draws miss about twice as much as all of them do.
    width = max(1.0 + 0.5 * (float(np.mean(widths)) - 1.0), inflation(dim))
    return replace(component, scale=component.scale * np.sqrt(width / INFLATION))


def _correlation(draws: FloatArray) -> FloatArray:
    """Return the shrunk sample correlation; always positive definite, also of a chain that hardly moved."""
    from sklearn.covariance import ledoit_wolf

    mean, spread = draws.mean(axis=0), draws.std(axis=0)
    is_still = spread <= np.maximum(SMALLEST_SCALE, ROUNDING * np.abs(mean))  # what is left is rounding
    centred = np.where(is_still, 0.0, draws - mean) / np.where(is_still, 1.0, spread)
    covariance = np.asarray(ledoit_wolf(centred, assume_centered=True)[0], dtype=float)
    deviation = np.sqrt(np.diag(covariance))
    deviation[is_still | (deviation == 0.0)] = 1.0
    correlation = covariance / np.outer(deviation, deviation)
    if np.linalg.eigvalsh(correlation)[0] < SINGULAR:  # few distinct states, of which nothing is shrunk
        correlation *= 1.0 - SINGULAR_SHRINKAGE
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def whitening(correlation: FloatArray, first: NDArray[np.bool_]) -> FloatArray:
    """Return W with ``W correlation W' = 1``, in which z at ``first`` depends on the coordinates at ``first`` alone."""
    order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)])
    factor = np.linalg.cholesky(correlation[np.ix_(order, order)])
    matrix = np.zeros(correlation.shape)
    matrix[np.ix_(order, order)] = np.tril(np.linalg.solve(factor, np.eye(len(order))))
    return matrix
