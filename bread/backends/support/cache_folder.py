"""Where what takes long to make is kept between processes."""

from __future__ import annotations

import os
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
        return Path(chosen).absolute()
    try:
        folder = user_cache_path("bread") / "stan"
    except RuntimeError:  # newer versions of platformdirs; older ones leave "~" as it is
        folder = Path("~")
    if not folder.is_absolute():
        raise BreadError(
            "Compiled Stan programs are kept in your cache folder, but this user has no home folder. Set the "
            "environment variable BREAD_CACHE to a folder that you may write."
        )
    return folder
