"""What a kernel without a model is tested on: a law known by its log density and by exact draws of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """A law on R^d, or on whole numbers, that is known twice over.

    Attributes
    ----------
    name : str
        For the report.
    dim : int
        Number of coordinates d.
    log_density : callable
        ``log_density(x)`` of one state (d,), in nats, up to a constant; -inf outside of the support.
    simulate : callable
        ``simulate(n, rng)``: n independent exact draws, shape (n, d).
    gradient : callable or None
        ``gradient(x)`` of the log density by x, shape (d,). None where there is none: the score test is left out, and a
        kernel that needs it cannot be built.
    is_discrete : tuple of bool
        Coordinates that hold whole numbers; all continuous if empty.
    lower, upper : tuple of float
        Ends of the support of each coordinate, themselves in it where the coordinate is discrete; none if empty.
    n_walkers : int
        Walkers of an ensemble: the state is as many points of one space, one after another, whose laws may differ.
        Pairs of them are then looked at too.
    """

    name: str
    dim: int
    log_density: Callable[[FloatArray], float]
    simulate: Callable[[int, Generator], FloatArray]
    gradient: Callable[[FloatArray], FloatArray] | None = None
    is_discrete: tuple[bool, ...] = ()
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    n_walkers: int = 1

    @property
    def is_continuous(self) -> NDArray[np.bool_]:
        """Coordinates that are real numbers, shape (dim,)."""
        return ~np.array(self.is_discrete, dtype=bool) if self.is_discrete else np.ones(self.dim, dtype=bool)
