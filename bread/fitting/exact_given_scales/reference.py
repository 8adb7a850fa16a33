"""Fit of a `bread.paths.precision.PrecisionReference`: the others' exact law, and the scales' by importance sampling.

With the others integrated out, in closed form, what is left is a density of the scales alone, which is smooth and has
one mode where the joint law is a funnel for each of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.conditional.one_driver import middle_and_spread
from bread.fitting.exact_given_scales.collapsed import Collapsed, Structure
from bread.fitting.exact_given_scales.precision_structure import (
    Quadratic,
    Where,
    find_linear,
    find_sums,
    quadratic_coordinates,
)
from bread.fitting.gaussian.modes import CountedDensity
from bread.fitting.importance.adapted_product import LARGEST_DIM as MOST_DRIVERS
from bread.fitting.importance.adapted_product import product_adapted
from bread.fitting.search.work import FitWork
from bread.paths.precision import PrecisionReference
from bread.paths.sums import Sums

MOST_OTHERS = 60  # coordinates: every evaluation factorises their matrix
ROUNDS, KEPT_ROUNDS = 12, 4
FEW, FEW_DRAWS, MANY_DRAWS = 6, 600, 2000  # drivers; draws in each round of up to so many of them, and of more
JITTER, REACH = 0.4, 2.0  # of a spread, of where the sums are looked for; within which they are compared
CHECKS = 4  # places where they are compared
OUTSIDE = 1e-3  # share of draws to either side of where a coordinate is interpolated
SEED = 11  # of what is always the same


def find_structure(work: FitWork, draws: FloatArray, like: PrecisionReference | None = None) -> Structure | None:
    """Return which coordinates have a Gaussian law given the others, and how it depends on them; None if none has.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    draws : ndarray, shape (n, dim)
        They show about where, and how far apart, coordinates are; of the prior, or of the posterior.
    like : PrecisionReference, optional
        Of other data: often only the linear coefficients depend on these.
    """
    dim = work.dim
    middle, spread = middle_and_spread(draws)
    if not (np.isfinite(middle).all() and np.isfinite(spread).all() and (spread > 0.0).all()):
        return None
    target = CountedDensity(work.posterior, dim)

    def gradient(state: FloatArray) -> FloatArray:
        return -target(state)[1]

    def looked(others: NDArray[np.int64]) -> tuple[Quadratic, Where]:
        quadratic = Quadratic(gradient, others, dim, spread)
        drivers = quadratic.drivers
        at, wide = middle[drivers], spread[drivers]
        low, high = np.quantile(draws[:, drivers], (OUTSIDE, 1.0 - OUTSIDE), axis=0)
        return quadratic, Where(
            at + JITTER * wide * rng.standard_normal(len(drivers)),
            (low, high),
            np.clip(at + wide * rng.uniform(-REACH, REACH, (CHECKS, len(drivers))), low, high),
            spread[others] * rng.standard_normal((CHECKS, len(others))),
        )

    rng = np.random.default_rng(SEED)
    found: tuple[Sums, Sums] | None = None
    if like is not None:
        others = like.others
        quadratic, where = looked(others)
        linear = find_linear(quadratic, like.precision, where)
        found = None if linear is None else (like.precision, linear)
    if found is None:
        others = quadratic_coordinates(gradient, middle + JITTER * spread * rng.standard_normal(dim), spread)
        if 0 < len(others) <= MOST_OTHERS and 0 < dim - len(others) <= MOST_DRIVERS:
            found = find_sums(*looked(others))
    work.n_gradients += target.n_gradients
    return None if found is None else Structure(np.delete(np.arange(dim), others), others, *found)


def fit_precision(work: FitWork, draws: FloatArray, structure: Structure | None = None) -> PrecisionReference | None:
    """Return the law of scales and of the others given them; None where there is no such structure, or no fit.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    draws : ndarray, shape (n, dim)
        As of `find_structure`; where scales are first looked for.
    structure : Structure, optional
        What that has found.
    """
    structure = structure or find_structure(work, draws)
    if structure is None:
        return None
    k = len(structure.drivers)
    n_draws = FEW_DRAWS if k <= FEW else MANY_DRAWS
    at = draws[:, structure.drivers]
    marginal = product_adapted(Collapsed(work, structure, at), at, n_draws, ROUNDS, KEPT_ROUNDS)
    if marginal is None:
        return None
    drivers = tuple(int(driver) for driver in structure.drivers)
    return PrecisionReference(drivers, marginal, structure.precision, structure.linear, len(structure.others))
