"""Laplace's method for all coordinates but some, which are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.modes import CountedDensity

MOST_STEPS = 100  # gradients of one optimisation


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
        self._target, self._held, self._dim = target, list(held), dim
        self.others = np.delete(np.arange(dim), self._held)
        self._u = np.zeros(len(self._held))

    def __call__(self, others: FloatArray) -> tuple[float, FloatArray]:
        """Return minus log density and minus its gradient."""
        value, gradient = self._target(self._state(others))
        return value, gradient[self.others]

    def at(self, u: FloatArray, start: FloatArray) -> Held | None:
        """Return the law at one value of what is held, looked for from a state of the others; None without maximum."""
        from scipy.optimize import minimize

        self._u = u
        found = minimize(self, start, jac=True, method="L-BFGS-B", options={"maxfun": MOST_STEPS})
        if not found.fun < 1e300:
            return None
        precision = self._target.precision(self._state(found.x), self.others)
        if not np.isfinite(precision).all():
            return None
        eigenvalues = np.linalg.eigvalsh(precision)
        if eigenvalues[0] <= 1e-10 * eigenvalues[-1]:  # in the neck of a funnel widths differ by orders
            return None
        return Held(np.asarray(found.x), precision, -float(found.fun) - 0.5 * float(np.log(eigenvalues).sum()))

    def _state(self, others: FloatArray) -> FloatArray:
        state = np.empty(self._dim)
        state[self._held], state[self.others] = self._u, others
        return state
