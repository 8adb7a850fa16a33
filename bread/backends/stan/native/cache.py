"""A folder of finished builds that survives kills, concurrent builds and corrupted files, and stays small.

An entry is a folder named by a key. It is built elsewhere, moved into place as a whole, and marked last by a file with
the checksum of what was built; an entry without a matching mark does not count. Locks are per key and are released by
the operating system when a process dies.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bread.backends.stan.language.messages import StanBuildError
from bread.backends.support.cache_folder import cache_folder
from bread.errors import BreadError

# Environment variable: Stan's headers are compiled once (g++; 0.64 GB), and programs faster from then on.
PRECOMPILE = "BREAD_PRECOMPILE"
SIZE, LARGER_SIZE = 500_000_000, 2_000_000_000  # bytes; the larger one holds headers too
MARK = "complete.json"
CONTENT = "content"  # in the mark, beside the checksum of the file
WAIT_SECONDS = 0.2  # for a lock, before looking whether the check was stopped meanwhile
IN_USE_SECONDS = 3600.0  # an entry used this recently is not removed


@dataclass(frozen=True)
class BuildCache:
    """A cache of builds.

    Parameters
    ----------
    folder : Path
        Made when it is needed.
    max_bytes : int
        Entries used least recently are removed beyond this size.
    """

    folder: Path
    max_bytes: int

    def get(
        self,
        key: str,
        name: str,
        build: Callable[[Path], None],
        *,
        content: str = "",
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Path:
        """Return the file ``name`` of the entry ``key``; build it first if it is not there.

        Of several processes or threads that ask for one key, one builds and the others wait. An entry that is there is
        used from a folder that cannot be written, too.

        Parameters
        ----------
        key : str
            Identifies everything that the build depends on; a file name.
        name : str
            The file that ``build`` writes into the folder that it is given.
        build : callable
            Its exceptions pass through and leave no entry.
        content : str
            What the entry can be found by where the key is not known: see `find`.
        is_stopped : callable
            Asked now and then while another process builds; a true answer ends the wait with StanBuildError.

        Returns
        -------
        Path

        Raises
        ------
        BreadError
            The entry is not there, and the folder cannot be written.
        """
        found = self._finished(key, name, content)
        if found is not None:
            return found
        with self._waiting(key, is_stopped):
            found = self._finished(key, name, content)
            if found is not None:
                return found
            work = self._begin(key)
            try:
                build(work)
                self._finish(work, key, name, content)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        self._prune(key)
        return self.folder / key / name

    def find(self, content: str, name: str) -> Path | None:
        """Return the file ``name`` of the newest entry with this content, whatever else its build depended on."""
        for key in reversed(self.keys()):
            mark = _read(self.folder / key / MARK)
            if mark.get(CONTENT) == content and name in mark:
                found = self._finished(key, name)
                if found is not None:
                    return found
        return None

    def keys(self) -> list[str]:
        """Return the keys of marked entries, the one used least recently first."""
        used = {}
        for name in os.listdir(self.folder) if self.folder.is_dir() else ():
            with contextlib.suppress(OSError):  # no entry, or one that another process has just removed
                used[name] = (self.folder / name / MARK).stat().st_mtime
        return sorted(used, key=used.__getitem__)

    def _finished(self, key: str, name: str, content: str = "") -> Path | None:
        path, mark = self.folder / key / name, self.folder / key / MARK
        read = _read(mark)
        try:
            if read.get(name) != _checksum(path):
                return None
        except OSError:
            return None
        with contextlib.suppress(OSError):  # a folder that is only read keeps no account of its use
            if content and CONTENT not in read:  # of an earlier version
                _write(mark, {**read, CONTENT: content})
            os.utime(mark)
        return path

    # -- build ------------------------------------------------------------------------------------------------

    def _begin(self, key: str) -> Path:
        """Return a new folder to build in, and remove those of processes that were killed."""
        building = self.folder / "building"
        with self._writing():
            building.mkdir(exist_ok=True)
            # A new folder every time: a compiler that outlives its killed parent writes into the old one.
            work = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=building))
        for left_over in building.iterdir():
            owner = left_over.name.rpartition("-")[0]
            if owner == key and left_over != work:  # this process holds the lock
                shutil.rmtree(left_over, ignore_errors=True)
            elif owner != key:
                with contextlib.suppress(OSError, Timeout), self._lock(owner, timeout=0):
                    shutil.rmtree(left_over, ignore_errors=True)
        return work

    def _finish(self, work: Path, key: str, name: str, content: str) -> None:
        """Move what was built into place, and mark it."""
        entry = self.folder / key
        with self._writing():
            shutil.rmtree(entry, ignore_errors=True)
            os.replace(work, entry)
            _write(entry / MARK, {name: _checksum(entry / name), CONTENT: content})

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Say what to do where the folder cannot be written."""
        try:
            yield
        except (OSError, NotImplementedError) as error:  # no locks on this file system
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise BreadError(
                f"Compiled Stan programs are kept in {self.folder}, which cannot be written ({reason}), and this "
                "program is not in it. Set the environment variable BREAD_CACHE to a folder that you may write."
            ) from error

    @contextlib.contextmanager
    def _waiting(self, key: str, is_stopped: Callable[[], bool]) -> Iterator[None]:
        """Hold the lock of a key; wait for it as long as another process builds."""
        with self._writing():
            lock = self._lock(key, WAIT_SECONDS)
            while True:
                try:
                    lock.acquire()
                    break
                except Timeout:
                    if is_stopped():
                        raise StanBuildError("The build was stopped.") from None
        try:
            yield
        finally:
            lock.release()

    def _lock(self, key: str, timeout: float) -> FileLock:
        locks = self.folder / "locks"
        if not self.folder.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{key}.lock", timeout=timeout)

    def _prune(self, keep: str) -> None:
        sizes = {key: _size(self.folder / key) for key in self.keys()}
        total = sum(sizes.values())
        for key, size in sizes.items():
            if total <= self.max_bytes:
                return
            mark = self.folder / key / MARK
            try:
                if key == keep or time.time() - mark.stat().st_mtime < IN_USE_SECONDS:
                    continue
                with self._lock(key, timeout=0):
                    mark.unlink()
                    shutil.rmtree(self.folder / key, ignore_errors=True)
            except (OSError, Timeout):  # in use by another process
                continue
            total -= size


def default_cache() -> BuildCache:
    """Return the cache of this user, in `cache_folder`.

    Raises
    ------
    BreadError
        The user has no such folder.
    """
    return BuildCache(cache_folder(), max_bytes=LARGER_SIZE if os.environ.get(PRECOMPILE) else SIZE)


def _read(mark: Path) -> dict[str, Any]:
    """Return what a mark says; nothing where it is missing or damaged."""
    try:
        read = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _write(mark: Path, content: dict[str, Any]) -> None:
    unfinished = mark.with_name(f"{MARK}.{os.getpid()}-{threading.get_ident()}")
    unfinished.write_text(json.dumps(content), encoding="utf-8")
    os.replace(unfinished, mark)


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _size(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # another process has just removed it
                size += os.stat(os.path.join(parent, name)).st_size
    return size
