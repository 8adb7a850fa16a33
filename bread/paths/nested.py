"""A reference for funnels: one coordinate, and a Gaussian law of the others whose place and width follow it.

A scale and what it scales (a group's standard deviation and its members) are jointly far from a Gaussian law, and given
the scale near to one. Rue, Martino & Chopin (2009) approximate posteriors so; here the approximation is a normalised
density that can be drawn from, and only the base of a path.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from bread.paths.mixture import FittedReference, FloatArray, MixtureReference, rows_times

_MOMENT_NODES = 2000  # draws of the driver, always the same, that moments are averaged over


class Pieces(NamedTuple):
    """Functions of u: polynomials of ``(u - origins) / widths``, where piece i ends at knot i, and the last nowhere.

    Attributes
    ----------
    origins, widths : ndarray, shape (m + 1,)
    coefficients : ndarray, shape (m + 1, 4, 2, dim - 1)
        By power, of mean and log standard deviation.
    """

    origins: FloatArray
    widths: FloatArray
    coefficients: FloatArray


@dataclass(frozen=True)
class NestedReference(FittedReference):
    """A law of one coordinate u, and of the others given u: ``z = W (theta - centre)`` is normal, independently.

    Mean and log standard deviation of each z are functions of u: cubic between knots, linear beyond them.

    Attributes
    ----------
    driver : int
        Which coordinate u is.
    marginal : MixtureReference
        Law of u, of one coordinate.
    centre : ndarray, shape (dim - 1,)
        Of the others, in their order.
    matrix : ndarray, shape (dim - 1, dim - 1)
        W.
    knots : ndarray, shape (m,)
        Increasing values of u, at least 2.
    values, slopes : ndarray, shape (m, 2, dim - 1)
        Mean and log standard deviation of z at the knots, and their derivatives by u.
    label : str
        What it is, for the report.
    """

    is_given = True

    driver: int
    marginal: MixtureReference
    centre: FloatArray
    matrix: FloatArray
    knots: FloatArray
    values: FloatArray
    slopes: FloatArray
    label: str = "Gaussian given one coordinate"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.centre) + 1

    @cached_property
    def log_normaliser(self) -> float:
        """Log of the constant factor of the law of the others given u."""
        return float(np.linalg.slogdet(self.matrix)[1] - 0.5 * len(self.centre) * np.log(2 * np.pi))

    @cached_property
    def pieces(self) -> Pieces:
        """The functions of u as polynomials."""
        steps = np.diff(self.knots)
        widths = np.concatenate([[1.0], steps, [1.0]])
        coefficients = np.zeros((len(widths), 4, *self.values.shape[1:]))
        coefficients[:, 0] = self.values[[0, *range(len(self.knots))]]
        coefficients[:, 1] = self.slopes[[0, *range(len(self.knots))]] * widths[:, None, None]
        rise, start, end = np.diff(self.values, axis=0), coefficients[1:-1, 1], self.slopes[1:] * steps[:, None, None]
        coefficients[1:-1, 2] = 3 * rise - 2 * start - end
        coefficients[1:-1, 3] = start + end - 2 * rise
        return Pieces(np.concatenate([self.knots[:1], self.knots]), widths, coefficients)

    @cached_property
    def marginal_laws(self) -> list[tuple[float, float, float, float]]:
        """Of each component of the law of u: log of weight and constant factor, mean, 1 / scale, degrees of freedom."""
        laws = []
        for log, one in zip(np.log(self.marginal.weights), self.marginal.components, strict=True):
            rate = replace(one, mean=np.zeros(1)).standardise(np.ones(1))[0]
            nu = np.inf if one.degrees is None else one.degrees[0]
            laws.append((float(log + one.log_normaliser), float(one.mean[0]), float(rate), float(nu)))
        return laws

    @cached_property
    def _one_state(self) -> _OneState:
        return _OneState(self)

    @cached_property
    def _others(self) -> FloatArray:
        return np.delete(np.arange(self.dim), self.driver)

    def conditional(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and log standard deviation of z given u, (2, ``u.shape``, dim - 1), and their derivatives."""
        x, width, coefficients = self._piece(u)
        _, c1, c2, c3 = coefficients
        slope = (c1 + x * (2.0 * c2 + 3.0 * x * c3)) / width
        return _values(x, coefficients), np.moveaxis(slope, -2, 0)

    def _piece(self, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return where in its piece u lies, the width of that, and the coefficients there, a power a row."""
        origins, widths, coefficients = self.pieces
        piece = np.searchsorted(self.knots, u)
        width = widths[piece][..., None, None]
        return (u - origins[piece])[..., None, None] / width, width, np.moveaxis(coefficients[piece], -3, 0)

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        u = self.marginal.sample(n, rng)
        x, _, coefficients = self._piece(u[:, 0])
        mean, log_scale = _values(x, coefficients)
        z = mean + np.exp(log_scale) * rng.standard_normal(mean.shape)
        draws = np.empty((n, self.dim))
        draws[:, self.driver] = u[:, 0]
        draws[:, self._others] = self.centre + np.linalg.solve(self.matrix, z.T).T
        return draws

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        with np.errstate(over="ignore"):
            residual, _, log_scale, _ = self._residual(states)
            own = self.marginal.log_density(states[..., [self.driver]])
            return np.asarray(own + self.log_normaliser - (0.5 * residual**2 + log_scale).sum(axis=-1))

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        result = np.empty(states.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            residual, rate, _, slope = self._residual(states)
            pull = residual * rate
            result[..., self._others] = -rows_times(self.matrix.T, pull)
            along = (pull * slope[0] + (residual**2 - 1.0) * slope[1]).sum(axis=-1)
            result[..., self.driver] = self.marginal.gradient(states[..., [self.driver]])[..., 0] + along
        return result

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        return self._one_state(state)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,), by quadrature over draws of u."""
        u = self.marginal.sample(_MOMENT_NODES, np.random.default_rng(0))[:, 0]
        (mean, log_scale), _ = self.conditional(u)
        colour = np.linalg.inv(self.matrix)
        centres = self.centre + mean @ colour.T
        variance = (np.exp(2 * log_scale) @ (colour.T**2)).mean(axis=0) + centres.var(axis=0)
        deviation = np.sqrt(np.insert(variance, self.driver, u.var()))
        return np.insert(centres.mean(axis=0), self.driver, u.mean()), deviation

    def _residual(self, states: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return standardised residuals of z, inverse standard deviations, log ones, slopes of mean and log scale."""
        (mean, log_scale), slope = self.conditional(states[..., self.driver])
        rate = np.exp(-log_scale)
        z = rows_times(self.matrix, states[..., self._others] - self.centre)
        return (z - mean) * rate, rate, log_scale, slope


class _OneState:
    """Log density and gradient of one state, with as few calls of NumPy as there can be: each costs a microsecond.

    The driver is a coordinate of the centre and of the matrix too, of zeros; the sum of the log standard deviations,
    of which the density needs nothing else, is one more function of u.
    """

    def __init__(self, reference: NestedReference) -> None:
        n, pieces = len(reference.centre), reference.pieces
        self._n, self._driver, self._log_normaliser = n, reference.driver, reference.log_normaliser
        self._centre = np.insert(reference.centre, self._driver, 0.0)
        self._matrix = np.insert(reference.matrix, self._driver, 0.0, axis=1)
        self._knots: list[float] = reference.knots.tolist()
        total = pieces.coefficients[:, :, 1].sum(axis=-1, keepdims=True)
        functions = pieces.coefficients.reshape(*total.shape[:2], 2 * n)
        self._coefficients = list(np.concatenate([functions, total], axis=-1))
        self._origins: list[float] = pieces.origins.tolist()
        self._widths: list[float] = pieces.widths.tolist()
        self._marginal = reference.marginal_laws

    def __call__(self, state: FloatArray) -> tuple[float, FloatArray]:
        # `dot` where `@` would do: on few numbers it takes half the time, with the same bits
        n, u = self._n, state.item(self._driver)
        piece = bisect_left(self._knots, u)
        width = self._widths[piece]
        x = (u - self._origins[piece]) / width
        powers = [1.0, x, 0.0, 0.0, 0.0, 1.0 / width, 0.0, 0.0]
        if 0 < piece < len(self._knots):
            powers = [1.0, x, x * x, x * x * x, 0.0, 1.0 / width, 2.0 * x / width, 3.0 * x * x / width]
        with np.errstate(over="ignore", invalid="ignore"):
            law, slope = np.array(powers).reshape(2, 4).dot(self._coefficients[piece])
            rate = np.exp(-law[n:-1])
            residual = self._matrix.dot(state - self._centre)
            residual -= law[:n]
            residual *= rate
            pull = residual * rate
            gradient = pull.dot(self._matrix)
            np.negative(gradient, gradient)
            own, own_slope = self._of_driver(u)
            along = (residual * residual).dot(slope[n:-1]).item()
            gradient[self._driver] = own_slope + pull.dot(slope[:n]).item() + along - slope.item(-1)
            return own + self._log_normaliser - 0.5 * residual.dot(residual).item() - law.item(-1), gradient

    def _of_driver(self, u: float) -> tuple[float, float]:
        """Return log density and derivative of the law of u."""
        logs, pulls = [], []
        for log_factor, mean, rate, nu in self._marginal:
            z = rate * (u - mean)
            if nu == math.inf:
                logs.append(log_factor - 0.5 * z * z)
                pulls.append(-rate * z)
            else:
                logs.append(log_factor - 0.5 * (nu + 1.0) * math.log1p(z * z / nu))
                pulls.append(-rate * (nu + 1.0) * z / (nu + z * z))
        largest = max(logs)
        if len(logs) == 1 or not math.isfinite(largest):
            return largest, pulls[0]
        shares = [math.exp(log - largest) for log in logs]
        total = sum(shares)
        along = sum(share * pull for share, pull in zip(shares, pulls, strict=True))
        return largest + math.log(total), along / total


def _values(x: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Return mean and log standard deviation at places of pieces, the first axis of the result."""
    c0, c1, c2, c3 = coefficients
    return np.moveaxis(c0 + x * (c1 + x * (c2 + x * c3)), -2, 0)
