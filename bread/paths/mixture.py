"""Reference densities: normalised, on unconstrained coordinates, the base of a path in place of the prior.

A bound holds for every reference that does not depend on the exact draw. How good it is depends on how near the
reference is to the posterior, and whether it is finite on its tails: a reference may be wider than the posterior, not
narrower, and must fall fast enough in coordinates that are logarithms of scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]

_MOMENT_DRAWS = 2000
_LARGEST_BATCHED_DIM = 64  # above it BLAS is faster, one state at a time


@runtime_checkable
class Reference(Protocol):
    """A normalised density that can be drawn from. Each row of a result is bit-equal for any number of rows."""

    @property
    def label(self) -> str:
        """What it is, for the report."""
        ...

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        ...

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        ...

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        ...


class FittedReference(Reference):
    """What every reference of bread's own tells besides: the base of each family.

    A family has ``dim``, ``label``, ``sample`` and ``value_and_gradient``; the rest may be replaced by what is faster.

    Attributes
    ----------
    is_own : bool
        True: its density is known to be normalised, and that of its draws.
    is_given : bool
        Whether it has all coordinates given one of them, or some, such as scales.
    goes_round : bool
        See `bread.paths.kinds.ReferencePath.tree_depth`.
    """

    is_own: ClassVar[Literal[True]] = True
    is_given: ClassVar[bool] = False
    goes_round: ClassVar[bool] = False

    @property
    def is_several(self) -> bool:
        """Whether it is made of several laws, which may be far from each other."""
        return False

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        raise NotImplementedError

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        raise NotImplementedError

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        rows = np.ascontiguousarray(states, dtype=np.float64).reshape(-1, self.dim)
        return np.array([self.value_and_gradient(row)[0] for row in rows]).reshape(np.shape(states)[:-1])

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        rows = np.ascontiguousarray(states, dtype=np.float64).reshape(-1, self.dim)
        return np.array([self.value_and_gradient(row)[1] for row in rows]).reshape(np.shape(states))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,), of some draws, always the same."""
        draws = self.sample(_MOMENT_DRAWS, np.random.default_rng(0))
        return draws.mean(axis=0), draws.std(axis=0)


@dataclass(frozen=True)
class Component:
    """A location-scale law: the coordinates of ``z = W (theta - mean) / scale`` are independent, normal or Student t.

    Attributes
    ----------
    mean, scale : ndarray, shape (dim,)
    matrix : ndarray, shape (dim, dim), or None
        W; None is the identity, or the low-rank matrix of the next two.
    directions, stretch : ndarray, shapes (dim, rank) and (rank,), or None
        Orthonormal directions in which ``(theta - mean) / scale`` has the standard deviation ``stretch`` and not 1:
        ``W = 1 + directions diag(1 / stretch - 1) directions'``.
    degrees : ndarray, shape (dim,), or None
        Degrees of freedom of each coordinate of z; infinity, and None for all, is the normal law.
    """

    mean: FloatArray
    scale: FloatArray
    matrix: FloatArray | None = None
    directions: FloatArray | None = None
    stretch: FloatArray | None = None
    degrees: FloatArray | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise InvalidArgumentError("a Component needs finite means and finite positive scales.")
        if self.matrix is not None and self.directions is not None:
            raise InvalidArgumentError("a Component has a full matrix or low-rank directions, not both.")

    @cached_property
    def log_normaliser(self) -> float:
        """Log of the density's constant factor, the determinant included."""
        degrees = np.full(len(self.mean), np.inf) if self.degrees is None else self.degrees
        nu = degrees[np.isfinite(degrees)]
        result = -0.5 * (len(degrees) - len(nu)) * np.log(2 * np.pi) - np.log(self.scale).sum()
        result += (gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)).sum()
        if self.matrix is not None:
            result += np.linalg.slogdet(self.matrix)[1]
        if self.stretch is not None:
            result -= np.log(self.stretch).sum()
        return float(result)

    @property
    def variance(self) -> FloatArray:
        """Variance of each coordinate, shape (dim,); infinite for a Student t of at most 2 degrees of freedom."""
        spread = np.ones(len(self.mean))
        if self.degrees is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                heavy = np.where(self.degrees > 2.0, self.degrees / (self.degrees - 2.0), np.inf)
            spread = np.where(np.isinf(self.degrees), 1.0, heavy)
        if self.matrix is not None:
            colour = np.linalg.inv(self.matrix)
            spread = (colour**2 * spread).sum(axis=1)
        elif self.directions is not None and self.stretch is not None:
            spread = 1.0 + (self.directions**2 * (self.stretch**2 - 1.0)).sum(axis=1)
        return np.asarray(self.scale**2 * spread)

    def standardise(self, states: FloatArray) -> FloatArray:
        """Return z, shape ``states.shape``."""
        return self._multiply((states - self.mean) / self.scale, transposed=False)

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the log density (nats), shape ``states.shape[:-1]``."""
        z = self.standardise(states)
        with np.errstate(over="ignore"):
            if self.degrees is None:
                terms = -0.5 * z * z
            else:
                nu = self.degrees
                with np.errstate(invalid="ignore"):
                    terms = np.where(np.isinf(nu), -0.5 * z * z, -0.5 * (nu + 1) * np.log1p(z * z / nu))
            return np.asarray(terms.sum(axis=-1) + self.log_normaliser)

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        z = self.standardise(states)
        if self.degrees is None:
            pull = np.asarray(-z)
        else:
            nu = self.degrees
            with np.errstate(invalid="ignore"):
                pull = np.asarray(np.where(np.isinf(nu), -z, -(nu + 1) * z / (nu + z * z)), dtype=np.float64)
        return np.asarray(self._multiply(pull, transposed=True) / self.scale)

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,): what a chain calls at every step.

        Equal to `log_density` and `gradient` up to rounding, at a fraction of their cost.
        """
        v = (state - self.mean) / self.scale
        if self.matrix is not None:
            value, pull = self._terms(self.matrix @ v)
            pull = pull @ self.matrix
        elif self.directions is not None and self.stretch is not None:
            along = 1.0 / self.stretch - 1.0
            value, pull = self._terms(v + self.directions @ ((v @ self.directions) * along))
            pull = pull + self.directions @ ((pull @ self.directions) * along)
        else:
            value, pull = self._terms(v)
        return value + self.log_normaliser, np.asarray(pull / self.scale)

    def _terms(self, z: FloatArray) -> tuple[float, FloatArray]:
        """Return log density but for its constant, and its gradient, of the standardised coordinates."""
        if self.degrees is None:
            return -0.5 * float(z @ z), -z
        nu, square = self.degrees, z * z
        is_normal = np.isinf(nu)
        with np.errstate(invalid="ignore"):
            terms = np.where(is_normal, -0.5 * square, -0.5 * (nu + 1) * np.log1p(square / nu))
            pull = np.where(is_normal, -z, -(nu + 1) * z / (nu + square))
        return float(terms.sum()), np.asarray(pull)

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` draws, shape (n, dim)."""
        z = rng.standard_normal((n, len(self.mean)))
        if self.degrees is not None:
            heavy = np.flatnonzero(np.isfinite(self.degrees))
            z[:, heavy] /= np.sqrt(rng.chisquare(self.degrees[heavy], size=(n, len(heavy))) / self.degrees[heavy])
        if self.matrix is not None:
            z = np.asarray(np.linalg.solve(self.matrix, z.T).T, dtype=np.float64)
        elif self.directions is not None and self.stretch is not None:
            z = z + ((z @ self.directions) * (self.stretch - 1.0)) @ self.directions.T
        return np.asarray(self.mean + self.scale * z)

    def _multiply(self, v: FloatArray, *, transposed: bool) -> FloatArray:
        """Return ``v W'`` (or ``v W``) row by row, each row bit-equal for any number of rows."""
        if self.matrix is not None:
            return rows_times(self.matrix.T if transposed else self.matrix, v)
        if self.directions is not None and self.stretch is not None:
            along = (v[..., None] * self.directions).sum(axis=-2) * (1.0 / self.stretch - 1.0)
            return np.asarray(v + (along[..., None, :] * self.directions).sum(axis=-1))
        return v


def rows_times(matrix: FloatArray, states: FloatArray) -> FloatArray:
    """Return ``states matrix'``, each row bit-equal for any number of rows; the matrix is square."""
    # The order of NumPy's sums depends on the layout in memory.
    matrix, rows = np.ascontiguousarray(matrix), np.ascontiguousarray(states).reshape(-1, states.shape[-1])
    if len(matrix) <= _LARGEST_BATCHED_DIM:
        return np.asarray(np.einsum("nj,ij->ni", rows, matrix)).reshape(states.shape)  # a loop over j for each, no BLAS
    return np.array([matrix @ row for row in rows]).reshape(states.shape)


@dataclass(frozen=True)
class MixtureReference(FittedReference):
    """A mixture of location-scale laws (one component is a plain Gaussian or t).

    Attributes
    ----------
    components : tuple of Component
    weights : ndarray, shape (component,)
        Positive, of sum 1.
    label : str
        What it is and how it was fitted, for the report.
    n_left_out : int
        Modes that were found on these data and hold next to none of their posterior.
    """

    components: tuple[Component, ...]
    weights: FloatArray
    label: str = "reference"
    n_left_out: int = 0

    def __post_init__(self) -> None:
        if len(self.components) != len(self.weights) or not np.isclose(self.weights.sum(), 1.0):
            raise InvalidArgumentError(
                f"a mixture of {len(self.components)} components needs as many weights of sum 1, got {self.weights!r}."
            )

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.components[0].mean)

    @property
    def is_several(self) -> bool:
        """Whether it has several components."""
        return len(self.components) > 1

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        if len(self.components) == 1:
            return self.components[0].sample(n, rng)
        cumulative = np.cumsum(self.weights)
        labels = np.searchsorted(cumulative / cumulative[-1], rng.random(n), side="right")  # as `Generator.choice` does
        draws = np.empty((n, self.dim))
        for index, component in enumerate(self.components):
            chosen = labels == index
            draws[chosen] = component.sample(int(chosen.sum()), rng)
        return draws

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        if len(self.components) == 1:
            return self.components[0].log_density(states)
        return np.asarray(logsumexp(self._terms(states), axis=0))

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        if len(self.components) == 1:
            return self.components[0].gradient(states)
        terms = self._terms(states)
        share = np.exp(terms - logsumexp(terms, axis=0))
        parts = np.stack([component.gradient(states) for component in self.components])
        return np.asarray((share[..., None] * parts).sum(axis=0))

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); see `Component.value_and_gradient`."""
        if len(self.components) == 1:
            return self.components[0].value_and_gradient(state)
        parts = [component.value_and_gradient(state) for component in self.components]
        terms = np.log(self.weights) + np.array([value for value, _ in parts])
        largest = terms.max()
        share = np.exp(terms - largest)
        total = share.sum()
        gradient = sum(one / total * slope for one, (_, slope) in zip(share, parts, strict=True))
        return float(largest + np.log(total)), np.asarray(gradient)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,)."""
        means = np.array([component.mean for component in self.components])
        variances = np.array([component.variance for component in self.components])
        weights = self.weights[:, None]
        mean = (weights * means).sum(axis=0)
        variance = (weights * (variances + means**2)).sum(axis=0) - mean**2
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _terms(self, states: FloatArray) -> FloatArray:
        logs = np.log(self.weights)
        return np.stack([log + part.log_density(states) for log, part in zip(logs, self.components, strict=True)])


def gaussian(mean: FloatArray, covariance: FloatArray, label: str = "Gaussian") -> MixtureReference:
    """Return a Gaussian reference with a full covariance matrix, shape (dim, dim)."""
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    factor = np.linalg.cholesky(correlation)
    matrix = np.linalg.solve(factor, np.eye(len(mean)))
    return MixtureReference((Component(mean, scale, matrix=np.tril(matrix)),), np.ones(1), label)


def diagonal(mean: FloatArray, scale: FloatArray, label: str = "diagonal Gaussian") -> MixtureReference:
    """Return a Gaussian reference with independent coordinates; ``scale`` are standard deviations, shape (dim,)."""
    return MixtureReference((Component(np.asarray(mean, float), np.asarray(scale, float)),), np.ones(1), label)
