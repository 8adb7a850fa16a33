"""Schedules of inverse temperatures, and where along the path they are needed.

A schedule is an array of T inverse temperatures ``0 = beta_1 < ... < beta_T = 1``, both ends counted.
Pure functions of numbers; the adaptive schedule is computed from the log ratios of a pilot run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from bread.argument_rules import received
from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]

NAMES = ("adaptive", "linear", "sigmoid", "geometric")

_GRID_PER_INTERVAL = 40  # inverse temperatures between two knots at which a density of temperatures is evaluated


def linear(n_temperatures: int) -> FloatArray:
    """Return equally spaced inverse temperatures, shape (n_temperatures,)."""
    return np.linspace(0.0, 1.0, _checked_count(n_temperatures))


def sigmoid(n_temperatures: int, delta: float = 4.0) -> FloatArray:
    """Return the sigmoid schedule, dense at both ends.

    Parameters
    ----------
    n_temperatures : int
        T, both ends counted.
    delta : float, default 4
        Steepness; larger puts more temperatures at the ends.

    Returns
    -------
    ndarray, shape (n_temperatures,)

    References
    ----------
    Grosse, Ghahramani & Adams (2015), "Sandwiching the marginal likelihood using bidirectional Monte Carlo",
    section 6.2.
    """
    count = _checked_count(n_temperatures)
    raw = expit(delta * (2.0 * np.arange(1, count + 1) / count - 1.0))
    return _with_exact_ends((raw - raw[0]) / (raw[-1] - raw[0]))


def geometric(n_temperatures: int, power: float = 5.0) -> FloatArray:
    """Return ``((t - 1) / (T - 1)) ** power``, dense near 0 as vague priors need.

    References
    ----------
    Friel & Pettitt (2008), "Marginal likelihood estimation via power posteriors", section 3.
    """
    return np.linspace(0.0, 1.0, _checked_count(n_temperatures)) ** power


def explicit(betas: Sequence[float] | FloatArray) -> FloatArray:
    """Check a user's array of inverse temperatures and return it as floats.

    Raises
    ------
    InvalidArgumentError
        Fewer than two values, not strictly increasing, or not from 0 to 1.
    """
    try:
        values = np.asarray(betas, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(
            f"schedule must be one of {', '.join(NAMES)} or an array of betas, got {received(betas)}."
        ) from None
    if values.ndim != 1 or len(values) < 2:
        raise InvalidArgumentError(
            f"schedule must be one-dimensional with at least two inverse temperatures, got shape {values.shape}."
        )
    if values[0] != 0.0 or values[-1] != 1.0 or not np.all(np.diff(values) > 0):
        raise InvalidArgumentError(
            "schedule must increase strictly from 0.0 to 1.0, "
            f"got {len(values)} values from {values[0]!r} to {values[-1]!r}."
        )
    return values


@dataclass(frozen=True)
class PathLength:
    """Thermodynamic length along a path: the integral over beta of the standard deviation of d log f_beta / d beta.

    Attributes
    ----------
    betas : ndarray, shape (n_grid,)
        Increasing inverse temperatures from 0 to 1.
    length : ndarray, shape (n_grid,)
        Length from 0 to each of ``betas``; dimensionless. With ideal kernels T temperatures of equal length leave
        a gap of about ``length[-1] ** 2 / (T - 1)`` nats between reverse and forward log weights.

    References
    ----------
    Gelman & Meng (1998), "Simulating normalizing constants", section 4 (the optimal density of temperatures);
    Grosse, Ghahramani & Adams (2015), section 2.
    """

    betas: FloatArray
    length: FloatArray

    @property
    def total(self) -> float:
        """Length of the whole path."""
        return float(self.length[-1])


def adaptive(n_temperatures: int, path_length: PathLength) -> FloatArray:
    """Return T inverse temperatures with the same thermodynamic length in every step.

    A share of one tenth of the steps is spread evenly over beta, so that a stretch that the pilot took for flat is
    never crossed in one step.

    Parameters
    ----------
    n_temperatures : int
        T, both ends counted.
    path_length : PathLength
        From a pilot run that used its own random numbers.

    Returns
    -------
    ndarray, shape (n_temperatures,)
    """
    count = _checked_count(n_temperatures)
    if count == 2 or path_length.total == 0.0:
        return linear(count)
    position = 0.9 * path_length.length / path_length.total + 0.1 * path_length.betas
    return _with_exact_ends(np.interp(np.linspace(0.0, 1.0, count), position, path_length.betas))


def thermodynamic_length(knots: FloatArray, log_ratio: Sequence[FloatArray]) -> PathLength:
    """Estimate the thermodynamic length from a pilot's log ratios at knots.

    Between knots above 0 the standard deviation is interpolated in the log of both axes. Near 0, where the variance of
    the log likelihood under a vague prior is huge or infinite, the draws at 0 are reweighted by
    ``exp(beta * log_ratio)``: for every beta > 0 that variance is finite and few draws cannot dominate it.

    Parameters
    ----------
    knots : ndarray, shape (n_knots,)
        Increasing inverse temperatures from 0 to 1.
    log_ratio : sequence of n_knots arrays
        log_ratio (nats) at the pilot's draws at each knot; -inf is allowed at 0.

    Returns
    -------
    PathLength
    """
    deviations = np.array([spread(values) for values in log_ratio[1:]])
    tiny = np.finfo(np.float64).tiny
    betas = [np.zeros(1)]
    densities: list[FloatArray] = []
    base = log_ratio[0][np.isfinite(log_ratio[0])]
    first = _grid_near_zero(base, knots[1])
    densities.append(reweighted_spread(base, first))
    if len(knots) > 1 and len(first) > 1:  # meet the next knot's own draws at its end
        weight = first / knots[1]
        densities[0] = (1 - weight) * densities[0] + weight * deviations[0]
    betas.append(first)
    for left, right, low, high in zip(knots[1:-1], knots[2:], deviations[:-1], deviations[1:], strict=True):
        grid = np.geomspace(left, right, _GRID_PER_INTERVAL)[1:]
        position = np.log(grid / left) / np.log(right / left)
        betas.append(grid)
        densities.append(np.exp((1 - position) * np.log(max(low, tiny)) + position * np.log(max(high, tiny))))
    all_betas = np.concatenate(betas)
    density = np.concatenate([[densities[0][0]], *densities])
    steps = np.diff(all_betas) * 0.5 * (density[1:] + density[:-1])
    all_betas[-1] = 1.0
    return PathLength(all_betas, np.concatenate([[0.0], np.cumsum(steps)]))


def mean_length(lengths: Sequence[PathLength]) -> PathLength:
    """Return the mean of several path lengths (of several pilot data sets) on a common grid."""
    betas = np.unique(np.concatenate([item.betas for item in lengths]))
    return PathLength(betas, np.mean([np.interp(betas, item.betas, item.length) for item in lengths], axis=0))


def next_knot(beta: float, log_ratio: FloatArray, overlap: float) -> float:
    """Return the inverse temperature up to which the draws at ``beta`` still cover the tempered density.

    Solves (mean w)^2 / mean(w^2) = overlap for w = f_next / f_beta, the conditional effective sample size of adaptive
    sequential Monte Carlo; -inf log ratios are left out.

    Parameters
    ----------
    beta : float
        Current inverse temperature.
    log_ratio : ndarray, shape (n_draws,)
        log_ratio (nats) at draws at ``beta``.
    overlap : float
        Between 0 and 1.

    Returns
    -------
    float
        In (beta, 1].
    """
    values = log_ratio[np.isfinite(log_ratio)]
    room = 1.0 - beta
    if len(values) < 2 or np.ptp(values) == 0.0:
        return 1.0

    def excess(log_step: float) -> float:
        weights = min(1.0, beta + np.exp(log_step)) * values - beta * values
        return float(2 * logsumexp(weights) - logsumexp(2 * weights) - np.log(len(values)) - np.log(overlap))

    if excess(np.log(room)) >= 0:
        return 1.0
    low = np.log(room) - 1.0
    while excess(low) < 0:
        low -= 2.0
    return float(min(1.0, beta + np.exp(brentq(excess, low, np.log(room), xtol=1e-3))))


def schedule(kind: Any, n_temperatures: int, path_length: PathLength | None) -> FloatArray:
    """Return the schedule that a user asked for: a name of `NAMES` or an array.

    Raises
    ------
    InvalidArgumentError
        Unknown name; an array that is no schedule; "adaptive" without a pilot.
    """
    if not isinstance(kind, str):
        return explicit(kind)
    if kind == "linear":
        return linear(n_temperatures)
    if kind == "sigmoid":
        return sigmoid(n_temperatures)
    if kind == "geometric":
        return geometric(n_temperatures)
    if kind == "adaptive" and path_length is not None:
        return adaptive(n_temperatures, path_length)
    raise InvalidArgumentError(f"schedule must be one of {', '.join(NAMES)} or an array of betas, got {kind!r}.")


def _checked_count(n_temperatures: int) -> int:
    if n_temperatures < 2:
        raise InvalidArgumentError(
            f"n_temperatures counts both ends of the path and must be at least 2, got {n_temperatures}."
        )
    return int(n_temperatures)


def _with_exact_ends(betas: FloatArray) -> FloatArray:
    betas[0], betas[-1] = 0.0, 1.0
    return betas


def spread(values: FloatArray) -> float:
    """Return the standard deviation of the finite values, also where their squares would overflow; 0 for one value."""
    finite, exponent = _without_scale(values[np.isfinite(values)])
    return float(np.ldexp(np.std(finite), exponent)) if len(finite) > 1 else 0.0


def _without_scale(values: FloatArray) -> tuple[FloatArray, int]:
    """Return ``values`` over a power of two, and its exponent: squares of vague priors' log ratios would overflow."""
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    return np.ldexp(values, -exponent), exponent


def _grid_near_zero(log_ratio: FloatArray, end: float) -> FloatArray:
    """Return inverse temperatures from where reweighting starts to matter up to the first knot."""
    span = np.ptp(log_ratio) if len(log_ratio) > 1 else 0.0
    if span * end <= 0.1:
        return np.array([end])
    return np.geomspace(0.1 / span, end, _GRID_PER_INTERVAL * 2)


def reweighted_spread(log_ratio: FloatArray, betas: FloatArray) -> FloatArray:
    """Return the standard deviation of the log ratio at each of ``betas``, from draws at the base of the path."""
    if len(log_ratio) < 2:
        return np.zeros(len(betas))
    largest = log_ratio.max()
    deviations = np.empty(len(betas))
    for index, beta in enumerate(betas):
        weights = np.exp(beta * log_ratio - beta * largest)
        weights /= weights.sum()
        values, exponent = _without_scale(np.where(weights > 0, log_ratio - largest, 0.0))  # huge where without weight
        deviations[index] = np.ldexp(np.sqrt(max(float(weights @ values**2 - (weights @ values) ** 2), 0.0)), exponent)
    return deviations
