"""Temporary folders that do not outlive the process that made them, however it ends.

A process that is killed cannot clean up. So a folder carries a lock that the operating system releases, and the next
process that needs a folder removes those whose lock is free.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "bread-run-"
OWNER = "owner.lock"
UNOWNED_SECONDS = 3600.0  # a folder without a lock is of a process that was killed between two instructions

_is_swept = threading.Event()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a temporary folder that is removed after the block, or by a later process if this one is killed."""
    if not _is_swept.is_set():
        _is_swept.set()
        sweep_folders()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = -1
    try:
        lock = _own(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock >= 0:
            os.close(lock)


def sweep_folders() -> None:
    """Remove this user's folders whose owner is gone; where a system has no file locks, none are removed."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and _is_left_over(folder, status.st_mtime):
                shutil.rmtree(folder, ignore_errors=True)


def _own(folder: Path) -> int:
    """Lock the folder; it bears the lock's name only once the lock is held, so that nobody finds it free."""
    if fcntl is None:
        return -1
    unnamed = folder / f"{OWNER}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.replace(unnamed, folder / OWNER)
    return lock


def _is_left_over(folder: Path, changed: float) -> bool:
    try:
        lock = os.open(folder / OWNER, os.O_RDWR)
    except FileNotFoundError:
        return time.time() - changed > UNOWNED_SECONDS
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
