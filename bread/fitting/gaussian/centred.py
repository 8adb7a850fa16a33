"""A Gaussian law in centred coordinates, found without chains by variational inference.

Which coordinates are standardised effects of which scale, gradients tell. Where the likelihood knows ``z`` through
``exp(s) z`` alone, its gradient by ``s`` is the sum of ``z`` times its gradients by ``z``, at every state. Of all
Gaussian laws of the centred coordinates the one of least KL(q || p) has an average gradient of zero, and a precision
that is the average curvature (Opper & Archambeau 2009).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bread.backends.base import FloatArray
from bread.errors import BreadError
from bread.fitting.gaussian.modes import CountedDensity
from bread.fitting.search.work import FitWork, Part
from bread.paths.centred import CentredReference

EXACT = 1e-6  # relative: what a sum of gradients may differ by, and a coefficient of it from 0 or 1
SPARE = 10  # states at which gradients are compared, beyond the number of coordinates
ROUNDS = 8  # at most, in each of which the curvature is taken anew
PAIRS = 8  # of draws to either side of the mean, the same in all steps of a round
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
    states = states[: dim + SPARE]
    work.n_gradients += 2 * len(states)
    try:
        whole, prior = (work.posterior.density_gradient(beta, states)[1] for beta in (1.0, 0.0))
    except BreadError:
        return None
    slopes = whole - prior
    usable = np.isfinite(slopes).all(axis=1)
    if usable.sum() < dim:
        return None
    states, slopes = states[usable], slopes[usable]
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


def fit_centred(work: FitWork, by: NDArray[np.bool_], mean: FloatArray, spread: FloatArray) -> CentredReference | None:
    """Return the Gaussian law in centred coordinates of least KL(q || p), about; None where the search fails.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    by : ndarray of bool, shape (dim, dim)
        From `find_scales`.
    mean, spread : ndarray, shape (dim,)
        Of the centred coordinates, where the search begins; of logarithms of scales they should be about right.
    """
    search = _Search(work, by)
    try:
        return search.found(mean, spread)
    except np.linalg.LinAlgError:
        return None
    finally:
        work.n_gradients += search.n_gradients


class _Search:
    """The log density in centred coordinates, and steps towards the law of least KL(q || p)."""

    def __init__(self, work: FitWork, by: NDArray[np.bool_]) -> None:
        self._target = CountedDensity(work.posterior, work.dim)
        self._at = CentredReference(by, np.zeros(work.dim), np.eye(work.dim))
        half = work.rng(Part.CENTRED).standard_normal((PAIRS, work.dim))
        self._z = np.concatenate([half, -half])

    @property
    def n_gradients(self) -> int:
        """Gradient evaluations spent."""
        return self._target.n_gradients

    def found(self, mean: FloatArray, spread: FloatArray) -> CentredReference | None:
        """Return the law, from a first guess; None where the density is bad about it."""
        mean, root = self._climbed(mean, spread), np.diag(spread)
        if not np.isfinite(self._values(mean[None])[0][0]):
            return None
        for _ in range(ROUNDS):
            root, is_held = self._by_curvature(mean, root)
            before, mean = mean, self._centre(mean, root)
            if not is_held and np.linalg.norm(np.linalg.solve(root, mean - before)) < NEAR:
                break
        return CentredReference(self._at.by, mean, root)

    def _values(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log density and gradient at rows of u; -inf and 0 where it is bad."""
        states = self._at.uncentred(u)
        values, gradients = self._target.values_and_gradients(states)
        jacobian = -(u[:, self._at.scales] * self._at.by[:, self._at.scales].sum(axis=0)).sum(axis=1)
        good = np.isfinite(values)
        by_u = self._at.density_of_centred(states, gradients)
        return np.where(good, values + jacobian, -np.inf), np.where(good[:, None], by_u, 0.0)

    def _climbed(self, mean: FloatArray, spread: FloatArray) -> FloatArray:
        """Return the mean with all but the scales moved to where the density is largest given these."""
        free = np.setdiff1d(np.arange(len(mean)), self._at.scales)

        def minus(w: FloatArray) -> tuple[float, FloatArray]:
            u = mean.copy()
            u[free] += w * spread[free]
            values, gradients = self._values(u[None])
            return (-values[0], -gradients[0, free] * spread[free]) if np.isfinite(values[0]) else (1e300, 0.0 * w)

        top = minimize(minus, np.zeros(len(free)), jac=True, method="L-BFGS-B", options={"maxiter": CLIMB})
        moved = mean.copy()
        moved[free] += top.x * spread[free]
        return moved

    def _by_curvature(self, mean: FloatArray, root: FloatArray) -> tuple[FloatArray, bool]:
        """Return L of the covariance matrix ``L L'`` that the curvature at the mean says, and whether it was held.

        In no direction is it wider than the one before by more than `NARROWEST` allows.
        """
        steps = DIFFERENCE * root.T
        gradients = self._values(np.concatenate([mean + steps, mean - steps]))[1] @ root
        rows = (gradients[len(mean) :] - gradients[: len(mean)]) / (2.0 * DIFFERENCE)  # 1 where nothing changes
        curvature, axes = np.linalg.eigh(0.5 * (rows + rows.T))
        half = (root @ axes) / np.sqrt(np.maximum(curvature, NARROWEST))
        return np.linalg.cholesky(half @ half.T), bool(curvature[0] < NARROWEST)

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
