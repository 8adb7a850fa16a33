"""Modes of a posterior, found by optimisation from prior draws: a Gaussian at each (the Laplace approximation).

A pilot's chain stays in the mode it falls into. Where modes are many, as those of a mixture whose labels may be
exchanged, an optimisation finds one for the price of a few transitions, and its curvature gives the mode's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Posterior
from bread.backends.support.gradients import end_gradients
from bread.errors import DensityError
from bread.fitting.gaussian.families import INFLATION, LARGEST_FULL_DIM, whitening
from bread.fitting.search.work import plain
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import Component, MixtureReference

STARTS, STARTS_PER_MODE = 8, 6  # optimisations: so many, and so many more for every mode
MOST_STARTS = 40  # optimisations in all
MOST_STEPS = 150  # gradients of one optimisation
SAME_MODE = 4.0  # squared distance in standard deviations below which two ends are one mode
NEGLIGIBLE = 7.0  # nats of evidence below the best at which a mode is left out
NOWHERE = 1e300  # minus a log density
_DIFFERENCE = 1e-4  # step of a central difference of gradients
FAR, MOST_NEWTON_STEPS = 0.01, 3  # squared standard deviations from the maximum at which an optimiser is not there yet


@dataclass(frozen=True)
class Mode:
    """A maximum of the log density with its curvature.

    Attributes
    ----------
    state : ndarray, shape (dim,)
    precision : ndarray, shape (dim, dim)
        Minus the Hessian of the log density.
    log_evidence : float
        Nats, by Laplace's formula.
    """

    state: FloatArray
    precision: FloatArray
    log_evidence: float

    def holds(self, state: FloatArray) -> bool:
        """Return whether a state is this mode, not another one."""
        away = state - self.state
        return float(away @ self.precision @ away) < SAME_MODE

    def component(self, transformed: NDArray[np.bool_]) -> Component:
        """Return the mode's Gaussian."""
        covariance = np.linalg.inv(self.precision)
        deviation = np.sqrt(np.diag(covariance))
        matrix = whitening(covariance / np.outer(deviation, deviation), transformed)
        return Component(self.state, deviation, matrix=matrix)


class CountedDensity:
    """Minus log density and its gradient for an optimiser; counts evaluations, a rejected state is very bad."""

    def __init__(self, posterior: Posterior, dim: int) -> None:
        self.n_gradients = 0
        self._posterior = posterior
        self._path = ReferencePath(plain(dim))

    def __call__(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return minus log density and minus its gradient."""
        self.n_gradients += 1
        try:
            value, gradient = self._posterior.end_gradient(self._path, state)
        except DensityError:
            return NOWHERE, np.zeros_like(state)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return NOWHERE, np.zeros_like(state)
        return -value, -gradient

    def precision(self, state: FloatArray) -> FloatArray:
        """Return the Hessian of all coordinates by central differences."""
        return self.central_precision(state, np.full(len(state), _DIFFERENCE))

    def differences(self, state: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return forward differences of minus the gradient along directions, shape (direction, dim), and it.

        They are half the price of central ones. Where some coordinates are held the density of the others is often
        nearly Gaussian, so that its gradient is nearly linear, and there are many values to hold.
        """
        gradients = self.gradients(np.concatenate([state + _DIFFERENCE * directions, state[None]]))
        return np.asarray((gradients[:-1] - gradients[-1]) / _DIFFERENCE), gradients[-1]

    def central_precision(self, state: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the Hessian of all coordinates by central differences, each with a step of its own, shape (dim,)."""
        gradients = self.gradients(np.concatenate([state + np.diag(steps), state - np.diag(steps)]))
        rows = (gradients[: len(state)] - gradients[len(state) :]) / (2 * steps[:, None])
        return np.asarray(0.5 * (rows + rows.T))

    def gradients(self, states: FloatArray) -> FloatArray:
        """Return minus the gradient at several states; 0 where the density is bad."""
        return -self.values_and_gradients(states)[1]

    def values_and_gradients(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log density and gradient at several states; -inf and 0 where the density is bad."""
        self.n_gradients += len(states)
        values, gradients = end_gradients(self._posterior, self._path, states)
        is_good = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
        return np.where(is_good, values, -np.inf), np.where(is_good[:, None], gradients, 0.0)


def descended(function: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, **options: int) -> Any:
    """Return what L-BFGS-B finds from a start; ``fun`` is `NOWHERE` where the function is so there.

    A line search that meets a value as large as that takes a step so small that SciPy calls the search converged,
    wherever it is. So a place without a density is worse than all before it, but not by far.

    Parameters
    ----------
    function : callable
        Returns a value, `NOWHERE` where there is none, and its gradient.
    start : ndarray, shape (dim,)
    **options
        Of ``scipy.optimize.minimize``.
    """
    from scipy.optimize import minimize

    worst = -np.inf

    def bounded(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal worst
        value, gradient = function(x)
        if value >= NOWHERE:
            return (NOWHERE if worst == -np.inf else worst + abs(worst) + 1.0), gradient
        worst = max(worst, value)
        return value, gradient

    return minimize(bounded, start, jac=True, method="L-BFGS-B", options=options)


def fit_modes(
    posterior: Posterior,
    starts: Iterable[FloatArray],
    transformed: NDArray[np.bool_],
    *,
    expected: int = 1,
    largest: int = LARGEST_FULL_DIM,
) -> tuple[MixtureReference | None, int]:
    """Return a mixture of one Gaussian per mode, weighted by evidence; None where the density has no maximum.

    Parameters
    ----------
    posterior : Posterior
    starts : iterable of ndarray, shape (dim,)
        States to optimise from; no more are taken than the number of modes asks for.
    transformed : ndarray of bool, shape (dim,)
        Coordinates that may be the logarithm of a scale.
    expected : int
        Number of modes on another data set: it is looked for as many.
    largest : int
        Coordinates up to which a mode is looked for.

    Returns
    -------
    reference : MixtureReference or None
    n_gradients : int
    """
    if len(transformed) > largest:
        return None, 0
    dim = len(transformed)
    target = CountedDensity(posterior, dim)
    modes: list[Mode] = []
    for number, start in enumerate(starts):
        if number >= min(STARTS + STARTS_PER_MODE * max(len(modes), expected), MOST_STARTS):
            break
        found = descended(target, start, maxfun=MOST_STEPS)
        if found.fun < NOWHERE and not any(mode.holds(found.x) for mode in modes):
            mode = _mode(target, found.x, -float(found.fun))
            if mode is not None and not any(other.holds(mode.state) for other in modes):  # Newton's steps went on
                modes.append(mode)
    best = max((mode.log_evidence for mode in modes), default=0.0)
    n_found, modes = len(modes), [mode for mode in modes if mode.log_evidence > best - NEGLIGIBLE]
    if not modes:
        return None, target.n_gradients
    weights = np.exp(np.array([mode.log_evidence for mode in modes]) - best)
    components = tuple(mode.component(transformed) for mode in modes)
    label = f"Gaussian laws at {len(modes)} modes" if len(modes) > 1 else "Gaussian at the mode"
    found_modes = MixtureReference(components, weights / weights.sum(), label, n_found - len(modes))
    return found_modes, target.n_gradients


def widened(reference: MixtureReference) -> MixtureReference:
    """Return a reference with variances `INFLATION` times as large."""
    wide = tuple(replace(component, scale=component.scale * np.sqrt(INFLATION)) for component in reference.components)
    return replace(reference, components=wide)


def _curvature(target: CountedDensity, state: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return minus the Hessian and its eigenvalues; None where the density has no maximum near."""
    precision = target.precision(state)
    if not np.isfinite(precision).all():
        return None
    eigenvalues = np.linalg.eigvalsh(precision)
    return None if eigenvalues[0] <= 1e-8 * eigenvalues[-1] else (precision, np.asarray(eigenvalues))


def _mode(target: CountedDensity, state: FloatArray, level: float) -> Mode | None:
    """Return the mode at an optimiser's end; None where the density has no maximum there.

    An optimiser that ran out of steps, as it does where coordinates are many and correlated, is helped by some steps
    of Newton's method.
    """
    found = _curvature(target, state)
    if found is None:
        return None
    precision, eigenvalues = found
    for _ in range(MOST_NEWTON_STEPS):
        slope = -target(state)[1]
        step = np.linalg.solve(precision, slope)
        if not float(slope @ step) > FAR:
            break
        higher = -target(state + step)[0]
        curvature = _curvature(target, state + step) if higher > level else None
        if curvature is None:
            break
        state, level, (precision, eigenvalues) = state + step, higher, curvature
    evidence = level + 0.5 * len(state) * np.log(2 * np.pi) - 0.5 * float(np.log(eigenvalues).sum())
    return Mode(np.asarray(state, dtype=float), precision, evidence)
