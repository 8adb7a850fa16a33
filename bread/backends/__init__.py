"""Registry of backends: the only place that imports one, lazily."""

from __future__ import annotations

import importlib
from typing import Any

from bread.backends.base import Model, OpenOptions
from bread.errors import InvalidArgumentError

_BACKENDS = ("bread.backends.pymc", "bread.backends.reference")


def open_model(model: Any, options: OpenOptions) -> Model:
    """Find the backend of ``model``, let it read and check it, and return the contract's `Model`.

    Raises
    ------
    InvalidArgumentError
        No backend knows objects of this type.
    UnsupportedModelError, UnsupportedKernelError
        The backend refuses the model or the kernel.
    """
    if isinstance(model, Model):
        return model
    root = type(model).__module__.split(".")[0]
    roots = {cls.__module__.split(".")[0] for cls in type(model).__mro__}
    if "pymc" in roots:
        backend = importlib.import_module("bread.backends.pymc")
        opened: Model = backend.open_model(model, options)
        return opened
    raise InvalidArgumentError(
        f"model is an object of type {type(model).__name__!r} (package {root!r}), which no backend of bread reads. "
        "Pass a pymc.Model, or call bread.check() inside `with model:`."
    )
