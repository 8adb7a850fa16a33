"""The density of scales with all other coordinates integrated out, where these have a Gaussian law given the scales.

It is a closed form but for the density at the origin of the others. That is often a sum of functions of one scale each,
which are interpolated: what is left then costs no density of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.search.work import FitWork, Part
from bread.paths.precision import cholesky_factors
from bread.paths.sums import Sums

KNOTS = 48  # of a function of one scale
BEYOND = 0.25  # of the range of draws, to either side, that is interpolated too
SMOOTH = 4  # terms of a polynomial that stands for the spline while multiples of exponentials are found
CHECKS = 40  # draws at which the sum is compared
NEAR, SHARE = 0.02, 2e-5  # nats by which it may be off, and as a share of how far a draw lies below the highest


@dataclass(frozen=True)
class Structure:
    """Which coordinates have a Gaussian law given the others, and how it depends on those.

    Attributes
    ----------
    drivers, others : ndarray of int
    precision, linear : Sums
        The matrix of the law's quadratic form, lower triangle (element by element), and its linear coefficients.
    """

    drivers: NDArray[np.int64]
    others: NDArray[np.int64]
    precision: Sums
    linear: Sums


class Collapsed:
    """The density of the drivers, the others integrated out: a target of `bread.fitting.importance.adaptation.adapt`.

    Parameters
    ----------
    work : FitWork
    structure : Structure
    draws : ndarray, shape (n, k), optional
        Of the drivers: where the density will be asked for. Without them nothing is interpolated.
    """

    def __init__(self, work: FitWork, structure: Structure, draws: FloatArray | None = None) -> None:
        self._work, self._structure = work, structure
        exponents = structure.precision.functions.exponents
        at_origin = None if draws is None else additive(self._at_origin, draws, exponents)
        self._origin: Callable[[FloatArray], FloatArray] = at_origin or self._at_origin
        self.is_interpolated = at_origin is not None

    def rng(self, part: Part, index: int = 0) -> Generator:
        """Return random numbers."""
        return self._work.rng(part, index)

    def joint(self, u: FloatArray) -> FloatArray:
        """Return the log density (nats) at rows of u, shape (n,), minus infinity where there is no Gaussian law."""
        structure, n = self._structure, len(self._structure.others)
        factors, is_law = cholesky_factors(structure.precision.at(u, n * n).reshape(-1, n, n))
        linear = structure.linear.at(u, n)
        is_law &= np.isfinite(linear).all(axis=1)
        values = np.full(len(u), -np.inf)
        if is_law.any():
            factors, linear = factors[is_law], linear[is_law]
            half = np.linalg.solve(factors, linear[..., None])[..., 0]
            log_scales = np.log(np.einsum("nii->ni", factors)).sum(axis=1)
            values[is_law] = self._origin(u[is_law]) + 0.5 * (half * half).sum(axis=1) - log_scales
        return np.where(np.isnan(values), -np.inf, values)

    def _at_origin(self, u: FloatArray) -> FloatArray:
        """Return the log density (nats) where all others are zero."""
        states = np.zeros((len(u), self._work.dim))
        states[:, self._structure.drivers] = u
        return self._work.joint(states)


@dataclass(frozen=True)
class _Part:
    """A function of one variable: multiples of exponentials, and a spline through what they leave."""

    powers: FloatArray
    middle: float
    multiples: FloatArray
    spline: Callable[[FloatArray], FloatArray]

    @classmethod
    def through(cls, knots: FloatArray, values: FloatArray, powers: FloatArray) -> _Part:
        """Return it through values at knots; the larger a value the less it matters how near the exponentials come."""
        from scipy.interpolate import CubicSpline

        powers, middle = np.unique(powers[powers != 0.0]), float(knots.mean())
        exponentials = np.exp(np.outer(knots - middle, powers))
        smooth = np.vander((knots - middle) / np.ptp(knots), SMOOTH)
        weights = 1.0 / (1.0 + np.abs(values))
        columns = np.concatenate([exponentials, smooth], axis=1) * weights[:, None]
        sizes = np.abs(columns).max(axis=0)
        solved, *_ = np.linalg.lstsq(columns / sizes, values * weights, rcond=None)
        multiples = (solved / sizes)[: len(powers)]
        return cls(powers, middle, multiples, CubicSpline(knots, values - exponentials @ multiples))

    def __call__(self, u: FloatArray) -> FloatArray:
        """Return it at each of u."""
        return np.asarray(np.exp(np.outer(u - self.middle, self.powers)) @ self.multiples + self.spline(u))


def additive(
    function: Callable[[FloatArray], FloatArray], draws: FloatArray, exponents: FloatArray
) -> Callable[[FloatArray], FloatArray] | None:
    """Return a function of several variables as a sum of functions of one; None where it is no such sum.

    Each is a sum of exponentials, which may be steep, and a spline.

    Parameters
    ----------
    function : callable
        Of rows (n, k); returns (n,).
    draws : ndarray, shape (n, k)
        Where it will be asked for. Beyond their range, and somewhat more, the function itself is.
    exponents : ndarray, shape (f, k)
        Of exponentials to try.
    """
    low, high = draws.min(axis=0), draws.max(axis=0)
    margin = BEYOND * (high - low)
    if not (np.isfinite(draws).all() and (margin > 0.0).all()):
        return None
    middle, k = np.median(draws, axis=0), draws.shape[1]
    knots = np.linspace(low - margin, high + margin, KNOTS).T
    rows = np.repeat(middle[None], k * KNOTS + 1, axis=0)
    for place in range(k):
        rows[place * KNOTS : (place + 1) * KNOTS, place] = knots[place]
    values = function(rows)
    if not np.isfinite(values).all():
        return None
    along = (values[:-1] - values[-1]).reshape(k, KNOTS)
    parts = [_Part.through(*one) for one in zip(knots, along, exponents.T, strict=True)]

    def total(u: FloatArray) -> FloatArray:
        is_inside = ((u >= knots[:, 0]) & (u <= knots[:, -1])).all(axis=1)
        found = np.empty(len(u))
        within = u[is_inside]
        found[is_inside] = values[-1] + sum(part(within[:, place]) for place, part in enumerate(parts))
        if not is_inside.all():
            found[~is_inside] = function(u[~is_inside])
        return found

    checked = draws[:: max(1, len(draws) // CHECKS)][:CHECKS]
    exact = function(checked)
    if not np.isfinite(exact).all():
        return None
    allowed = NEAR + SHARE * (exact.max() - exact)
    return total if (np.abs(total(checked) - exact) <= allowed).all() else None
