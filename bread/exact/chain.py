"""An annealing problem on a finite state space: a start, a log ratio, and kernels for every density between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bread.errors import InvalidArgumentError
from bread.exact.transitions import Transition

FloatArray = NDArray[np.float64]

CHUNK_NUMBERS = 500_000  # of matrix entries that are held at once


@dataclass(frozen=True, eq=False)
class FiniteChain:
    """What is annealed: f_beta(x) = f_0(x) exp(beta * log_ratio(x)) on states 0, ..., n - 1, and the kernels.

    Parameters
    ----------
    log_base : array_like, shape (n,) or the shape of a grid
        log f_0 in nats, up to a constant; where chains start. -inf at states that are never visited.
    log_ratio : array_like, of the same shape
        log f_1 - log f_0 in nats, such as a log likelihood; -inf is allowed.
    transition : Transition
        Kernels, such as ``MetropolisHastings(grid_neighbours(shape))``.
    name : str
        For titles.

    Raises
    ------
    InvalidArgumentError
        Shapes differ, a value is NaN or +inf, or no state has positive density at both ends.

    Notes
    -----
    Arrays are kept flat, in NumPy's order; ``shape`` is the shape that was given.
    """

    log_base: FloatArray
    log_ratio: FloatArray
    transition: Transition
    name: str = "finite chain"
    shape: tuple[int, ...] = ()

    def __init__(self, log_base: ArrayLike, log_ratio: ArrayLike, transition: Transition, name: str = "finite chain"):
        base, ratio = np.asarray(log_base, dtype=np.float64), np.asarray(log_ratio, dtype=np.float64)
        if base.shape != ratio.shape or base.size == 0:
            raise InvalidArgumentError(
                f"log_base and log_ratio must have one shape, a number for each state; received {base.shape} and "
                f"{ratio.shape}."
            )
        for what, values in (("log_base", base), ("log_ratio", ratio)):
            if np.isnan(values).any() or (values == np.inf).any():
                raise InvalidArgumentError(
                    f"{what} must be finite, or -inf where the density is zero; received {values!r}."
                )
        if not (base + ratio > -np.inf).any():
            raise InvalidArgumentError(
                "log_base + log_ratio must be finite at one state at least: there is no state at which start and "
                "target both have mass."
            )
        for field, value in (("log_base", base.ravel()), ("log_ratio", ratio.ravel()), ("transition", transition)):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "shape", base.shape)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.log_base)

    @cached_property
    def log_evidence(self) -> float:
        """Log of the sum of f_1 over the sum of f_0, in nats."""
        return float(logsumexp(self.log_base + self.log_ratio) - logsumexp(self.log_base))

    def log_densities(self, betas: ArrayLike) -> FloatArray:
        """Return normalised tempered log densities (nats), shape (len(betas), n); at beta = 0 that of f_0."""
        values = np.asarray(betas, dtype=np.float64)[:, None]
        with np.errstate(invalid="ignore"):
            raw = self.log_base + np.where(values == 0.0, 0.0, values * self.log_ratio)
        return np.asarray(raw - logsumexp(raw, axis=1, keepdims=True))

    def laws(self, betas: ArrayLike) -> FloatArray:
        """Return tempered probabilities, shape (len(betas), n)."""
        return np.exp(self.log_densities(betas))

    def matrices(self, betas: FloatArray, *, reverse: bool = False) -> Iterator[FloatArray]:
        """Yield the kernels at ``betas`` one after another, or their reversals, each (n, n).

        They are computed in blocks, so that a hundred thousand cost neither memory nor a call each.
        """
        size = max(1, CHUNK_NUMBERS // self.n_states**2)
        for first in range(0, len(betas), size):
            log_density = self.log_densities(betas[first : first + size])
            compute = self.transition.reversals if reverse else self.transition.matrices
            yield from compute(log_density)
