"""JAX and BlackJAX: whether they are there, and double precision without a change of the user's settings."""

from __future__ import annotations

import importlib
import os
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any

from bread.errors import MissingDependencyError

LANES = 32  # chains that a program moves at once on a CPU: more gain little, and one chain costs as much as all
LANES_OF_A_GPU = 1024  # there a thousand take little longer than one
_ON_DEMAND = "XLA_PYTHON_CLIENT_PREALLOCATE"  # "false": a process takes memory of a GPU as it needs it


def require_packages() -> dict[str, str]:
    """Return the versions of the packages that the engine needs.

    A process of JAX takes three quarters of a GPU's memory when it starts, so that a second one finds none: from here
    on, processes that start JAX take what they need, unless the environment says otherwise.

    Raises
    ------
    MissingDependencyError
        One is not installed.
    """
    os.environ.setdefault(_ON_DEMAND, "false")
    found = {}
    for name in ("jax", "blackjax"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"engine='blackjax' needs the package {error.name!r}: pip install \"bread-mcmc[jax]\"."
            ) from error
        found[name] = version(name)
    return found


def device() -> Any:
    """Return the device on which JAX computes."""
    import jax

    (where,) = jax.device_put(0.0).devices()
    return where


def lanes_on(where: Any) -> int:
    """Return the number of chains of a block on a device of JAX."""
    return LANES if where.platform == "cpu" else LANES_OF_A_GPU


def double_precision() -> AbstractContextManager[Any]:
    """Return a context in which JAX computes in double precision; outside of it the user's setting holds."""
    import jax

    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    context: AbstractContextManager[Any] = enable(True)
    return context


def load_dispatch() -> Any:
    """Return PyTensor's ``jax_funcify``, with what PyMC adds to it.

    PyTensor switches JAX to double precision for good when its dispatch is imported; the user's setting is restored.
    Not to be called in `double_precision`, where the user's setting is not seen.
    """
    import jax

    before = jax.config.jax_enable_x64
    try:
        importlib.import_module("pymc.sampling.jax")
        return importlib.import_module("pytensor.link.jax.dispatch").jax_funcify
    finally:
        jax.config.update("jax_enable_x64", before)
