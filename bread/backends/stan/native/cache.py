"""A folder of finished builds that survives kills, concurrent builds and corrupted files, and stays small.

An entry is a folder named by a key. It is built elsewhere, moved into place as a whole, and marked last by a file with
the checksum of what was built; an entry without a matching mark does not count. Locks are per key and are released by
the operating system when a process dies.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

MARK = "complete.json"
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

    def get(self, key: str, name: str, build: Callable[[Path], None]) -> Path:
        """Return the file ``name`` of the entry ``key``; build it first if it is not there.

        Of several processes or threads that ask for one key, one builds and the others wait.

        Parameters
        ----------
        key : str
            Identifies everything that the build depends on; a file name.
        name : str
            The file that ``build`` writes into the folder that it is given.
        build : callable
            Its exceptions pass through and leave no entry.

        Returns
        -------
        Path
        """
        found = self._finished(key, name)
        if found is not None:
            return found
        with self._lock(key):
            found = self._finished(key, name)
            if found is not None:
                return found
            self._build(key, name, build)
        self._prune(key)
        return self.folder / key / name

    def keys(self) -> list[str]:
        """Return the keys of marked entries, the one used least recently first."""
        marks = {mark.parent.name: mark.stat().st_mtime for mark in self.folder.glob(f"*/{MARK}")}
        return sorted(marks, key=marks.__getitem__)

    def _finished(self, key: str, name: str) -> Path | None:
        path, mark = self.folder / key / name, self.folder / key / MARK
        try:
            if json.loads(mark.read_text())[name] != _checksum(path):
                return None
            os.utime(mark)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return path

    def _build(self, key: str, name: str, build: Callable[[Path], None]) -> None:
        building = self.folder / "building"
        building.mkdir(exist_ok=True)
        for left_over in building.glob(f"{key}-*"):  # of a process that was killed: this one holds the lock
            shutil.rmtree(left_over, ignore_errors=True)
        # A new folder every time: a compiler that outlives its killed parent writes into the old one.
        work = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=building))
        try:
            build(work)
            entry = self.folder / key
            shutil.rmtree(entry, ignore_errors=True)
            os.replace(work, entry)
            unfinished = entry / f"{MARK}.new"
            unfinished.write_text(json.dumps({name: _checksum(entry / name)}))
            os.replace(unfinished, entry / MARK)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _lock(self, key: str, timeout: float = -1) -> FileLock:
        locks = self.folder / "locks"
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
    """Return the cache of this user: ``$BREAD_CACHE``, else the user's cache folder of the operating system."""
    chosen = os.environ.get("BREAD_CACHE")
    return BuildCache(Path(chosen) if chosen else user_cache_path("bread") / "stan", max_bytes=500_000_000)


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
