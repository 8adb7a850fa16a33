"""What PyTensor has compiled travels with the model: no worker compiles it again, or waits for the compiler's lock.

PyTensor keeps one folder for each compiled module, and finds it by a key of source, compiler, its flags (those of the
processor among them) and versions. A folder that is copied to another machine is therefore used where it is right,
and nowhere else; what a worker lacks, it compiles.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import shutil
import sys
import tempfile
import zlib
from itertools import islice
from pathlib import Path
from typing import Any

import cloudpickle
import pytensor
from pytensor.link.c import cmodule

MOST_MODULES = 200  # those that were loaded last; a model has some twenty
_ALWAYS = ("cutils_ext", "lazylinker_ext")  # what PyTensor compiles for itself, without a key
_ENDINGS = (".so", ".pyd", ".pkl", ".py")  # the source, whose ending is .cpp, is not read again


class TravelsCompiled:
    """A model whose pickle holds, beside its state, the modules that this process has loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (packed_modules(), cloudpickle.dumps((type(self), self.__getstate__())))


def packed_modules() -> bytes:
    """Return the folders of the compiled modules that this process has loaded, by name, compressed."""
    folder = Path(pytensor.config.compiledir)
    names = reversed(_cache().module_from_name) if pytensor.config.cxx else ()
    loaded = [Path(file).parent for file in islice(names, MOST_MODULES)]
    found: dict[str, dict[str, bytes]] = {}
    for one in [*(folder / name for name in _ALWAYS), *reversed(loaded)]:
        with contextlib.suppress(OSError):  # somebody clears the cache: then the worker compiles
            found[one.name] = {file.name: file.read_bytes() for file in one.iterdir() if file.suffix in _ENDINGS}
    return zlib.compress(pickle.dumps((_platform(), found)))


def install_modules(packed: bytes) -> int:
    """Put modules in this process's compile folder, where it has none of that name; return how many were put there.

    A folder appears whole or not at all, so that no lock is needed and processes may do the same at a time.

    Parameters
    ----------
    packed : bytes
        Of `packed_modules`.
    """
    made_for, modules = pickle.loads(zlib.decompress(packed))
    folder = Path(pytensor.config.compiledir)
    if made_for != _platform() or not pytensor.config.cxx:  # without a compiler PyTensor looks for no modules
        return 0
    n_new = sum(_install(folder / name, files) for name, files in modules.items() if not (folder / name).exists())
    if n_new:
        _cache().refresh(cleanup=False)
    return n_new


def _install(place: Path, files: dict[str, bytes]) -> bool:
    """Write a folder beside its place, and rename it; False where it cannot be, or another process was first."""
    try:
        whole = Path(tempfile.mkdtemp(prefix=".bread-", dir=place.parent.parent))  # PyTensor does not look there
    except OSError:
        return False
    try:
        for name, content in files.items():
            (whole / name).write_bytes(content)
        whole.chmod(0o755)
        os.rename(whole, place)
    except OSError:
        shutil.rmtree(whole, ignore_errors=True)
        return False
    return True


def _cache() -> Any:
    """Return PyTensor's table of the compiled modules of its folder; it is read from the disk when first asked for."""
    return cmodule.get_module_cache(pytensor.config.compiledir)


def _platform() -> tuple[str, ...]:
    """Return what a compiled module needs that its key does not say."""
    return (sys.platform, platform.machine(), *platform.libc_ver(), str(sys.implementation.cache_tag))


def _rebuilt(modules: bytes, pickled: bytes) -> Any:
    install_modules(modules)
    kind, state = pickle.loads(pickled)
    model = object.__new__(kind)
    vars(model).update(state)
    return model
