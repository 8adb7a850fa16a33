"""Write a page: whole or not at all, and never over a file that is something else."""

from __future__ import annotations

import os
from pathlib import Path

from bread.errors import BreadError, InvalidArgumentError

_BEGINNING = b"<!doctype html>"


def require_writable(path: Path) -> None:
    """Raise unless a page can be written there; checked before anything long is computed.

    Raises
    ------
    InvalidArgumentError
        The folder is not there, or takes no files; the path is a folder, or a file that is no page.
    """
    if not path.absolute().parent.is_dir():
        raise InvalidArgumentError(f"The folder {path.absolute().parent} does not exist. Make it, or name another.")
    if os.path.isdir(path):
        raise InvalidArgumentError(f"'{path}' is a folder. Name a file in it, such as '{path / 'report.html'}'.")
    if os.path.exists(path) and not _is_page(path):  # pathlib's raises at a name that is too long
        raise InvalidArgumentError(f"'{path}' is there and is no HTML page, so it is not replaced. Name another file.")
    if not os.path.exists(path) or path.is_file():
        unfinished = _unfinished(path)
        try:
            unfinished.write_bytes(b"")
            unfinished.unlink()
        except OSError as error:
            raise InvalidArgumentError(f"No page can be written to '{path}': {error}. Name another file.") from error


def _is_page(path: Path) -> bool:
    """Return whether a file is empty or a page; what is no plain file (a pipe, /dev/stdout) is written as it is."""
    if not path.is_file():
        return True
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_BEGINNING) + 8).lstrip(b"\xef\xbb\xbf \r\n\t").lower()
    except OSError:
        return False
    return not beginning or beginning.startswith(_BEGINNING[: len(beginning)])


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def write_page(text: str, path: Path) -> None:
    """Write a page; a page that is there is replaced by a whole one.

    Raises
    ------
    InvalidArgumentError
        See `require_writable`.
    BreadError
        It cannot be written.
    """
    require_writable(path)
    content = text.encode("utf-8", errors="replace")
    unfinished = _unfinished(path)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    except OSError as error:
        raise BreadError(f"The page cannot be written to {path}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
