"""Laws of the other coordinates at a cloud of values of the drivers, by Laplace's method; where the cloud goes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.gaussian.laplace import Held, Laplace

KNOTS = {2: 40, 3: 60, 4: 80}  # by the number of drivers
WIDTH = 1.5  # of the cloud of knots, in standard deviations of the drivers
FARTHEST = 2.3  # of a knot of the cloud from the middle, in units of that width
ARMS = (3.5, 5.5, 8.0)  # standard deviations, of knots along each driver alone: log scales have long tails
ARM_KNOTS = 3  # at each of these, with other values of the other drivers
DEPTH = 15.0  # nats below the largest marginal density from where on a knot says nothing
DIFFERENCE = 0.03  # standard deviations, of a climb's differences
LEVEL = 0.05  # nats a standard deviation, of a slope that is the top
MOST_CLIMBS = 20  # steps
STEEP = 5.0  # nats a standard deviation, of a slope above which a climb takes each driver by itself
MOST_APPROACHES, MOST_HALVED = 10, 4  # steps of each driver by itself; halves of one that leads down
LONG_STEP, FIRST_STEP = 8.0, 3.0  # standard deviations, of such a step at most: where there is a top ahead; where not
CURVED = 6.0  # nats below the top down to which the marginal density is taken for Gaussian, for its width
MOST_CHANGED = 30.0  # of a variance by that
NOWHERE = 1e10  # depth of a point at which there is no law


@dataclass(frozen=True)
class Knots:
    """Laws of the other coordinates at values of the drivers, by Laplace's method.

    Attributes
    ----------
    u : ndarray, shape (m, k)
    modes : ndarray, shape (m, n)
    covariances : ndarray, shape (m, n, n)
    log_marginal : ndarray, shape (m,)
        Of the drivers (nats), not normalised.
    """

    u: FloatArray
    modes: FloatArray
    covariances: FloatArray
    log_marginal: FloatArray

    @property
    def deep(self) -> NDArray[np.bool_]:
        """Which of them have next to no mass."""
        return np.asarray(self.log_marginal < self.log_marginal.max() - DEPTH)

    def with_more(self, more: Knots) -> Knots:
        """Return these and others."""
        pairs = ((getattr(self, name), getattr(more, name)) for name in ("u", "modes", "covariances", "log_marginal"))
        return Knots(*(np.concatenate(pair) for pair in pairs))

    def where(self, chosen: NDArray[np.bool_]) -> Knots:
        """Return some of them."""
        return Knots(self.u[chosen], self.modes[chosen], self.covariances[chosen], self.log_marginal[chosen])


class Search:
    """Laws at values of the drivers, each looked for from the mode at the nearest value that is known."""

    def __init__(self, laplace: Laplace, u: FloatArray, others: FloatArray) -> None:
        self._laplace = laplace
        self._known_u, self._known_modes = [u], [others]

    def climb(
        self, mean: FloatArray, covariance: FloatArray, first_step: float = FIRST_STEP
    ) -> tuple[FloatArray, FloatArray]:
        """Return where the marginal density of the drivers is largest, looked for from a mean, and about its width.

        A simplex ends on the flat tail of a scale that the data say little about; slopes do not, but for far below the
        top, where the slope along one driver says nothing of how far to go along another. There each goes by its own
        curvature.
        """
        from scipy.optimize import minimize

        k = len(mean)
        factor = np.linalg.cholesky(covariance)
        top, level = mean, -np.inf
        seen: dict[bytes, float] = {}

        def depth(x: FloatArray) -> float:
            nonlocal top, level
            known = seen.get(x.tobytes())
            if known is not None:
                return known
            u = mean + factor @ x
            found = self._knot(u, np.sqrt(np.diag(covariance)))
            if found is not None and found.log_marginal > level:
                top, level = u, found.log_marginal
            value = seen[x.tobytes()] = NOWHERE if found is None else -found.log_marginal
            return value

        start = _approached(depth, k, first_step)
        options = {"gtol": LEVEL, "eps": DIFFERENCE, "maxiter": MOST_CLIMBS}
        with np.errstate(all="ignore"):
            best = minimize(depth, start, method="BFGS", options=options)
        spread = np.asarray(best.hess_inv)
        factor = factor @ _root(spread if np.isfinite(spread).all() else np.eye(k))
        width = self._width(top, level, factor)
        return top, factor @ factor.T if width is None else factor @ width @ factor.T

    def _width(self, top: FloatArray, level: float, factor: FloatArray) -> FloatArray | None:
        """Return a covariance, in units of ``factor``, from values of the marginal density about its top."""
        k = len(top)
        sides = np.eye(k)
        both = [sides[i] + sides[j] for i, j in itertools.combinations(range(k), 2)]
        points = np.array([*sides, *-sides, *both])
        found = [self._knot(top + factor @ x, np.sqrt((factor**2).sum(axis=1))) for x in points]
        seen = [(x, knot.log_marginal) for x, knot in zip(points, found, strict=True) if knot is not None]
        levels = np.array([level, *(value for _, value in seen)])
        return quadratic_width(np.array([np.zeros(k), *(x for x, _ in seen)]), levels)

    def cloud(self, mean: FloatArray, covariance: FloatArray) -> Knots | None:
        """Return knots about a mean; None where too few have a maximum."""
        scale = np.sqrt(np.diag(covariance))
        about = _design(len(mean)) @ np.linalg.cholesky(covariance).T
        arms = []
        for driver, side, arm in itertools.product(range(len(mean)), (1.0, -1.0), ARMS):
            ends = about[:ARM_KNOTS].copy()  # the middle, and some that are not far from it
            ends[:, driver] = side * arm * scale[driver]
            arms.append(ends)
        points = mean + np.concatenate([about, *arms])
        found = [(point, knot) for point in points if (knot := self._knot(point, scale)) is not None]
        if 2 * len(found) < len(points):
            return None
        return Knots(
            np.array([point for point, _ in found]),
            np.array([knot.mode for _, knot in found]),
            np.array([np.linalg.inv(knot.precision) for _, knot in found]),
            np.array([knot.log_marginal for _, knot in found]),
        )

    def _knot(self, u: FloatArray, scale: FloatArray) -> Held | None:
        """Return the law at one value of the drivers; None without a maximum."""
        away = (np.array(self._known_u) - u) / scale
        found = self._laplace.at(u, self._known_modes[int(np.argmin((away * away).sum(axis=1)))])
        if found is not None:
            self._known_u.append(u)
            self._known_modes.append(found.mode)
        return found


def _approached(depth: Callable[[FloatArray], float], k: int, first_step: float) -> FloatArray:
    """Return where no slope is steep any more, by Newton's steps along each driver by itself, shape (k,)."""
    x, sides = np.zeros(k), DIFFERENCE * np.eye(k)
    for _ in range(MOST_APPROACHES):
        here = depth(x)
        ahead, behind = (np.array([depth(x + side) for side in way]) for way in (sides, -sides))
        slope, curvature = (ahead - behind) / (2.0 * DIFFERENCE), (ahead + behind - 2.0 * here) / DIFFERENCE**2
        if not np.abs(slope).max() > STEEP:
            break
        with np.errstate(all="ignore"):
            newton = np.clip(slope / curvature, -LONG_STEP, LONG_STEP)
        step = np.where(curvature > 0.0, newton, first_step * np.sign(slope))
        for _ in range(MOST_HALVED):
            if depth(x - step) < here:
                break
            step = 0.5 * step
        else:
            break
        x = x - step
    return x


def _root(covariance: FloatArray) -> FloatArray:
    """Return R with ``R R'`` the covariance, whose variances are held within the square of `MOST_CHANGED` of 1."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return np.asarray(vectors * np.sqrt(np.clip(values, 1.0 / MOST_CHANGED**2, MOST_CHANGED**2)))


def quadratic_width(points: FloatArray, levels: FloatArray) -> FloatArray | None:
    """Return a covariance from a quadratic through the highest of some points; None where it has no maximum."""
    if not len(levels):
        return None
    high = levels > levels.max() - CURVED
    points, levels = points[high], levels[high]
    k = points.shape[1]
    pairs = [(i, j) for i in range(k) for j in range(i + 1)]
    if len(points) < 1 + k + len(pairs):
        return None
    squares = np.array([points[:, i] * points[:, j] for i, j in pairs]).T
    terms = np.concatenate([np.ones((len(points), 1)), points, squares], axis=1)
    solution = np.linalg.lstsq(terms, levels, rcond=None)[0][1 + k :]
    hessian = np.zeros((k, k))
    for (i, j), value in zip(pairs, solution, strict=True):
        hessian[i, j] -= value
        hessian[j, i] -= value
    eigenvalues, vectors = np.linalg.eigh(hessian)
    if eigenvalues[-1] <= 0.0:
        return None
    variances = np.clip(1.0 / np.maximum(eigenvalues, 1e-12), 1.0 / MOST_CHANGED, MOST_CHANGED)
    return np.asarray((vectors * variances) @ vectors.T)


@cache
def _design(k: int) -> FloatArray:
    """Return standardised points, the middle first: always the same."""
    from scipy.stats import qmc

    n = KNOTS[k]
    points = qmc.MultivariateNormalQMC(np.zeros(k), seed=np.random.default_rng(k)).random(2 ** int(np.ceil(np.log2(n))))
    points = points[: n - 1]
    radius = np.linalg.norm(points, axis=1, keepdims=True)
    points = points * np.minimum(1.0, FARTHEST / radius)
    points = WIDTH * points[np.argsort(np.linalg.norm(points, axis=1))]
    return np.concatenate([np.zeros((1, k)), points])
