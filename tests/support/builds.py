"""A cache of builds, and waiting for them."""

from __future__ import annotations

import time
from pathlib import Path

from bread.backends.stan.native.cache import BuildCache


def cache_in(folder: Path, max_bytes: int = 10**9) -> BuildCache:
    return BuildCache(folder / "cache", max_bytes)


def write(text: str = "finished"):
    return lambda folder: (folder / "result").write_text(text) and None


def wait_for(condition, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.01)
