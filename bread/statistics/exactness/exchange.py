"""Do draws follow a density? By what would flow between them and perturbed copies: no gradient needed.

For x ~ p and a perturbation of symmetric law, x' = x + e, Barker's flow is balanced: p(x) a(x, x') with a(x, x') =
p(x') / (p(x) + p(x')) is symmetric in x and x'. So E[a (h(x') - h(x))] = 0 for every bounded h. Nothing is assumed
about p: it may be discrete, end at walls, have kinks or no gradient, and its constant cancels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.means import MeanTest, mean_zero_test

SIZES = (0.3, 1.0, 3.0)  # of perturbations, in spreads of the coordinate: near and far
FEWEST = 100  # draws in whose flow along one coordinate a test believes
MOST_JOINT = 2  # perturbations of all coordinates together


def perturbations(first: FloatArray, draws: FloatArray, is_continuous: NDArray[np.bool_], rng: Generator) -> FloatArray:
    """Return symmetric perturbations of draws: of one coordinate each at several sizes, then of all together.

    Parameters
    ----------
    first : ndarray, shape (m, d)
        Other draws, which set the sizes.
    draws : ndarray, shape (n, d)
    is_continuous : ndarray of bool, shape (d,)
        False: whole numbers. Their steps are +-1, and +-1 to +- the range of ``first``.
    rng : Generator

    Returns
    -------
    ndarray, shape (n, 3 d + 2, d), or (n, 3, d) for d = 1
    """
    n, d = draws.shape
    low, high = np.quantile(first, [0.16, 0.84], axis=0, method="closest_observation")
    spread = np.where(high > low, 0.5 * (high - low), np.where(first.std(axis=0) > 0.0, first.std(axis=0), 1.0))
    reach = np.maximum(np.ptp(first, axis=0), 1.0)

    def steps(i: int, size: float) -> FloatArray:
        if is_continuous[i]:
            return np.asarray(size * spread[i] * rng.normal(size=n))
        sign = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        return np.asarray(sign * (1.0 if size < 1.0 else rng.integers(1, int(reach[i]) + 1, size=n)))

    moves = []
    for i in range(d):
        for size in SIZES:
            move = np.zeros((n, d))
            move[:, i] = steps(i, size)
            moves.append(move)
    # Along differences of other draws: they follow ridges, and their law is symmetric.
    for scale in (0.5, 1.0)[: MOST_JOINT if d > 1 else 0]:
        left, right = rng.integers(len(first), size=(2, n))
        along = first[left] - first[right]
        moves.append(np.where(is_continuous, scale * along, along))
    return np.asarray(draws[:, None] + np.stack(moves, axis=1), dtype=np.float64)


def balanced_flow(
    log_density: ArrayLike, log_density_moved: ArrayLike, before: ArrayLike, after: ArrayLike
) -> FloatArray:
    """Return Barker's flow of functions, averaged over perturbations: mean zero if draws follow the density.

    Parameters
    ----------
    log_density : array_like, shape (n,)
        Of draws, in nats up to a constant. -inf is allowed (and is itself a contradiction). NaN: no flow.
    log_density_moved : array_like, shape (n, M)
        Of the perturbed draws.
    before : array_like, shape (n, F)
        Bounded functions of draws.
    after : array_like, shape (n, M, F)

    Returns
    -------
    ndarray, shape (n, F)
        Independent rows, bounded by twice the functions' bound.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match.

    References
    ----------
    Barker (1965), "Monte Carlo calculations of the radial distribution functions ...", Aust. J. Phys. 18, 119-134.
    """
    old, new = np.asarray(log_density, dtype=np.float64), np.asarray(log_density_moved, dtype=np.float64)
    h_old, h_new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if new.ndim != 2 or old.shape != new.shape[:1] or h_new.shape != (*new.shape, *h_old.shape[1:]):
        raise InvalidArgumentError(
            f"shapes must be (n,), (n, M), (n, F) and (n, M, F), but are {old.shape}, {new.shape}, {h_old.shape} and "
            f"{h_new.shape}."
        )
    with np.errstate(invalid="ignore"):
        share = expit(new - old[:, None])
    share = np.nan_to_num(share, nan=0.0)
    flow = np.einsum("nm,nmf->nf", share, h_new - h_old[:, None])  # exactly 0 where h does not change
    return np.asarray(flow / new.shape[1], dtype=np.float64)


def flow_along(
    values: FloatArray,
    centre: FloatArray | float,
    spread: FloatArray | float,
    log_density: Callable[[FloatArray], FloatArray],
    rng: Generator,
) -> MeanTest:
    """Test whether the flow along one coordinate is balanced: two columns, by its side and by its distance.

    Parameters
    ----------
    values : ndarray, shape (n,)
        The coordinate of exact draws. The first quarter sets the sizes of perturbations, the rest is tested.
    centre, spread : float or ndarray, shape (n,)
        Of the coordinate, set by the first quarter.
    log_density : callable
        Takes the coordinate, shape (n,), everything else being as in the draws; returns values in nats, shape (n,).
    rng : Generator

    Returns
    -------
    MeanTest
        NaN where fewer than 100 draws are left whose spread is known.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (values - centre) / spread
    usable = np.isfinite(z)
    n_first = len(z) // 4
    tested = usable & (np.arange(len(z)) >= n_first)
    if tested.sum() < FEWEST:
        return MeanTest(np.full(2, np.nan), np.full(2, np.nan))
    z = np.where(usable, z, 0.0)[:, None]
    moved = perturbations(z[:n_first], z, np.ones(1, dtype=bool), rng)[..., 0]
    places = np.where(usable[:, None], np.expand_dims(centre, -1) + np.expand_dims(spread, -1) * moved, values[:, None])
    new = np.column_stack([log_density(place) for place in places.T])
    before, after = (np.stack([np.tanh(x), 1.0 / (1.0 + x**2)], axis=-1) for x in (z[:, 0], moved))
    flow = balanced_flow(log_density(values)[tested], new[tested], before[tested], after[tested])
    return mean_zero_test(flow, is_bounded=True)
