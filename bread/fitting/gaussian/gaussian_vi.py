"""A Gaussian at a mode, moved to where the posterior is: variational inference with gradients at its own draws.

In many coordinates a mode is not where the mass is. Of all Gaussian laws q the one of least KL(q || p) has an average
gradient of log p of zero and an average curvature that is its precision (Opper & Archambeau 2009). Both averages are
taken over pairs of draws to either side of the mean. The curvature is corrected along the principal axes of the law,
and along scales, in whose directions a law is widest, with how all other coordinates follow them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.gaussian.modes import CountedDensity
from bread.fitting.search.work import FitWork, Part
from bread.paths.mixture import MixtureReference, gaussian

PAIRS = 16  # of draws in each round
STEPS = (1.0, 1.0, 0.7, 0.5, 0.5, 0.4, 0.3, 0.3)  # of each round, as a share of what its draws say
MOST_FIRST = 12  # rounds, until which the first steps are taken again where the mean has far to go
FARTHEST = 2.0  # standard deviations that a round may move the mean along each axis
MOST = 2.0  # times by which a round may change a curvature
ALONG, LITTLE = 8, 0.2  # draws at which gradients along scales are compared; standard deviations to either side


@dataclass(frozen=True)
class _Law:
    """Scales s, and of the other coordinates a Gaussian law whose mean follows them.

    Attributes
    ----------
    scales, others : ndarray of int
        Which coordinates they are.
    mean : ndarray, shape (dim,)
    root : ndarray, shape (k, k)
        A, of the covariance matrix ``A A'`` of the scales.
    slopes : ndarray, shape (dim - k, k)
        B, by which the others follow them.
    axes, deviations : ndarray, shapes (dim - k, dim - k) and (dim - k,)
        Principal axes of the others given the scales, and standard deviations along them.
    """

    scales: NDArray[np.int64]
    others: NDArray[np.int64]
    mean: FloatArray
    root: FloatArray
    slopes: FloatArray
    axes: FloatArray
    deviations: FloatArray

    @classmethod
    def of(cls, law: MixtureReference, is_scale: NDArray[np.bool_]) -> _Law:
        """Return one Gaussian so."""
        (component,) = law.components
        matrix = np.eye(len(is_scale)) if component.matrix is None else component.matrix
        half = component.scale[:, None] * np.linalg.inv(matrix)
        covariance = half @ half.T
        scales, others = np.flatnonzero(is_scale), np.flatnonzero(~is_scale)
        own, across = covariance[np.ix_(scales, scales)], covariance[np.ix_(others, scales)]
        slopes = np.linalg.solve(own, across.T).T if len(scales) else across
        variances, axes = np.linalg.eigh(covariance[np.ix_(others, others)] - slopes @ across.T)
        deviations = np.sqrt(np.maximum(variances, variances[-1] * 1e-14))
        return cls(scales, others, component.mean, np.linalg.cholesky(own), slopes, axes, deviations)

    def away(self, z: FloatArray) -> FloatArray:
        """Return how far from the mean standard normal rows z, scales first, are; shape (n, dim)."""
        k = len(self.scales)
        result = np.empty(z.shape)
        result[:, self.scales] = z[:, :k] @ self.root.T
        result[:, self.others] = result[:, self.scales] @ self.slopes.T + (z[:, k:] * self.deviations) @ self.axes.T
        return result

    def pull(self, gradients: FloatArray) -> FloatArray:
        """Return gradients by rows of z, shape (n, dim), from those by coordinates."""
        of_others = gradients[:, self.others]
        by_scales = (gradients[:, self.scales] + of_others @ self.slopes) @ self.root
        return np.concatenate([by_scales, of_others @ self.axes * self.deviations], axis=1)

    def moved(self, z: FloatArray) -> _Law:
        """Return the law with its mean where z, shape (dim,), is."""
        return replace(self, mean=self.mean + self.away(z[None])[0])

    def covariance(self) -> FloatArray:
        """Return the covariance matrix, shape (dim, dim)."""
        half = self.away(np.eye(len(self.mean)))
        return np.asarray(half.T @ half)


def centred(work: FitWork, law: MixtureReference, is_scale: NDArray[np.bool_]) -> MixtureReference:
    """Return the Gaussian law that a search for the one of least KL(q || p) comes to, from one at a mode.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    law : MixtureReference
        One Gaussian.
    is_scale : ndarray of bool, shape (dim,)
        Coordinates that others may follow over their whole width.
    """
    target = CountedDensity(work.posterior, work.dim)
    now = _Law.of(law, is_scale)
    k = len(now.scales)
    steps, number = list(STEPS), 0
    while steps:
        step = steps[0]
        z = work.rng(Part.CENTRED, number).standard_normal((PAIRS, work.dim))
        away = now.away(z)
        if k:
            now = _along_scales(target, now, now.mean + away[:ALONG])
            away = now.away(z)
        gradients = now.pull(target.gradients(np.concatenate([now.mean + away, now.mean - away])))
        ahead, behind = gradients[:PAIRS], gradients[PAIRS:]
        curvature = 1.0 + ((0.5 * (ahead - behind) - z) * z).mean(axis=0)[k:]
        change = np.clip(curvature, 1.0 / MOST, MOST) ** (-0.5 * step)
        move = -step * gradients.mean(axis=0)
        now = now.moved(np.clip(move, -FARTHEST, FARTHEST))
        now = replace(now, deviations=now.deviations * change)
        number += 1
        if number >= MOST_FIRST or (np.abs(move) <= FARTHEST).all():
            del steps[0]
    work.n_gradients += target.n_gradients
    try:
        return gaussian(now.mean, now.covariance(), law.label)
    except np.linalg.LinAlgError:
        return law


def _along_scales(target: CountedDensity, law: _Law, draws: FloatArray) -> _Law:
    """Return the law with the scales' covariance, and how others follow them, by average curvatures along them.

    The covariance stays where these are none of a maximum.
    """
    k = len(law.scales)
    deviations = np.sqrt((law.root**2).sum(axis=1))
    across = np.empty((k, len(law.mean)))
    for index in range(k):
        step = np.zeros(len(law.mean))
        step[law.scales[index]] = LITTLE * deviations[index]
        step[law.others] = law.slopes[:, index] * step[law.scales[index]]
        ends = target.gradients(np.concatenate([draws + step, draws - step]))
        across[index] = (ends[: len(draws)] - ends[len(draws) :]).mean(axis=0) / (2.0 * LITTLE * deviations[index])
    of_others = across[:, law.others]
    follow = ((of_others @ law.axes) * law.deviations**2) @ law.axes.T  # by which they should follow less
    own = across[:, law.scales] + of_others @ law.slopes
    precision = 0.5 * (own + own.T) - 0.5 * (of_others @ follow.T + follow @ of_others.T)
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(precision))
        root = np.linalg.cholesky(inverse.T @ inverse)
    except np.linalg.LinAlgError:
        return law
    return replace(law, slopes=law.slopes - follow.T, root=np.asarray(root, dtype=np.float64))
