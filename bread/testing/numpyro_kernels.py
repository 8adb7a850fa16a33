"""NumPyro's kernels as kernels that `bread.debug` tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bread.testing.jax_kernels import JAXKernel


class NumPyroKernel(JAXKernel):
    """A kernel of NumPyro as a `bread.debugging.stepper.ManyChains`: chains run side by side.

    It runs as after warm-up: nothing adapts.

    Parameters
    ----------
    kernel : numpyro.infer.mcmc.MCMCKernel
        Such as ``numpyro.infer.NUTS(potential_fn=..., step_size=0.5, adapt_step_size=False,
        adapt_mass_matrix=False)``.
    unravel : callable, optional
        ``unravel(x)`` of a flat position (d,): what the kernel's positions are, where they are not flat arrays: for
        a kernel of a model, a dict of its sites (the continuous ones unconstrained) in alphabetical order.

    Raises
    ------
    InvalidArgumentError
        JAX computes in single precision.
    """

    def __init__(self, kernel: Any, unravel: Callable[[Any], Any] = lambda x: x) -> None:
        def start(key: Any, position: Any) -> Any:
            return kernel.init(key, 0, init_params=unravel(position), model_args=(), model_kwargs={})

        super().__init__(
            start=start,
            step=lambda key, state: kernel.sample(state._replace(rng_key=key), (), {}),
            position=lambda state: getattr(state, kernel.sample_field),
            log_density=lambda state: -getattr(state, "potential_energy", np.nan),
        )
