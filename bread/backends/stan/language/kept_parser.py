"""The parser of Stan programs, kept between processes: its tables take half a second to make, and 20 ms to read.

It is kept beside compiled programs, in a file that is moved into place as a whole, with a checksum: a file that is not
what was written, or cannot be read, is as good as none. Where none can be written, each process makes its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import tempfile
from pathlib import Path

import lark
from lark import Lark

from bread.backends.support.cache_folder import cache_folder
from bread.errors import BreadError

FOLDER = "grammar"


def read_parser(grammar: str) -> Lark:
    """Return the parser of a grammar: the one that is kept, if there is one, else a new one, which is then kept."""
    file = _file(grammar)
    parser = None if file is None else _kept(file)
    if parser is None:
        parser = Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)
        if file is not None:
            _keep(parser, file)
    return parser


def _file(grammar: str) -> Path | None:
    """Return where the parser is kept: by all that its tables depend on. None for a user without such a folder."""
    described = "\n".join([lark.__version__, sys.version, grammar])
    with contextlib.suppress(BreadError):
        return cache_folder() / FOLDER / hashlib.sha256(described.encode()).hexdigest()[:32]
    return None


def _kept(file: Path) -> Lark | None:
    try:
        written = file.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    if hashlib.sha256(written[size:]).digest() != written[:size]:
        return None
    return Lark.load(io.BytesIO(written[size:]))


def _keep(parser: Lark, file: Path) -> None:
    tables = io.BytesIO()
    parser.save(tables)
    with contextlib.suppress(OSError):
        file.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.parent.mkdir(exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=file.parent)  # one for each process and thread
        try:
            with open(handle, "wb") as written:
                written.write(hashlib.sha256(tables.getvalue()).digest() + tables.getvalue())
            os.replace(unfinished, file)
        except OSError:
            os.unlink(unfinished)
