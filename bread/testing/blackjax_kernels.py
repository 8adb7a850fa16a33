"""BlackJAX's sampling algorithms as kernels that `bread.debug` tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.testing.jax_numbers import key_of, require_double_precision


class BlackJAXKernel:
    """A BlackJAX algorithm as a `bread.debugging.stepper.Stepper`.

    Parameters
    ----------
    algorithm : blackjax.base.SamplingAlgorithm
        With ``init`` and ``step``, such as ``blackjax.nuts(log_density, step_size, inverse_mass_matrix)``; positions
        are flat arrays.

    Raises
    ------
    InvalidArgumentError
        JAX computes in single precision.
    """

    def __init__(self, algorithm: Any) -> None:
        require_double_precision()
        import jax

        self._init = jax.jit(algorithm.init)
        self._step = jax.jit(algorithm.step)

    def start(self, position: NDArray[np.float64], rng: Generator) -> Any:
        """Return the algorithm's state at a position."""
        return self._init(position)

    def step(self, carry: Any, rng: Generator) -> Any:
        """Return the state after one transition."""
        return self._step(key_of(rng), carry)[0]

    def position(self, carry: Any) -> NDArray[np.float64]:
        """Return the position, shape (d,)."""
        return np.asarray(carry.position, dtype=np.float64)

    def log_density(self, carry: Any) -> float:
        """Return the log density that the state holds (nats); NaN if it holds none."""
        return float(getattr(carry, "logdensity", np.nan))
