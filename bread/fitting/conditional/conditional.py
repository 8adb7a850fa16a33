"""Fit of a `bread.paths.conditional.ConditionalReference`: Laplace's method at a cloud of values of the drivers."""

from __future__ import annotations

from functools import cache

import numpy as np

from bread.backends.base import FloatArray, Posterior
from bread.fitting.conditional.laplace_cloud import DEPTH, FIRST_STEP, WIDTH, Knots, Search
from bread.fitting.gaussian.families import INFLATION, inflation
from bread.fitting.gaussian.gaussian_mixtures import mixture_near, resampled
from bread.fitting.gaussian.joint_diagonal import joint_diagonaliser
from bread.fitting.gaussian.laplace import Laplace
from bread.fitting.gaussian.modes import CountedDensity
from bread.paths.conditional import ConditionalReference, spline_through
from bread.paths.mixture import Component, MixtureReference

MOST_DRIVERS = 4
LARGEST_DIM = 100  # coordinates: every knot has a Hessian of the others
MOST_ROUNDS = 6  # clouds, each about where the one before found the mass
NEAR, LIKE = 0.7, 1.7  # standard deviations that the mass may be off the middle of its cloud; factor of their ratio
NODES = 8192  # at which the marginal density is summed up
REACH = 2.5  # standard deviations from the nearest knot, beyond which nothing is known of the law
RESAMPLED = 2000  # of them, by weight, to which a mixture is fitted
SPREAD = 0.1  # standard deviations, of what such a node stands for
FEWEST_EFFECTIVE = 400.0  # of the nodes
LARGEST_MIXTURE = 6  # components
INDEPENDENT = 0.03  # nats of dependence between what one matrix makes independent at all knots, that is left


def fit_conditional(
    posterior: Posterior, drivers: tuple[int, ...], start: FloatArray, mean: FloatArray, covariance: FloatArray,
    matrix: FloatArray | None = None, is_near: bool = True, like: MixtureReference | None = None,
    first_step: float = FIRST_STEP,
) -> tuple[ConditionalReference | None, int]:  # fmt: skip
    """Approximate the law of the other coordinates at a cloud of values of the drivers, and fit; None where it fails.

    Parameters
    ----------
    posterior : Posterior
    drivers : tuple of int
        Two to `MOST_DRIVERS` coordinates.
    start : ndarray, shape (dim,)
        A state near the middle of the posterior.
    mean, covariance : ndarray, shapes (k,) and (k, k)
        About those of the drivers.
    matrix : ndarray, shape (dim - k, dim - k), optional
        One that made such laws independent on other data.
    is_near : bool
        Whether that mean is known to be about right; else the largest marginal density is looked for first.
    like : MixtureReference, optional
        The law of the drivers on other data.
    first_step : float
        Standard deviations of a driver, along which that search goes at most in its first step.

    Returns
    -------
    reference : ConditionalReference or None
    n_gradients : int
    """
    dim, k = len(start), len(drivers)
    if not 2 <= k <= MOST_DRIVERS or not k < dim <= LARGEST_DIM:
        return None, 0
    target = CountedDensity(posterior, dim)
    laplace, state = Laplace(target, drivers, dim), np.asarray(start)
    search = Search(laplace, state[list(drivers)], state[laplace.others])
    if not is_near:
        mean, covariance = search.climb(mean, covariance, first_step)
    seen: Knots | None = None
    for _ in range(MOST_ROUNDS):
        found = search.cloud(mean, covariance)
        if found is None:
            return None, target.n_gradients
        knots = found.where(~found.deep)
        seen = found if seen is None else seen.with_more(found)
        nodes, weights = _mass(seen, mean, covariance)
        if nodes is None:
            return None, target.n_gradients
        new_mean = weights @ nodes
        new_covariance = (nodes - new_mean).T * weights @ (nodes - new_mean)
        is_near = _is_like(mean, covariance, new_mean, new_covariance)
        effective = 1.0 / float((weights**2).sum())
        mean, covariance = new_mean, _blended(covariance, new_covariance, effective)
        if is_near and effective >= FEWEST_EFFECTIVE:
            return _law(knots, drivers, nodes, weights, matrix, like), target.n_gradients
    return None, target.n_gradients


@cache
def _nodes(k: int) -> FloatArray:
    """Return standardised nodes, always the same."""
    from scipy.stats import qmc

    return np.asarray(WIDTH * qmc.MultivariateNormalQMC(np.zeros(k), seed=np.random.default_rng(10 + k)).random(NODES))


def _mass(knots: Knots, mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray | None, FloatArray]:
    """Return nodes and their weights under the marginal law of the drivers; None where too few knots have mass."""
    from scipy.interpolate import RBFInterpolator
    from scipy.spatial import KDTree

    k = len(mean)
    if int((~knots.deep).sum()) < (k + 1) * (k + 2):
        return None, np.empty(0)
    factor = np.linalg.cholesky(covariance)
    to_standard = np.linalg.inv(factor)
    at = (knots.u - mean) @ to_standard.T
    level = np.maximum(knots.log_marginal - knots.log_marginal.max(), -2.0 * DEPTH)  # a fall of hundreds would bend it
    law = RBFInterpolator(at, level, kernel="thin_plate_spline", degree=2)
    x = _nodes(k)
    log_weight = np.minimum(law(x), 1.0) + 0.5 * ((x / WIDTH) ** 2).sum(axis=1)
    is_far = KDTree(at).query(x)[0] > REACH
    log_weight[is_far | ((x < at.min(axis=0)) | (x > at.max(axis=0))).any(axis=1)] = -np.inf
    weights = np.exp(log_weight - log_weight.max())
    return mean + x @ factor.T, weights / weights.sum()


def _is_like(mean: FloatArray, covariance: FloatArray, new_mean: FloatArray, new_covariance: FloatArray) -> bool:
    """Return whether the mass is in the middle of its cloud, which is about as wide."""
    scale, new_scale = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(new_covariance))
    ratio = new_scale / scale
    return bool((np.abs(new_mean - mean) < NEAR * new_scale).all() and ((ratio < LIKE) & (ratio > 1.0 / LIKE)).all())


def _blended(covariance: FloatArray, new: FloatArray, effective: float) -> FloatArray:
    """Return the covariance of the next cloud: of few effective nodes it is drawn towards the last one."""
    share = effective / (effective + 10.0 * len(covariance))
    return share * new + (1.0 - share) * covariance


def _law(
    knots: Knots,
    drivers: tuple[int, ...],
    nodes: FloatArray,
    weights: FloatArray,
    matrix: FloatArray | None,
    like: MixtureReference | None,
) -> ConditionalReference | None:
    """Return the law through the knots."""
    try:
        marginal = marginal_law(nodes, weights, like)
    except np.linalg.LinAlgError:  # one node has all the mass
        return None
    origin, spread = knots.u.mean(axis=0), knots.u.std(axis=0)
    centre = knots.modes.mean(axis=0)
    n = len(centre)
    matrix = joint_diagonaliser(knots.covariances, matrix)
    covariances = matrix @ knots.covariances @ matrix.T
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        return None
    scales = np.einsum("mii->mi", factors)
    values = [(knots.modes - centre) @ matrix.T, np.log(scales) + 0.5 * np.log(inflation(n))]
    diagonal = np.log(np.einsum("mii->mi", covariances)).sum(axis=1)
    if float((0.5 * diagonal - np.log(scales).sum(axis=1)).mean()) > INDEPENDENT:
        rows, columns = np.tril_indices(n, -1)
        values.append((np.linalg.inv(factors) * scales[:, :, None])[:, rows, columns])
    else:
        values[1] = 0.5 * (np.log(np.einsum("mii->mi", covariances)) + np.log(inflation(n)))
    at = (knots.u - origin) / spread
    try:
        coefficients = spline_through(at, np.concatenate(values, axis=1))
    except np.linalg.LinAlgError:
        return None
    return ConditionalReference(drivers, marginal, centre, matrix, origin, spread, at, coefficients)


def marginal_law(nodes: FloatArray, weights: FloatArray, like: MixtureReference | None = None) -> MixtureReference:
    """Return a mixture of Gaussians like weighted nodes, shapes (n, k) and (n,).

    Nodes of large weight, of which there are some in tails, stand for what is around them: they are spread a little, or
    a component would be one of them, as narrow as none of the law is. ``like`` is the mixture on other data.
    """
    points = resampled(nodes, weights, RESAMPLED)
    factor = np.linalg.cholesky(np.cov(points.T))
    noise = np.random.default_rng(0).standard_normal(points.shape)  # always the same
    best = mixture_near(points + SPREAD * noise @ factor.T, LARGEST_MIXTURE, like)
    components = []
    for centre, covariance in zip(best.means_, best.covariances_, strict=True):
        deviation = np.sqrt(np.diag(covariance))
        factor = np.linalg.cholesky(covariance / np.outer(deviation, deviation))
        components.append(
            Component(
                centre, deviation * np.sqrt(INFLATION), matrix=np.asarray(np.linalg.inv(factor), dtype=np.float64)
            )
        )
    return MixtureReference(tuple(components), best.weights_ / best.weights_.sum())
