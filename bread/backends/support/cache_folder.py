"""Where what takes long to make is kept between processes."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

from platformdirs import user_cache_path

from bread.errors import BreadError


def cache_folder() -> Path:
    """Return the folder of this user: ``$BREAD_CACHE``, else in the user's cache folder of the operating system.

    Raises
    ------
    BreadError
        There is neither.
    """
    chosen = os.environ.get("BREAD_CACHE")
    if chosen:
        return _told(Path(chosen).absolute())
    try:
        folder = user_cache_path("bread") / "stan"
    except RuntimeError:  # newer versions of platformdirs; older ones leave "~" as it is
        folder = Path("~")
    if not folder.is_absolute():
        raise BreadError(
            "Compiled Stan programs are kept in your cache folder, but this user has no home folder. Set the "
            "environment variable BREAD_CACHE to a folder that you may write."
        )
    return _told(folder)


def _told(folder: Path) -> Path:
    """Return the folder; warn where others can put programs into it, since what it holds is run."""
    try:
        found = folder.stat()
    except OSError:  # not there yet
        return folder
    if not hasattr(os, "getuid"):  # Windows
        return folder
    is_own_group = found.st_gid == found.st_uid == os.getuid()  # a group of one, as many systems make for each user
    if found.st_uid not in (0, os.getuid()):
        reason = "belongs to another user"
    elif found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not is_own_group):
        reason = "can be written by other users"
    else:
        return folder
    warnings.warn(
        f"The cache folder {folder} {reason}, who can put programs there that bread runs. Run chmod go-w on it, or set "
        "the environment variable BREAD_CACHE to a folder that only you may write.",
        UserWarning,
        stacklevel=2,
    )
    return folder
