"""JAX and BlackJAX: whether they are there, and double precision without a change of the user's settings."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any

from bread.errors import MissingDependencyError


def require_packages() -> dict[str, str]:
    """Return the versions of the packages that the engine needs.

    Raises
    ------
    MissingDependencyError
        One is not installed.
    """
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
