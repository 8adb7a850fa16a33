"""Registry of backends: the only place that imports one, lazily."""

from __future__ import annotations

import importlib
import os
from typing import Any

from bread.backends.base import Model, OpenOptions
from bread.errors import InvalidArgumentError, MissingDependencyError

_STAN_PACKAGES = frozenset({"lark", "filelock", "platformdirs"})


def open_model(model: Any, options: OpenOptions) -> Model:
    """Find the backend of ``model``, let it read and check it, and return the contract's `Model`.

    Raises
    ------
    InvalidArgumentError
        No backend knows objects of this type.
    UnsupportedModelError, UnsupportedKernelError
        The backend refuses the model or the kernel.
    MissingDependencyError
        A package that the backend needs is not installed.
    """
    if isinstance(model, Model):
        return model
    root = type(model).__module__.split(".")[0]
    roots = {cls.__module__.split(".")[0] for cls in type(model).__mro__}
    if "pymc" in roots:
        _refuse_stan_options(options)
        backend = importlib.import_module("bread.backends.pymc")
        opened: Model = backend.open_model(model, options)
        return opened
    if isinstance(model, (str, os.PathLike)) or hasattr(model, "stan_file"):
        opened = _import_stan().open_model(model, options)
        return opened
    raise InvalidArgumentError(
        f"model is an object of type {type(model).__name__!r} (package {root!r}), which no backend of bread reads. "
        "Pass a pymc.Model (or call bread.check() inside `with model:`), or a Stan program: a cmdstanpy.CmdStanModel, "
        "the path of a .stan file, or its text."
    )


def _import_stan() -> Any:
    try:
        return importlib.import_module("bread.backends.stan")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _STAN_PACKAGES:
            raise
        raise MissingDependencyError(
            f'Stan programs need the package {error.name!r}: pip install "bread-mcmc[stan]".'
        ) from error


def _refuse_stan_options(options: OpenOptions) -> None:
    for name in ("data", "observed", "likelihood"):
        if options.extra.get(name) is not None:
            raise InvalidArgumentError(
                f"{name}= is for Stan programs; a PyMC model has its own data and observed variables. Leave it out."
            )
