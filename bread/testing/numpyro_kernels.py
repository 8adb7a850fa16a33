"""NumPyro's kernels as kernels that `bread.debug` tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.testing.jax_numbers import key_of, require_double_precision


class NumPyroKernel:
    """A kernel of NumPyro that was built with ``potential_fn``, as a `bread.debugging.stepper.Stepper`.

    It runs as after warm-up: nothing adapts. Positions are flat arrays.

    Parameters
    ----------
    kernel : numpyro.infer.mcmc.MCMCKernel
        Such as ``numpyro.infer.NUTS(potential_fn=..., step_size=0.5, adapt_step_size=False,
        adapt_mass_matrix=False)``.

    Raises
    ------
    InvalidArgumentError
        JAX computes in single precision.
    """

    def __init__(self, kernel: Any) -> None:
        require_double_precision()
        import jax

        self._kernel = kernel
        self._sample = jax.jit(lambda state: kernel.sample(state, (), {}))

    def start(self, position: NDArray[np.float64], rng: Generator) -> Any:
        """Return the kernel's state at a position."""
        return self._kernel.init(key_of(rng), 0, init_params=position, model_args=(), model_kwargs={})

    def step(self, carry: Any, rng: Generator) -> Any:
        """Return the state after one transition, with random numbers from ``rng``."""
        return self._sample(carry._replace(rng_key=key_of(rng)))

    def position(self, carry: Any) -> NDArray[np.float64]:
        """Return the position, shape (d,)."""
        return np.asarray(getattr(carry, self._kernel.sample_field), dtype=np.float64)

    def log_density(self, carry: Any) -> float:
        """Return the log density that the state holds (nats); NaN if it holds none."""
        return -float(getattr(carry, "potential_energy", np.nan))
