"""What kernels on JAX need: double precision, and keys from NumPy's generators."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from bread.errors import InvalidArgumentError


def require_double_precision() -> None:
    """Refuse JAX's default of single precision, whose rounding tests of exact identities would find.

    Raises
    ------
    InvalidArgumentError
        Double precision is switched off.
    """
    import jax

    if not jax.config.jax_enable_x64:
        raise InvalidArgumentError(
            "JAX computes in single precision, whose rounding would be taken for a defect. Call "
            "jax.config.update('jax_enable_x64', True) before the kernel is built."
        )


def key_of(rng: Generator) -> Any:
    """Return a fresh JAX key from the next random numbers of a generator."""
    import jax

    return jax.random.key(int(rng.integers(2**63)))
