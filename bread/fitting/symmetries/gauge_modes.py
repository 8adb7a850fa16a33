"""Gaussian laws of what rotations leave alone, at the mode: Laplace's method in a gauge."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.gaussian.families import SMALLEST_SCALE, inflation
from bread.fitting.gaussian.laplace import Laplace
from bread.fitting.gaussian.modes import NOWHERE, CountedDensity, descended, fit_modes
from bread.fitting.search.work import FitWork
from bread.fitting.symmetries.find_rotations import LARGEST_DIM, Places
from bread.fitting.symmetries.invariant import invariant_work
from bread.paths.mixture import gaussian
from bread.paths.rotated import Gauge, RotatedReference, gauge_at

MOST_STEPS = 2000  # gradients of an optimisation: coordinates are many, and rotations leave it no valley to get lost in
WIDER = 1.5  # than in draws of one chain, the variance of a scale


def scales_outside(work: FitWork, places: Places) -> NDArray[np.bool_]:
    """Return which coordinates outside the matrix may be the logarithm of a scale, shape (dim,)."""
    scales = work.transformed.copy()
    scales[places] = False
    return scales


def gaussian_in_gauge(work: FitWork, places: Places, draws: FloatArray) -> RotatedReference | None:
    """Return a Gaussian of the invariant coordinates at their mode; where there are scales, at their mean in draws.

    With a scale as a coordinate the mode is where all that it scales is near zero, which is where no mass is.
    """
    if scales_outside(work, places).any():
        return _gaussian_given_scales(work, places, draws[len(draws) // 2 :])
    return gaussian_at_mode(work, places, draws[-1])


def gaussian_at_mode(work: FitWork, places: Places, start: FloatArray) -> RotatedReference | None:
    """Return a Gaussian of the invariant coordinates at their mode, in a gauge that is made for it."""
    gauge, y = _climbed(work, places, start, np.zeros(work.dim, dtype=bool))
    if y is None:
        return None
    inner = invariant_work(work, gauge)
    found, n_gradients = fit_modes(inner.posterior, [y], inner.transformed, largest=LARGEST_DIM)
    work.n_gradients += n_gradients
    return None if found is None else RotatedReference(gauge, found)


def _gaussian_given_scales(work: FitWork, places: Places, draws: FloatArray) -> RotatedReference | None:
    """Return a Gaussian law of the scales, by draws, and of the other invariant coordinates at the mode given them.

    That mode follows the scales linearly.
    """
    scales = scales_outside(work, places)
    start = draws[-1].copy()
    start[scales] = draws[:, scales].mean(axis=0)
    gauge, y = _climbed(work, places, start, scales)
    if y is None:
        return None
    inner = invariant_work(work, gauge)
    held = np.flatnonzero(inner.transformed & gauge.from_others)
    target = CountedDensity(inner.posterior, inner.dim)
    others = np.delete(np.arange(inner.dim), held)
    law = Laplace(target, list(held), inner.dim).at(y[held], y[others])
    if law is None:
        work.n_gradients += target.n_gradients
        return None
    y[others] = law.mode
    variance = np.maximum(draws[:, scales].var(axis=0), SMALLEST_SCALE) * WIDER
    slopes = []
    for index, deviation in zip(held, np.sqrt(variance), strict=True):
        step = np.zeros(inner.dim)
        step[index] = 0.1 * deviation
        change = target(y - step)[1][others] - target(y + step)[1][others]
        slopes.append(np.linalg.solve(law.precision, change / (0.2 * deviation)))
    work.n_gradients += target.n_gradients
    along = np.array(slopes).T
    covariance = np.diag(np.zeros(inner.dim))
    covariance[np.ix_(held, held)] = np.diag(variance)
    covariance[np.ix_(others, held)] = along * variance
    covariance[np.ix_(held, others)] = (along * variance).T
    own = np.linalg.inv(law.precision) * inflation(inner.dim)
    covariance[np.ix_(others, others)] = own + (along * variance) @ along.T
    if not np.isfinite(covariance).all():
        return None
    try:
        joint = gaussian(y, covariance, "Gaussian at the mode given scales")
    except np.linalg.LinAlgError:  # a scale of which draws show hardly any variance, and what follows it
        return None
    return RotatedReference(gauge, joint)


def _climbed(
    work: FitWork, places: Places, start: FloatArray, held: NDArray[np.bool_]
) -> tuple[Gauge, FloatArray | None]:
    """Return the mode of the invariant coordinates, those of some of the state's held, and a gauge made for it."""
    state, end = start, None
    for _ in range(2):  # to the mode in a gauge of the start's, then in one of its own
        gauge = gauge_at(places, state)
        inner = invariant_work(work, gauge)
        density = CountedDensity(inner.posterior, inner.dim)
        y, free = gauge.invariant(state), ~np.isin(np.arange(inner.dim), np.flatnonzero(held[gauge.others]))

        def of_free(values: FloatArray, y: FloatArray = y, free: Any = free, density: Any = density) -> Any:
            at = y.copy()
            at[free] = values
            value, gradient = density(at)
            return value, gradient[free]

        found = descended(of_free, y[free], maxfun=MOST_STEPS, maxiter=MOST_STEPS)
        work.n_gradients += density.n_gradients
        if found.fun >= NOWHERE:
            return gauge, None
        end = y.copy()
        end[free] = found.x
        state = gauge.state(end)
    return gauge, end


def mean_of(reference: RotatedReference) -> FloatArray:
    """Return the mean of a Gaussian law of the invariant coordinates, shape (n_invariant,)."""
    return reference.law.moments()[0]
