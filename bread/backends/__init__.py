"""Registry of backends: the only place that imports one, lazily.

A backend is an object, or a module, with two functions (`Backend`). Those of bread are in a table here; another package
adds its own by an entry point of the group ``bread.backends``::

    [project.entry-points."bread.backends"]
    mine = "my_package.bread_backend"

It is loaded only for a model that no backend before it reads, so that a broken one costs nobody else anything. Backends
of bread are asked first (text and paths are Stan programs), then the others by the names of their entry points.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, runtime_checkable

from bread.backends.base import Model, OpenOptions
from bread.errors import InvalidArgumentError, MissingDependencyError

GROUP = "bread.backends"


@runtime_checkable
class Backend(Protocol):
    """What opens models of one kind: what an entry point of the group ``bread.backends`` loads."""

    def reads(self, model: Any) -> bool:
        """Return whether ``model`` is of this backend's kind; quick, and never raises."""
        ...

    def open_model(self, model: Any, options: OpenOptions) -> Model:
        """Read and check ``model``, and return the contract's `Model`.

        Options that mean nothing to the backend are refused by name (`OpenOptions.refuse`), never dropped.
        """
        ...


@dataclass(frozen=True)
class _BuiltIn:
    """A backend of bread itself, whose packages may not be installed."""

    module: str
    reads: Callable[[Any], bool]
    subject: str  # what it reads, for messages
    optional: str  # the name of its optional dependencies
    packages: frozenset[str]  # those among them that a user of the model's own package may lack

    def open_model(self, model: Any, options: OpenOptions) -> Model:
        try:
            backend: Backend = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in self.packages:
                raise
            raise MissingDependencyError(
                f'{self.subject} need the package {error.name!r}: pip install "bread-mcmc[{self.optional}]".'
            ) from error
        return backend.open_model(model, options)


def _is_pymc(model: Any) -> bool:
    return any(cls.__module__.split(".")[0] in ("pymc", "bambi") for cls in type(model).__mro__)  # Bambi builds one


def _is_stan(model: Any) -> bool:
    return isinstance(model, (str, os.PathLike)) or hasattr(model, "stan_file")


def _is_numpyro(model: Any) -> bool:
    return type(model).__module__ == "bread.backends.numpyro.wrapper"


_BUILT_IN = (
    _BuiltIn("bread.backends.pymc", _is_pymc, "PyMC models", "pymc", frozenset()),
    _BuiltIn("bread.backends.stan", _is_stan, "Stan programs", "stan", frozenset({"lark", "filelock", "platformdirs"})),
    _BuiltIn(
        "bread.backends.numpyro.opened",
        _is_numpyro,
        "NumPyro models",
        "numpyro",
        frozenset({"jax", "jaxlib", "numpyro"}),
    ),
)


def open_model(model: Any, options: OpenOptions) -> Model:
    """Find the backend of ``model``, let it read and check it, and return the contract's `Model`.

    Raises
    ------
    InvalidArgumentError
        No backend knows objects of this type, or an option means nothing to the one that does.
    UnsupportedModelError, UnsupportedKernelError
        The backend refuses the model or the kernel.
    MissingDependencyError
        A package that the backend needs is not installed.
    """
    if isinstance(model, Model):
        options.refuse(
            ("kernel", "engine", "data", "observed", "simulator", "likelihood"),
            f"is for a model that bread opens; this one ({type(model).__name__}) is open already",
        )
        return model
    for backend in _BUILT_IN:
        if backend.reads(model):
            return backend.open_model(model, options)
    not_loaded = []
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        try:
            loaded = _load(entry)
        except Exception as error:
            not_loaded.append(f" {_name_of(entry)} could not be asked: {type(error).__name__}: {error}.")
            continue
        if loaded.reads(model):
            return _opened(loaded, entry, model, options)
    raise InvalidArgumentError(
        f"model is an object of type {type(model).__name__!r} (package {type(model).__module__.split('.')[0]!r}), "
        "which no backend of bread reads. Pass a pymc.Model (or call bread.check() inside `with model:`), or a Stan "
        "program: a cmdstanpy.CmdStanModel, the path of a .stan file, or its text. A NumPyro model is wrapped with its "
        "arguments: bread.numpyro.Model(function, (x, y)). Models of other kinds need a package with a backend."
        f"{''.join(not_loaded)}"
    )


def module_of(model: Any) -> str | None:
    """Return the module of bread's own backend that reads ``model``: what workers import. None for another's."""
    return next((backend.module for backend in _BUILT_IN if backend.reads(model)), None)


def _load(entry: EntryPoint) -> Backend:
    """Return the backend of another package."""
    backend = entry.load()
    missing = [name for name in ("reads", "open_model") if not callable(getattr(backend, name, None))]
    if missing:
        raise TypeError(f"{entry.value} has no function {missing[0]!r}")
    return backend  # type: ignore[no-any-return]


def _opened(backend: Backend, entry: EntryPoint, model: Any, options: OpenOptions) -> Model:
    opened = backend.open_model(model, options)
    if not isinstance(opened, Model):
        missing = [name for name in _members_of_the_contract() if not hasattr(opened, name)]
        raise TypeError(
            f"{_name_of(entry)} returned an object of type {type(opened).__name__!r}, which is no bread.backends.base."
            f"Model: it lacks {', '.join(missing)}. Please report this to the authors of that package."
        )
    return opened


def _members_of_the_contract() -> Iterator[str]:
    return (name for name in vars(Model) if not name.startswith("_"))


def _name_of(entry: EntryPoint) -> str:
    package = f" of the package {entry.dist.name!r}" if entry.dist is not None else ""
    return f"The backend {entry.name!r}{package}"


def model_in_context(model: Any) -> Any:
    """Return the model, or the PyMC model whose ``with`` block surrounds the call.

    Raises
    ------
    InvalidArgumentError
        ``model`` is None, and there is no such block; or it is a class.
    """
    if isinstance(model, type):
        raise InvalidArgumentError(
            f"model is the class {model.__name__}, and must be an object: a pymc.Model that was built (or call "
            "bread.check() inside `with model:`), or a Stan program."
        )
    if model is not None:
        return model
    pymc = sys.modules.get("pymc")  # where it was never imported, there is no block
    found = pymc.Model.get_context(error_if_none=False) if pymc is not None else None
    if found is None:
        raise InvalidArgumentError(
            "No model: pass one, bread.check(model), or call bread.check() inside `with model:`."
        )
    return found
