"""The checkpoint of one call of `bread.check`: what the call was, whether this one is the same, and its report."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bread._version import __version__
from bread.argument_rules import received
from bread.backends.base import Fit, Model
from bread.digests import Digests, digest
from bread.errors import CheckpointWarning, InvalidArgumentError
from bread.jobs.checkpoint import Keeper
from bread.jobs.store import REPORT, Store
from bread.report.types import Report
from bread.running.state.plan import Plan
from bread.verbs.arguments import Arguments

SPECIFICATIONS = ("specification", "specification again")  # twice: without it all is lost
CALL, FINISHED = "call", "report"
# on which no result depends, or which are compared apart
_FREE = ("cores", "max_seconds", "progressbar", "random_seed", "posterior")
_OBJECTS = ("kernel", "path", "schedule", "simulator")
_FILES = ("model", "data", "simulator", "posterior")
_PACKAGES = ("numpy", "scipy", "scikit-learn")
_WITHOUT_VERSION = {*sys.stdlib_module_names, "bread", ""}
_CALLERS = ("numpy", "scipy")  # folders of theirs: "numpy.libs", "scipy"


class Checkpoint:
    """The checkpoint that an argument names; without one nothing is kept."""

    def __init__(self, store: Store | None) -> None:
        self.keeper = Keeper(store)
        self._store = store

    @property
    def hint(self) -> str:
        """What to do where the check was interrupted."""
        return "" if self._store is None else f" The same call goes on from the checkpoint '{self._store.folder}'."

    def agree(
        self, call: Mapping[str, Any], model: Model, fit: Fit | None, plan: Plan, arguments: Arguments
    ) -> tuple[Plan, Arguments]:
        """Note what the call is, or compare it with the one that made the checkpoint; return its plan with its seed.

        Raises
        ------
        InvalidArgumentError
            It is another call, or the checkpoint cannot be written.
        """
        if self._store is None:
            return plan, arguments
        now = _specification(model, fit, plan, arguments)
        before = self._specification()
        if before is None:
            self._begin(call, now)
            return plan, arguments
        if arguments.random_seed is None:
            now |= {name: before[name] for name in ("seed", "random_seed")}
        differences = list(_differences(before, now))
        if differences:
            raise InvalidArgumentError(
                f"checkpoint '{self._store.folder}' is of another call: {'; '.join(differences)}. Make the call that "
                "it is of, or name another checkpoint."
            )
        if now["unknown"] or before.get("unknown"):
            self._store.clear()
            self._begin(call, now)
        return replace(plan, root=before["seed"]), replace(arguments, random_seed=before["random_seed"])

    def _begin(self, call: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Note what the call is, and say so if a later one cannot be compared with it."""
        assert self._store is not None
        self._store.put(CALL, _packed(call), must=True)
        for name in SPECIFICATIONS:
            self._store.put(name, now, must=True)
        if now["unknown"]:
            more = f" and {len(now['unknown']) - 1} more" if len(now["unknown"]) > 1 else ""
            warnings.warn(
                f"A later call cannot be compared with that of the checkpoint '{self._store.folder}', for bread cannot "
                f"look into {now['unknown'][0]}{more}, to which the call refers. So every call begins anew. What is "
                "made inside the function that uses it does no harm.",
                CheckpointWarning,
                stacklevel=5,
            )

    def _specification(self) -> dict[str, Any] | None:
        """Return what the checkpoint is of; None for a new one."""
        assert self._store is not None
        for name in SPECIFICATIONS:
            found = self._store.get(name)
            if found is not None:
                specification: dict[str, Any] = found.value
                return specification
        if self._store.names() <= {CALL}:
            return None
        raise InvalidArgumentError(
            f"checkpoint '{self._store.folder}' is damaged: it does not say which call it is of. Name another, and the "
            "check begins anew."
        )

    def report(self) -> Report | None:
        """Return the report of a check that had finished; None where there is none."""
        found = None if self._store is None else self._store.get(FINISHED)
        if found is None and self._store is not None and self._store.is_read_only:
            raise InvalidArgumentError(
                f"checkpoint '{self._store.folder}' cannot be written, and its check has not finished. Copy it to a "
                "folder that can be written, and name that."
            )
        return None if found is None else found.value

    def finish(self, report: Any) -> None:
        """Keep the report, and write it where `bread.verdict` and others find it."""
        if self._store is None:
            return
        self.keeper.finish()
        self._store.put(FINISHED, report)
        file = self._store.folder / REPORT
        unfinished = file.with_name(f".{REPORT}.{os.getpid()}")
        try:
            report.to_netcdf(unfinished)
            os.replace(unfinished, file)
        except Exception as error:  # libraries raise what they like where a disk is full
            warnings.warn(f"The report cannot be written to '{file}': {error}", CheckpointWarning, stacklevel=3)
        finally:
            unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def open_checkpoint(path: Any) -> Iterator[Checkpoint]:
    """Give the checkpoint at ``path``, locked; with None one that keeps nothing.

    Raises
    ------
    InvalidArgumentError
        ``path`` is no path, or what is there is no checkpoint, damaged as a whole or in use.
    """
    if path is None:
        yield Checkpoint(None)
        return
    store = Store(folder_of(path))
    try:
        yield Checkpoint(store)
    finally:
        store.close()


def folder_of(path: Any) -> Path:
    """Return the folder that ``checkpoint=`` names."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(path, bytes) or not os.fspath(path):
        raise InvalidArgumentError(f"checkpoint must be None or the path of a folder, got {received(path)}.")
    return Path(os.path.expanduser(path))


# -- what the call is ---------------------------------------------------------------------------------------------


def _specification(model: Model, fit: Fit | None, plan: Plan, arguments: Arguments) -> dict[str, Any]:
    data = model.info.data
    values = {**{name: values for name, (_, values) in data.constants.items()}, **data.observed}
    objects = {name: getattr(arguments, name) for name in _OBJECTS}
    objects["path"] = plan.path.reference or arguments.path_kind
    settings = {name: value for name, value in arguments.settings(plan).items() if name not in _FREE}
    digests = Digests()
    described = {
        "options": settings,
        "objects": {name: digests.of(_content(value)) for name, value in objects.items() if value is not None},
        "model": digests.of(model.fingerprint()),
        "data": {name: _described(value) for name, value in values.items()},
        "coords": {name: _described(value) for name, value in data.coords.items()},
        "posterior": None if fit is None else digest((fit.draws, dict(fit.data))),
        "seed": plan.root,
        "random_seed": arguments.random_seed,
    }
    return {**described, "unknown": list(digests.unknown), "versions": _versions(model, digests.packages)}


def _versions(model: Model, met: Iterable[str]) -> dict[str, str]:
    """Return the versions of what computes, and of the packages that code of the user's refers to."""
    ours = {"bread": __version__, "Python": platform.python_version(), "BLAS": _blas()}
    theirs = dict(_version(package) for package in sorted(met) if package not in _WITHOUT_VERSION)
    return {**theirs, **ours, **{name: version(name) for name in _PACKAGES}, **model.info.identity.versions}


def _version(package: str) -> tuple[str, str]:
    """Return a package's name and version; Python knows it by another name than importers do, or not at all."""
    try:
        return package, version(package)
    except PackageNotFoundError:
        names = packages_distributions().get(package)
        return (names[0], version(names[0])) if names else (package, "unknown")


def _blas() -> str:
    """Return the linear algebra that NumPy and SciPy call: other packages may have loaded their own."""
    import scipy.linalg  # noqa: F401 - its library is loaded with it

    found = [one for one in ThreadpoolController().info() if one["user_api"] == "blas"]
    theirs = [one for one in found if any(part.startswith(_CALLERS) for part in Path(one["filepath"]).parts)]
    return ", ".join(sorted({f"{one['internal_api']} {one['version']}" for one in theirs or found}))


def _content(value: Any) -> Any:
    return Path(value).read_bytes() if _is_file(value) else value


def _is_file(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and os.path.isfile(value)


def _described(values: NDArray[Any]) -> tuple[tuple[int, ...], str]:
    values = np.asarray(values)
    return values.shape, digest(values)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two calls, in words."""
    yield from _changed(before["options"], now["options"], "{name} ({before!r} in the checkpoint, {now!r} now)")
    said = {name for name in _OBJECTS if before["options"].get(name) != now["options"].get(name)}
    for name in _OBJECTS:
        if name not in said and before["objects"].get(name) != now["objects"].get(name):
            yield f"{name} (of the same type, with other content)"
    if before["model"] != now["model"]:
        yield "model (its program or graph)"
    for what, title in (("data", "data"), ("coords", "coordinates")):
        names = dict.fromkeys([*before[what], *now[what]])
        for name in names:
            old, new = before[what].get(name), now[what].get(name)
            if old != new:
                yield f"{title} {name!r} ({_how(old, new)})"
    if before["posterior"] != now["posterior"]:
        yield f"posterior ({_given(before['posterior'])} in the checkpoint, {_given(now['posterior'])} now)"
    if before["seed"] != now["seed"]:
        yield f"random_seed ({before['seed']} in the checkpoint, {now['seed']} now)"
    yield from _changed(
        before["versions"], now["versions"], "version of {name} ({before} in the checkpoint, {now} now)"
    )


def _changed(before: Mapping[str, Any], now: Mapping[str, Any], words: str) -> Iterator[str]:
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            yield words.format(name=name, before=before.get(name), now=now.get(name))


def _how(old: Any, new: Any) -> str:
    if old is None or new is None:
        return "not in the checkpoint" if old is None else "in the checkpoint, missing now"
    return f"shape {old[0]} in the checkpoint, {new[0]} now" if old[0] != new[0] else "other values"


def _given(posterior: str | None) -> str:
    return "none" if posterior is None else f"draws {posterior[:8]}"


# -- the call itself, for `bread.resume` --------------------------------------------------------------------------


class StoredFile:
    """A file of the caller's: its name and content."""

    def __init__(self, path: Any) -> None:
        self.name, self.content = Path(path).name, Path(path).read_bytes()


def _packed(call: Mapping[str, Any]) -> bytes | str:
    """Return the pickled call, files with their content; where it cannot be pickled, why."""
    try:
        packed: bytes = cloudpickle.dumps(
            {name: _with_files(value) if name in _FILES else value for name, value in call.items()}
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return packed


def _with_files(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_with_files(item) for item in value]
    if not isinstance(value, (str, os.PathLike)) or not os.path.exists(value):
        return value
    if not os.path.isfile(value) or b"#include" in Path(value).read_bytes():  # what stands beside it is needed, too
        return os.path.abspath(value)
    return StoredFile(value)
