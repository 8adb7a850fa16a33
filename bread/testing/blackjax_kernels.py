"""BlackJAX's sampling algorithms as kernels that `bread.debug` tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bread.testing.jax_kernels import JAXKernel


class BlackJAXKernel(JAXKernel):
    """A BlackJAX algorithm as a `bread.debugging.stepper.ManyChains`: chains run side by side.

    Parameters
    ----------
    algorithm : blackjax.base.SamplingAlgorithm
        With ``init`` and ``step``, such as ``blackjax.nuts(log_density, step_size, inverse_mass_matrix)``.
    unravel : callable, optional
        ``unravel(x)`` of a flat position (d,): what the algorithm's positions are, where they are not flat arrays
        (``jax.flatten_util.ravel_pytree``).

    Raises
    ------
    InvalidArgumentError
        JAX computes in single precision.
    """

    def __init__(self, algorithm: Any, unravel: Callable[[Any], Any] = lambda x: x) -> None:
        super().__init__(
            start=lambda key, position: algorithm.init(unravel(position), key),
            step=lambda key, state: algorithm.step(key, state)[0],
            position=lambda state: state.position,
            log_density=lambda state: getattr(state, "logdensity", np.nan),
        )
