"""Laplace's method for all coordinates but some, which are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.gaussian.curvature import Curvature
from bread.fitting.gaussian.modes import NOWHERE, CountedDensity, descended

MOST_STEPS = 100  # gradients of one optimisation
NORMAL = 1e-6  # a Newton step that ends less than half as many nats below the maximum has found it
NEWTON_STEPS = 4  # with one Hessian, whose rounding errors keep the first from ending there
CHEAP, MOST_HESSIANS = 12, 8  # gradients that a Hessian may take to be made again on the way; so many at most
CLOSER = 1e-4  # of these nats must be left after each: else it is another Hessian there
PATIENCE = 2  # Newton steps that may fail, and one more for each that did not, up to twice as many


class Held(NamedTuple):
    """The law of the other coordinates at one value of those that are held.

    Attributes
    ----------
    mode : ndarray, shape (n,)
    precision : ndarray, shape (n, n)
        Minus the Hessian at the mode.
    log_marginal : float
        Log density (nats) of what is held, but for a constant.
    """

    mode: FloatArray
    precision: FloatArray
    log_marginal: float


class Laplace:
    """The log density of the other coordinates, some held at ``u``, for an optimiser.

    Parameters
    ----------
    target : CountedDensity
    held : sequence of int
    dim : int
    """

    def __init__(self, target: CountedDensity, held: Sequence[int], dim: int) -> None:
        self._target, self.held, self._dim = target, list(held), dim
        self.others = np.delete(np.arange(dim), self.held)
        self._curvature = Curvature(target, self.others)
        self._u = np.zeros(len(self.held))
        self._patience = PATIENCE

    def __call__(self, others: FloatArray) -> tuple[float, FloatArray]:
        """Return minus log density and minus its gradient."""
        value, gradient = self._target(self._state(others))
        return value, gradient[self.others]

    def at(self, u: FloatArray, start: FloatArray) -> Held | None:
        """Return the law at one value of what is held, looked for from a state of the others; None without maximum.

        Where the others are normal given what is held, one step of Newton's ends at the maximum, but for rounding, and
        its Hessian is the one there. They may be at some values and not at others. Where they are not, a few Hessians
        are tried if they cost little, else an optimiser without any.
        """
        self._u = u
        if self._patience > 0:
            found = self._newton(start)
            self._patience = min(self._patience + 1, 2 * PATIENCE) if found is not None else self._patience - 1
            if found is not None:
                return found
        best = descended(self, start, maxfun=MOST_STEPS)
        if not best.fun < NOWHERE:
            return None
        return _held(best.x, self._curvature.at(self._state(best.x))[0], float(best.fun))

    def _newton(self, start: FloatArray) -> Held | None:
        """Return the law some steps of Newton's from ``start``; None where they do not end at the maximum.

        Only where a Hessian is cheap is it made again on the way.
        """
        mode, lowest = start, np.inf
        for _ in range(MOST_HESSIANS):
            precision, gradient = self._curvature.at(self._state(mode))
            try:
                factor = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
            except np.linalg.LinAlgError:
                return None
            value, below = np.inf, np.inf
            for _ in range(NEWTON_STEPS):
                mode = np.asarray(mode - _solve(factor, gradient), dtype=np.float64)
                value, gradient = self(mode)
                left = float(gradient @ _solve(factor, gradient))
                if not (value < NOWHERE and left < CLOSER * below):
                    break
                if left < NORMAL:
                    return _held(mode, precision, value)
                below = left
            if not value < lowest or self._curvature.price > CHEAP:
                return None
            lowest = value
        return None

    def _state(self, others: FloatArray) -> FloatArray:
        state = np.empty(self._dim)
        state[self.held], state[self.others] = self._u, others
        return state


def _solve(factor: FloatArray, vector: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, vector)), dtype=np.float64)


def _held(mode: FloatArray, precision: FloatArray, value: float) -> Held | None:
    """Return the law at a maximum, where minus the log density is ``value``; None where it is none."""
    if not np.isfinite(precision).all():
        return None
    eigenvalues = np.linalg.eigvalsh(precision)
    if eigenvalues[0] <= 1e-10 * eigenvalues[-1]:  # in the neck of a funnel widths differ by orders
        return None
    return Held(np.asarray(mode), precision, -value - 0.5 * float(np.log(eigenvalues).sum()))
