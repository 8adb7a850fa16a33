"""Double precision on the CPU without a change of the user's settings, and keys of seeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

# One thread: bread runs a process on each core, and results must not depend on how many cores there are.
COMPILER_OPTIONS = {"xla_cpu_multi_thread_eigen": False}


@contextmanager
def double_precision() -> Iterator[None]:
    """Compute in double precision on the CPU; outside of it the user's settings hold."""
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with ExitStack() as stack:
        stack.enter_context(enable(True))
        stack.enter_context(jax.default_device(jax.local_devices(backend="cpu")[0]))
        yield


def key_numbers(seed: SeedSequence) -> NDArray[np.uint32]:
    """Return the numbers of a key, shape (2,)."""
    return np.asarray(seed.generate_state(2, np.uint32), dtype=np.uint32)


def key_of(numbers: Any) -> Any:
    """Return the key of these numbers, whatever generator the user has chosen for JAX."""
    return jax.random.wrap_key_data(numbers, impl="threefry2x32")
