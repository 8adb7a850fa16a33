"""A reference for posteriors that rotations leave alone: factor models, points of which distances are known.

Where the density does not change as the columns of a matrix of parameters are rotated together, the posterior is spread
over all rotations, and no Gaussian law is near it. Here a rotation is drawn uniformly, and what rotations leave alone
has the law of another reference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.paths.conditional import ConditionalReference
from bread.paths.mixture import FittedReference, FloatArray, MixtureReference
from bread.paths.nested import NestedReference

InvariantLaw = MixtureReference | NestedReference | ConditionalReference

_MOMENT_DRAWS = 2000


@dataclass(frozen=True)
class Gauge:
    """Coordinates of a state that rotations leave alone.

    K x P coordinates are a matrix W, whose columns are rotated together, by any orthogonal matrix. With the orthonormal
    ``frame`` F, ``W F = Q G`` by a QR decomposition of the first m = min(K, P) columns: Q is what is rotated, and G,
    upper triangular there with a positive diagonal, is invariant. The invariant coordinates y are, in this order: the
    state's other coordinates, the logarithms of the m diagonal elements, and by row all to the right of them. With F
    the right singular vectors of W at some state, G is nearly diagonal near that state, and Q unique there.

    Attributes
    ----------
    dim : int
        Coordinates of a state.
    places : ndarray of int, shape (K, P)
        Which of them are W.
    frame : ndarray, shape (P, P)
        F.
    """

    dim: int
    places: NDArray[np.int64]
    frame: FloatArray

    @property
    def n_invariant(self) -> int:
        """Number of invariant coordinates."""
        return len(self.others) + self._rank + len(self._free[0])

    @cached_property
    def from_others(self) -> NDArray[np.bool_]:
        """Invariant coordinates that are the state's own, shape (n_invariant,)."""
        return np.arange(self.n_invariant) < len(self.others)

    @cached_property
    def are_logarithms(self) -> NDArray[np.bool_]:
        """Invariant coordinates that are the logarithm of a length, shape (n_invariant,)."""
        index = np.arange(self.n_invariant) - len(self.others)
        return (index >= 0) & (index < self._rank)

    @cached_property
    def others(self) -> NDArray[np.int64]:
        """The state's coordinates that are not in W."""
        return np.setdiff1d(np.arange(self.dim), self.places)

    @cached_property
    def log_volume(self) -> float:
        """Log volume of the orthogonal matrices (Stiefel manifold) that Q may be."""
        terms = range(self.places.shape[0] - self._rank + 1, self.places.shape[0] + 1)
        return sum(math.log(2.0) + 0.5 * i * math.log(math.pi) - math.lgamma(0.5 * i) for i in terms)

    def invariant(self, state: FloatArray) -> FloatArray:
        """Return the invariant coordinates of one state, shape (n_invariant,)."""
        return self._split(state)[0]

    def all_invariant(self, states: FloatArray) -> FloatArray:
        """Return the invariant coordinates of states, shape (n, n_invariant)."""
        return np.array([self._split(state)[0] for state in states]).reshape(-1, self.n_invariant)

    def state(self, y: FloatArray, rotation: FloatArray | None = None) -> FloatArray:
        """Return the state of invariant coordinates at a rotation (K, m), by default none; shape (dim,)."""
        (w,) = self.matrices(y[None])
        result = np.empty(self.dim)
        result[self.others] = y[: len(self.others)]
        result[self.places] = self._padded(w) if rotation is None else rotation @ w
        return result

    def matrices(self, y: FloatArray) -> FloatArray:
        """Return G F' of rows of invariant coordinates, shape (n, m, P): W where nothing is rotated."""
        n, m = len(self.others), self._rank
        g = np.zeros((len(y), m, self.places.shape[1]))
        with np.errstate(over="ignore"):
            g[:, self._diagonal[0], self._diagonal[1]] = np.exp(y[:, n : n + m])
        g[:, self._free[0], self._free[1]] = y[:, n + m :]
        return np.asarray(g @ self.frame.T)

    def rotation(self, rng: Generator) -> FloatArray:
        """Return a uniform rotation or reflection, shape (K, m)."""
        return uniform_rotation(len(self.places), self._rank, rng)

    def log_volume_element(self, y: FloatArray) -> tuple[float, FloatArray]:
        """Return the log volume (nats) of states to a unit of y, and its derivatives by the logarithms, (m,)."""
        n, k = len(self.others), len(self.places)
        powers = k - np.arange(self._rank, dtype=float)
        return float(powers @ y[n : n + self._rank]) + self.log_volume, powers

    def pull_back(self, y: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient by y of a function of states that has ``gradient`` at `state` (y)."""
        n, m = len(self.others), self._rank
        by_g = gradient[self.places] @ self.frame
        lengths = np.exp(y[n : n + m])
        return np.concatenate([gradient[self.others], by_g[self._diagonal] * lengths, by_g[self._free]])

    def push_forward(self, state: FloatArray, law: InvariantLaw) -> tuple[float, FloatArray]:
        """Return value and gradient by the state, shape (dim,), of a log density of y, as one of states."""
        y, q, g = self._split(state)
        value, by_y = law.value_and_gradient(y)
        volume, powers = self.log_volume_element(y)
        n, m = len(self.others), self._rank
        by_g = np.zeros_like(g)
        by_g[self._free] = by_y[n + m :]
        by_g[self._diagonal] = (by_y[n : n + m] - powers) / g[self._diagonal]
        twist = by_g.dot(g.T)
        twist = np.tril(twist - twist.T, -1)
        # a change of the state also turns Q: d G = Q' d(W F) - (Q' dQ) G, where Q' dQ is antisymmetric
        by_g[:, :m] -= np.linalg.solve(g[:, :m], twist.T).T
        gradient = np.empty(self.dim)
        gradient[self.others] = by_y[:n]
        gradient[self.places] = q.dot(by_g).dot(self.frame.T)
        return value - volume, gradient

    @cached_property
    def _rank(self) -> int:
        return int(min(self.places.shape))

    @cached_property
    def _diagonal(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.arange(self._rank), np.arange(self._rank)

    @cached_property
    def _free(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of G that are free, but for its diagonal."""
        return np.triu_indices(self._rank, 1, self.places.shape[1])

    def _padded(self, w: FloatArray) -> FloatArray:
        """Return all rows of W where nothing is rotated, shape (K, P)."""
        return np.concatenate([w, np.zeros((len(self.places) - len(w), w.shape[1]))])

    def _split(self, state: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return y, Q and G of a state."""
        n, m = len(self.others), self._rank
        turned = state[self.places].dot(self.frame)
        q, r = np.linalg.qr(turned[:, :m])
        q = q * np.where(np.diagonal(r) < 0.0, -1.0, 1.0)
        g = q.T.dot(turned)
        y = np.empty(self.n_invariant)
        y[:n] = state[self.others]
        with np.errstate(divide="ignore"):
            y[n : n + m] = np.log(np.abs(g[self._diagonal]))
        y[n + m :] = g[self._free]
        return y, q, g


@dataclass(frozen=True)
class RotatedReference(FittedReference):
    """A law of what rotations leave alone, and a uniform rotation.

    Attributes
    ----------
    gauge : Gauge
        The invariant coordinates.
    law : InvariantLaw
        Of them.
    """

    goes_round = True

    gauge: Gauge
    law: InvariantLaw

    @property
    def label(self) -> str:
        """What it is, for the report."""
        return f"{self.law.label}, uniform over rotations in {len(self.gauge.places)} dimensions"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.gauge.dim

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        drawn = self.law.sample(n, rng)
        return np.array([self.gauge.state(y, self.gauge.rotation(rng)) for y in drawn]).reshape(n, self.dim)

    def value_and_gradient(self, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient of one state, shape (dim,); -inf where no rotation is defined."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                value, gradient = self.gauge.push_forward(state, self.law)
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros(self.dim)
        return (value, gradient) if np.isfinite(value) else (-np.inf, np.zeros(self.dim))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each coordinate, shapes (dim,), over draws of the law, always the same.

        Over rotations the mean of what is rotated is zero, and rows have equal variances.
        """
        drawn = self.law.sample(_MOMENT_DRAWS, np.random.default_rng(0))
        mean, deviation = np.zeros(self.dim), np.empty(self.dim)
        own = drawn[:, self.gauge.from_others]
        mean[self.gauge.others], deviation[self.gauge.others] = own.mean(axis=0), own.std(axis=0)
        columns = (self.gauge.matrices(drawn) ** 2).mean(axis=0).sum(axis=0) / len(self.gauge.places)
        deviation[self.gauge.places] = np.sqrt(columns)
        return mean, deviation


def uniform_rotation(k: int, m: int, rng: Generator) -> FloatArray:
    """Return the first m columns of a uniform rotation or reflection in k dimensions, shape (k, m)."""
    q, r = np.linalg.qr(rng.standard_normal((k, m)))
    return np.asarray(q * np.sign(np.diag(r)))


def gauge_at(places: NDArray[np.int64], state: FloatArray) -> Gauge:
    """Return invariant coordinates that are well defined near a state.

    Parameters
    ----------
    places : ndarray of int, shape (K, P)
        Coordinates of the matrix whose columns are rotated.
    state : ndarray, shape (dim,)
    """
    _, _, right = np.linalg.svd(state[places], full_matrices=True)
    return Gauge(len(state), places, np.ascontiguousarray(right.T))
