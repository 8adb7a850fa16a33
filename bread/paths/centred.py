"""A reference that is Gaussian in other coordinates: effects times their scales, and some in which the prior is normal.

Of a standardised effect ``z`` with a scale ``s`` data say what ``s z`` is. Given data, ``s z`` and ``log s`` are nearly
independent and nearly Gaussian; ``z`` is bent around its scale. Of correlated effects, ``z`` times a Cholesky factor,
data say the product: then other effects times an element off the factor's diagonal are added to ``s z``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.paths.mixture import FittedReference, FloatArray, rows_times
from bread.paths.normalised import SinhArcsinh

MOMENT_DRAWS = 1000  # by which means are known to 3% of a standard deviation, and these to 2%: a report has hundreds


class Link(NamedTuple):
    """A coordinate that multiplies effects and adds them to others: an element off the diagonal of a Cholesky factor.

    Attributes
    ----------
    by : int
        The coordinate.
    sources, targets : ndarray of int, shape (n,)
        Effects it multiplies, and those to which it adds the products; no effect is twice in one of them.
    """

    by: int
    sources: NDArray[np.intp]
    targets: NDArray[np.intp]


@dataclass(frozen=True)
class CentredReference(FittedReference):
    """A Gaussian law of ``u = theta exp(B theta)``, elementwise, plus products of links; of some, of a function of u.

    Attributes
    ----------
    by : ndarray of bool, shape (dim, dim)
        B: which coordinates, logarithms of scales, multiply an effect (its row). A scale is no effect.
    mean : ndarray, shape (dim,)
        Of u.
    root : ndarray, shape (dim, dim)
        Lower triangular L, of the covariance matrix ``L L'`` of u.
    links : tuple of Link
        Those of a link come after those to which its sources are targets.
    normal : SinhArcsinh
        Functions of single coordinates, none of them of effects, in whose place u stands from here on.
    """

    is_given = True

    by: NDArray[np.bool_]
    mean: FloatArray
    root: FloatArray
    links: tuple[Link, ...] = ()
    normal: SinhArcsinh = field(default_factory=SinhArcsinh.of_none)

    @property
    def label(self) -> str:
        """What it is, for the report."""
        return "Gaussian in centred coordinates" if self.is_centred else "Gaussian by variational inference"

    @property
    def is_centred(self) -> bool:
        """Whether any coordinate is an effect of a scale."""
        return bool(len(self.scales))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.mean)

    @cached_property
    def matrix(self) -> FloatArray:
        """Inverse of L, shape (dim, dim)."""
        return np.tril(np.linalg.inv(self.root))

    @cached_property
    def log_normaliser(self) -> float:
        """Log of the constant factor of the Gaussian law."""
        return float(-np.log(np.diag(self.root)).sum() - 0.5 * self.dim * np.log(2.0 * np.pi))

    @cached_property
    def scales(self) -> NDArray[np.intp]:
        """Coordinates that are logarithms of scales, shape (k,)."""
        return np.flatnonzero(self.by.any(axis=0))

    @cached_property
    def _by(self) -> FloatArray:
        return self.by[:, self.scales].astype(np.float64)

    @cached_property
    def _counts(self) -> FloatArray:
        return np.asarray(self._by.sum(axis=0), dtype=np.float64)

    def centred(self, states: FloatArray) -> FloatArray:
        """Return u at states, shape ``states.shape``."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.normal.forward(self._multiplied(states))

    def uncentred(self, u: FloatArray) -> FloatArray:
        """Return the states at which u is this, shape ``u.shape``."""
        with np.errstate(over="ignore", invalid="ignore"):
            u = self.normal.backward(u)
            rates = np.exp(-self._log_factors(u))
            states = np.asarray(u * rates)
            for by, sources, targets in self.links:
                states[..., targets] -= u[..., [by]] * states[..., sources] * rates[..., targets]
        return states

    def density_of_centred(self, states: FloatArray, gradients: FloatArray) -> FloatArray:
        """Return the gradient by u of a log density of u, from the gradient of that of states, both (n, dim).

        The Jacobian is counted.
        """
        rates, at = np.exp(-self._log_factors(states)), gradients.copy()
        for by, sources, targets in reversed(self.links):
            pull = at[:, targets] * rates[:, targets]
            at[:, sources] -= pull * states[:, [by]]
            at[:, by] -= (pull * states[:, sources]).sum(axis=1)
        by_scales = (at * states) @ self._by + self._counts
        at *= rates
        at[:, self.scales] -= by_scales
        slopes, of_logs = self.normal.slopes(states)
        at[:, self.normal.places] = (at[:, self.normal.places] - of_logs) / slopes
        return at

    def log_jacobian(self, states: FloatArray) -> FloatArray:
        """Return the log of |du / dstates|, shape ``states.shape[:-1]``."""
        by_scales = (states[..., self.scales] * self._counts).sum(axis=-1)
        return np.asarray(by_scales + self.normal.log_slope(states))

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        return self.uncentred(self.mean + rows_times(self.root, rng.standard_normal((n, self.dim))))

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``; NaN where u overflows."""
        states = np.asarray(states)
        with np.errstate(over="ignore", invalid="ignore"):
            z = rows_times(self.matrix, self.centred(states) - self.mean)
            return np.asarray(self.log_normaliser - 0.5 * (z * z).sum(axis=-1) + self.log_jacobian(states))

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        states = np.asarray(states)
        with np.errstate(over="ignore", invalid="ignore"):
            pull = -rows_times(self.matrix.T, rows_times(self.matrix, self.centred(states) - self.mean))
            self._pull_back(states, pull)
            result = pull * np.exp(self._log_factors(states))
            result[..., self.scales] += np.einsum("...j,jk->...k", result * states, self._by) + self._counts
            self._add_links(states, pull, result)
        return np.asarray(result)

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        with np.errstate(over="ignore", invalid="ignore"):
            factors = np.exp(self._by.dot(state[self.scales]))
            u = state * factors
            self._add_products(state, u)
            z = self.matrix.dot(self.normal.forward(u) - self.mean)
            pull = -z.dot(self.matrix)
            self._pull_back(state, pull)
            gradient = pull * factors
            gradient[self.scales] += (gradient * state).dot(self._by) + self._counts
            self._add_links(state, pull, gradient)
            value = self.log_normaliser - 0.5 * z.dot(z) + self.log_jacobian(state)
        return float(value), gradient

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,); of what links add to, by draws."""
        covariance = self.root @ self.root.T
        spread = self._by @ covariance[self.scales]  # of the logarithms of the factors with u, shape (dim, dim)
        own = np.diag(spread[:, self.scales] @ self._by.T)
        along, middle = np.diag(spread), self._by @ self.mean[self.scales]
        mean = (self.mean - along) * np.exp(-middle + 0.5 * own)
        square = ((self.mean - 2.0 * along) ** 2 + np.diag(covariance)) * np.exp(-2.0 * middle + 2.0 * own)
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
        multiplied = np.flatnonzero(self.by[:, self.normal.places].any(axis=1))
        targets = np.unique(np.concatenate([*(link.targets for link in self.links), self.normal.places, multiplied]))
        if len(targets):
            normal = np.random.default_rng(0).standard_normal((MOMENT_DRAWS, self.dim))
            draws = self.uncentred(self.mean + normal @ self.root.T)[:, targets]
            mean[targets], deviation[targets] = draws.mean(axis=0), draws.std(axis=0)
        return mean, deviation

    def _multiplied(self, states: FloatArray) -> FloatArray:
        """Return effects times their scales, with the products of links; other coordinates as they are."""
        u = np.asarray(states * np.exp(self._log_factors(states)))
        self._add_products(states, u)
        return u

    def _pull_back(self, states: FloatArray, pull: FloatArray) -> None:
        """Make of a gradient by normal coordinates that by those they are functions of, the Jacobian counted."""
        slopes, of_logs = self.normal.slopes(states)
        pull[..., self.normal.places] = pull[..., self.normal.places] * slopes + of_logs

    def _add_products(self, states: FloatArray, u: FloatArray) -> None:
        """Add to effects times their scales the products of links."""
        for by, sources, targets in self.links:
            u[..., targets] += states[..., [by]] * states[..., sources]

    def _add_links(self, states: FloatArray, pull: FloatArray, gradient: FloatArray) -> None:
        """Add to a gradient by states what links make of ``pull``, the gradient by u."""
        for by, sources, targets in self.links:
            gradient[..., by] += (pull[..., targets] * states[..., sources]).sum(axis=-1)
            gradient[..., sources] += pull[..., targets] * states[..., [by]]

    def _log_factors(self, states: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("...k,jk->...j", states[..., self.scales], self._by))  # rows alike for any n
