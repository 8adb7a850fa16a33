"""A Gaussian law, in centred coordinates where effects have scales, found without chains by variational inference.

Which coordinates are standardised effects of which scale, gradients tell. Where the likelihood knows ``z`` through
``exp(s) z`` alone, its gradient by ``s`` is the sum of ``z`` times its gradients by ``z``, at every state. Elements off
the diagonal of a Cholesky factor show where one effect is 1 and all others are 0. Of all Gaussian laws of the centred
coordinates the one of least KL(q || p) has an average gradient of zero, and a precision that is the average curvature
(Opper & Archambeau 2009).

Where data say little of a scale, its effects are better left as they are, and the scale is taken in a coordinate in
which the prior is about normal (`bread.fitting.gaussian.normal_coordinates`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.errors import BreadError
from bread.fitting.gaussian.modes import NOWHERE, CountedDensity, descended
from bread.fitting.search.work import FitWork, Part
from bread.paths.centred import CentredReference, Link

EXACT = 1e-6  # relative: what a sum of gradients may differ by, and a coefficient of it from 0 or 1
SPARE = 10  # states at which gradients are compared, beyond the number of coordinates
ROUNDS = 8  # at most, in each of which the curvature is taken anew
LAST_ROUNDS = 2  # the same, where the curvature is averaged over all draws and the law is about right
PAIRS = 8  # of draws to either side of the mean, the same in all steps of a round
FEW = 2  # of these pairs, at which the curvature is averaged first; at all of them where that is not near
NEAREST = 1.0  # nats of divergence that own draws may show, beyond which it is averaged at more
STEPS, CLOSE = 6, 0.15  # of the mean in a round; standard deviations that are left to go, at which it ends
NEAR = 0.5  # standard deviations that a round moves the mean, from which on no other is needed
FARTHEST = 3.0  # standard deviations a coordinate that a step may go
GAIN = 1e-3  # of what a step promises, that it must bring
NARROWEST = 0.1  # least curvature, as a multiple of that of the round before
DIFFERENCE = 1e-2  # standard deviations to either side, for curvatures
CLIMB = 60  # steps towards a mode of the effects given their scales


def find_scales(work: FitWork, states: FloatArray) -> NDArray[np.bool_] | None:
    """Return which coordinates multiply which, shape (dim, dim), as of `CentredReference.by`; None where none do.

    Parameters
    ----------
    work : FitWork
    states : ndarray, shape (n, dim)
        At least as many as coordinates, spread as the posterior or wider; gradients are taken at some of them.
    """
    dim = work.dim
    if not work.transformed.any() or len(states) < dim + SPARE:
        return None
    states, slopes = _with_slopes(work, states, dim + SPARE)
    if len(states) < dim + SPARE:
        return None
    weights = 1.0 / np.maximum(np.abs(slopes).max(axis=1, keepdims=True), np.finfo(float).tiny)
    slopes = slopes * weights  # states of very different densities count alike
    moved = states * slopes
    scales = np.flatnonzero(work.transformed & (np.abs(slopes).max(axis=0) > 0.0))
    coefficients, *_ = np.linalg.lstsq(moved, slopes[:, scales], rcond=None)
    missed = np.linalg.norm(moved @ coefficients - slopes[:, scales], axis=0)
    is_scale = missed < EXACT * np.linalg.norm(slopes[:, scales], axis=0)
    by = np.zeros((dim, dim), dtype=np.bool_)
    by[:, scales[is_scale]] = np.abs(coefficients[:, is_scale] - 1.0) < EXACT**0.5
    by[scales[is_scale]] = False  # a scale is no effect
    return by if by.any() else None


def find_links(work: FitWork, by: NDArray[np.bool_], states: FloatArray) -> tuple[Link, ...]:
    """Return which coordinates multiply effects and add them to others, as of `CentredReference.links`.

    None are found where two groups have the same data: of such effects gradients do not tell whose is whose.

    Parameters
    ----------
    work : FitWork
    by : ndarray of bool, shape (dim, dim)
        From `find_scales`.
    states : ndarray, shape (n, dim)
        At one of them all effects are set to 0, and then each in turn to 1; what was found must hold at `SPARE` of
        them.
    """
    effects = np.flatnonzero(by.any(axis=1))
    others = np.flatnonzero(~(by.any(axis=1) | by.any(axis=0)))
    states, slopes = _with_slopes(work, states, SPARE)
    if len(states) < SPARE:
        return ()
    start = states[0].copy()
    start[effects] = 0.0
    none = _likelihood_slopes(work, start[None])[0]
    may_link = others[(none[others] == 0.0) & (slopes[:, others] != 0.0).any(axis=0)]
    if len(may_link) == 0:
        return ()
    start[may_link] = 0.0  # then no effect acts through another one
    single = np.repeat(start[None], len(effects), axis=0)
    single[np.arange(len(effects)), effects] = 1.0
    of_single = _likelihood_slopes(work, single)
    by_u = of_single[:, effects] * np.exp(-(single @ by.T)[:, effects])  # each effect's own slope, in turn
    links = [_link(int(one), effects, of_single[:, one], by_u) for one in may_link]
    found = _in_order([link for link in links if link is not None])
    law = CentredReference(by, np.zeros(work.dim), np.eye(work.dim), found)
    by_centred = law.density_of_centred(states, slopes)  # of a link there is nothing left
    left = [np.abs(by_centred[:, link.by]).max() / np.abs(slopes[:, link.by]).max() for link in found]
    return found if all(one < EXACT for one in left) else ()


def _link(by: int, effects: NDArray[np.intp], slopes: FloatArray, by_u: FloatArray) -> Link | None:
    """Return effects that a coordinate multiplies, and those whose slope is its own where one of these is 1."""
    is_source = np.isfinite(slopes) & (slopes != 0.0)
    if not is_source.any():
        return None
    missed = np.abs(by_u[is_source] - slopes[is_source, None])
    nearest = missed.argmin(axis=1)
    return Link(by, effects[is_source], effects[nearest]) if len(set(nearest)) == len(nearest) else None


def _in_order(links: list[Link]) -> tuple[Link, ...]:
    """Return links after those to which their sources are targets; none where there is no such order."""
    ordered: list[Link] = []
    while links:
        free = [one for one in links if not any(np.isin(one.sources, other.targets).any() for other in links)]
        if not free:
            return ()
        ordered += free
        links = [one for one in links if not any(one is other for other in free)]
    return tuple(ordered)


def _with_slopes(work: FitWork, states: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the first ``n`` states at which the log likelihood has a finite gradient, and it there; fewer if none do.

    Prior draws may be so far out that some have none.
    """
    found, slopes = np.empty((0, work.dim)), np.empty((0, work.dim))
    while len(found) < n and len(states):
        tried, states = np.split(states, [max(n - len(found), SPARE)])
        at = _likelihood_slopes(work, tried)
        usable = np.isfinite(at).all(axis=1)
        if not usable.any():
            break
        found, slopes = np.concatenate([found, tried[usable]]), np.concatenate([slopes, at[usable]])
    return found[:n], slopes[:n]


def _likelihood_slopes(work: FitWork, states: FloatArray) -> FloatArray:
    """Return the gradient of the log likelihood at states, shape (n, dim); NaN where there is no such density."""
    work.n_gradients += 2 * len(states)
    try:
        whole, prior = (work.posterior.density_gradient(beta, states)[1] for beta in (1.0, 0.0))
    except BreadError:
        return np.full(states.shape, np.nan)
    return np.asarray(whole - prior)


def fit_centred(work: FitWork, start: CentredReference, *, is_guess: bool) -> CentredReference | None:
    """Return the Gaussian law of least KL(q || p), about, in the coordinates of ``start``; None where the search fails.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    start : CentredReference
        Where the search begins; logarithms of scales should be about right.
    is_guess : bool
        Whether its root is diagonal and may be far too wide; else it is the law of other data.
    """
    search, found = _Search(work, start), None
    try:
        for n_pairs in (0, FEW) if start.is_centred else (FEW, PAIRS):
            law = search.found(n_pairs, is_guess=is_guess and found is None)
            if law is None:
                break
            if found is None or work.own_elbo(law) > work.own_elbo(found):
                found = law
            if work.own_divergence(found) < NEAREST:
                break
    except np.linalg.LinAlgError:
        return found
    finally:
        work.n_gradients += search.n_gradients
    return found


class _Search:
    """The log density in centred coordinates, and steps towards the law of least KL(q || p)."""

    def __init__(self, work: FitWork, start: CentredReference) -> None:
        self._target = CountedDensity(work.posterior, work.dim)
        self._at = start
        half = work.rng(Part.CENTRED).standard_normal((PAIRS, work.dim))
        self._z = np.concatenate([half, -half])
        self._at = replace(start, mean=self._climbed())

    @property
    def n_gradients(self) -> int:
        """Gradient evaluations spent."""
        return self._target.n_gradients

    def found(self, n_pairs: int, *, is_guess: bool) -> CentredReference | None:
        """Return the law; None where the density is bad about the start.

        The curvature is that at the mean, or with ``n_pairs`` its average over draws. Another search begins at the law.
        """
        mean, root = self._at.mean, self._at.root
        if not np.isfinite(self._values(mean[None])[0][0]):
            return None
        for turn in range(ROUNDS if n_pairs < PAIRS else LAST_ROUNDS):
            is_rough = is_guess and turn == 0
            root, is_held = self._by_curvature(mean, root, None if is_rough else n_pairs)
            before, mean = mean, self._centre(mean, root)
            if not (is_rough or is_held) and np.linalg.norm(np.linalg.solve(root, mean - before)) < NEAR:
                break
        self._at = replace(self._at, mean=mean, root=root)
        return self._at

    def _values(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log density and gradient at rows of u; -inf and 0 where it is bad."""
        states = self._at.uncentred(u)
        values, gradients = self._target.values_and_gradients(states)
        jacobian = -self._at.log_jacobian(states)
        good = np.isfinite(values)
        by_u = self._at.density_of_centred(states, gradients)
        return np.where(good, values + jacobian, -np.inf), np.where(good[:, None], by_u, 0.0)

    def _climbed(self) -> FloatArray:
        """Return the mean with all but the scales moved to where the density is largest given these."""
        mean, spread = self._at.mean, np.sqrt((self._at.root**2).sum(axis=1))
        free = np.setdiff1d(np.arange(len(mean)), self._at.scales)

        def minus(w: FloatArray) -> tuple[float, FloatArray]:
            u = mean.copy()
            u[free] += w * spread[free]
            values, gradients = self._values(u[None])
            return (-values[0], -gradients[0, free] * spread[free]) if np.isfinite(values[0]) else (NOWHERE, 0.0 * w)

        top = descended(minus, np.zeros(len(free)), maxiter=CLIMB)
        moved = mean.copy()
        moved[free] += top.x * spread[free]
        return moved

    def _by_curvature(self, mean: FloatArray, root: FloatArray, n_pairs: int | None) -> tuple[FloatArray, bool]:
        """Return L of the covariance matrix ``L L'`` that the curvature says, and whether it was held.

        In no direction is the law wider than the one before by more than `NARROWEST` allows. ``n_pairs``: over how many
        pairs of draws the curvature is averaged; with 0 it is that at the mean. By logarithms of scales, and where
        coordinates are changed to normal ones, the average is over all of them: it grows with squares of effects, which
        are larger than those at the mean. With None all is taken at the mean: draws of a law that is far too wide say
        nothing.
        """
        few = self._z[[*range(n_pairs or 0), *range(PAIRS, PAIRS + (n_pairs or 0))]]
        rows = self._curvature(mean + few @ root.T if len(few) else mean[None], root.T) @ root  # 1: nothing changes
        bent = np.union1d(self._at.scales, self._at.normal.places)
        if n_pairs is not None and n_pairs < PAIRS and len(bent):
            inverse = np.linalg.inv(root)
            precision = inverse.T @ rows @ inverse
            sizes = np.sqrt((root[bent] ** 2).sum(axis=1))[:, None]
            columns = self._curvature(mean + self._z @ root.T, sizes * np.eye(len(mean))[bent]) / sizes
            precision[bent], precision[:, bent] = columns, columns.T
            rows = root.T @ precision @ root
        curvature, axes = np.linalg.eigh(0.5 * (rows + rows.T))
        half = (root @ axes) / np.sqrt(np.maximum(curvature, NARROWEST))
        return np.linalg.cholesky(half @ half.T), bool(curvature[0] < NARROWEST)

    def _curvature(self, at: FloatArray, directions: FloatArray) -> FloatArray:
        """Return the change of the gradient along each direction, less than zero times, averaged over places.

        ``at`` is (n, dim), ``directions`` (k, dim), and what is returned too.
        """
        steps = DIFFERENCE * directions[:, None]
        around = np.concatenate([at + steps, at - steps]).reshape(-1, at.shape[1])
        gradients = self._values(around)[1].reshape(2, len(directions), len(at), -1).mean(axis=2)
        return np.asarray((gradients[1] - gradients[0]) / (2.0 * DIFFERENCE))

    def _centre(self, mean: FloatArray, root: FloatArray) -> FloatArray:
        """Return the mean at which the average log density of the law is largest, the root held."""
        around = self._z @ root.T
        values, gradients = self._values(mean + around)
        average, slope = values.mean(), gradients.mean(axis=0) @ root
        for _ in range(STEPS):
            to_go = float(np.linalg.norm(slope))
            if to_go < CLOSE:
                break
            step = min(1.0, FARTHEST * np.sqrt(len(mean)) / to_go)
            while step > GAIN:
                tried = mean + step * (root @ slope)
                values, gradients = self._values(tried + around)
                if values.mean() > average + GAIN * step * to_go**2:
                    break
                step /= 3.0
            else:
                break
            mean, average, slope = tried, values.mean(), gradients.mean(axis=0) @ root
        return mean
