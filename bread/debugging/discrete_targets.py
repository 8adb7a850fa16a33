"""Discrete laws on which kernels are tested: supports that do not begin at 0, unequal and dependent masses, counts.

The array module is an optional second argument of a log density, as in `bread.debugging.continuous_targets`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from bread.debugging.target import Target

FloatArray = NDArray[np.float64]
LARGEST_COUNT = 400  # beyond which other array modules are not asked
RATE = 3.0
SIZE = 2  # failures of the negative binomial law


def tabulated(name: str, log_masses: FloatArray, lowest: int) -> Target:
    """Return the law on whole numbers with the given table of masses.

    Parameters
    ----------
    name : str
    log_masses : ndarray, shape (values of the first coordinate, ..., values of the last)
        In nats, up to a constant.
    lowest : int
        Smallest value of every coordinate.
    """
    shape = log_masses.shape
    masses = np.exp(log_masses - log_masses.max())
    masses /= masses.sum()
    table = np.log(masses).ravel()
    strides = np.array([int(np.prod(shape[i + 1 :])) for i in range(len(shape))])
    top = np.array(shape) - 1

    places = np.stack(np.unravel_index(np.arange(len(table)), shape), axis=1) + float(lowest)
    of_state = dict(zip(map(tuple, places.tolist()), table.tolist(), strict=True))

    def log_density(x: Any, xp: Any = np) -> Any:
        if xp is np and x.ndim == 1:
            return of_state.get(tuple(x.tolist()), -np.inf)  # ten times faster
        index = x - lowest
        inside = ((index >= 0) & (index <= top) & (index == xp.floor(index))).all(-1)
        place = (xp.clip(index, 0, top) * strides).sum(-1).astype(int)
        return xp.where(inside, xp.asarray(table)[place], -xp.inf)[()]

    def simulate(n: int, rng: Generator) -> FloatArray:
        return np.asarray(places[rng.choice(len(table), size=n, p=masses.ravel())])

    lower = (float(lowest),) * len(shape)
    return Target(name, len(shape), log_density, simulate, None, (True,) * len(shape), lower, tuple(lowest + top * 1.0))


def offset() -> Target:
    """Return a law of three numbers from 1 to 4, each with unequal masses, neighbours drawn to one another."""
    i, j, k = np.meshgrid(*[np.arange(1.0, 5.0)] * 3, indexing="ij")
    return tabulated("offset", 0.5 * i - 0.7 * np.log(j) - 0.3 * k - 0.4 * np.abs(i - j) - 0.2 * (j - k) ** 2, 1)


def binary() -> Target:
    """Return a law of four dependent zeros and ones: fields and couplings of either sign, none equal."""
    x = np.stack(np.meshgrid(*[np.arange(2.0)] * 4, indexing="ij"), axis=-1)
    couplings = np.array([[0.4, 1.2, -0.8, 0.3], [0.0, -0.5, 1.5, -1.0], [0.0, 0.0, 0.2, 0.9], [0.0, 0.0, 0.0, -0.7]])
    return tabulated("binary", np.einsum("...i,ij,...j->...", x, couplings, x), 0)


def categories() -> Target:
    """Return a law of three variables of three, four and five categories without an order, dependent."""
    i, j, k = np.meshgrid(np.arange(3.0), np.arange(4.0), np.arange(5.0), indexing="ij")
    return tabulated(
        "categories", np.cos(1.0 + 2.0 * i) + np.sin(3.0 * j + i) + 0.8 * np.cos(k * (1.0 + j)) - 0.1 * k, 0
    )


def counts() -> Target:
    """Return a law of counts without an upper end: Poisson(3) a; Poisson(1 + a); negative binomial(2, 0.4)."""
    log_rest = float(np.log(0.6))
    constant = -RATE + SIZE * float(np.log(0.4))

    def log_density(x: Any, xp: Any = np) -> Any:
        inside = ((x >= 0) & (x == xp.floor(x))).all(-1)
        a, b, c = (xp.where(inside, x[..., i], 0.0) for i in range(3))
        factorials = log_factorial(a, xp) + log_factorial(b, xp)
        negative = log_factorial(c + SIZE - 1, xp) - log_factorial(c, xp) + log_rest * c
        value = constant + a * np.log(RATE) - 1.0 - a + b * xp.log1p(a) - factorials + negative
        return xp.where(inside, value, -xp.inf)[()]

    def simulate(n: int, rng: Generator) -> FloatArray:
        a = rng.poisson(RATE, n)
        return np.column_stack([a, rng.poisson(1.0 + a), rng.negative_binomial(SIZE, 0.4, n)]).astype(np.float64)

    return Target("counts", 3, log_density, simulate, None, (True,) * 3, (0.0,) * 3, (np.inf,) * 3)


def log_factorial(x: Any, xp: Any = np) -> Any:
    """Return log(x!); of modules other than NumPy by a table, up to `LARGEST_COUNT`."""
    if xp is np:
        return gammaln(x + 1.0)
    table = xp.asarray(gammaln(np.arange(1.0, LARGEST_COUNT + 2.0)))
    return table[xp.clip(x, 0, LARGEST_COUNT).astype(int)]
