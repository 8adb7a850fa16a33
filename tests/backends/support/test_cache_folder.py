"""A cache folder into which others can put programs is not used without a word."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from bread.backends.stan.language.kept_parser import read_parser
from bread.backends.stan.native.cache import BuildCache
from bread.backends.support import cache_folder as folders
from bread.backends.support.cache_folder import cache_folder

GRAMMAR = 'start: "a"'
USER = 1000


def owned(monkeypatch: pytest.MonkeyPatch, mode: int, user: int = USER, group: int = USER) -> None:
    """Let the folder have this owner and mode, and the process belong to `USER`."""
    found = SimpleNamespace(st_mode=0o40000 | mode, st_uid=user, st_gid=group)
    monkeypatch.setattr(folders.os, "getuid", lambda: USER)
    monkeypatch.setattr(folders.Path, "stat", lambda self: found)
    monkeypatch.setenv("BREAD_CACHE", "/nowhere/cache")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"mode": 0o777}, "can be written by other users"),
        ({"mode": 0o1777}, "can be written by other users"),
        ({"mode": 0o775, "group": 50}, "can be written by other users"),
        ({"mode": 0o700, "user": 1001}, "belongs to another user"),
    ],
)
def test_what_others_can_write_is_said(monkeypatch: pytest.MonkeyPatch, how: dict[str, int], reason: str) -> None:
    owned(monkeypatch, **how)
    with pytest.warns(UserWarning, match=f"^The cache folder /nowhere/cache {reason}, .* Run chmod go-w on it, or set"):
        assert cache_folder() == Path("/nowhere/cache")


@pytest.mark.parametrize(
    "how", [{"mode": 0o700}, {"mode": 0o755}, {"mode": 0o775}, {"mode": 0o755, "user": 0, "group": 0}]
)
def test_what_only_the_user_or_the_system_can_write_is_not(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, int]
) -> None:
    """A group of the user alone counts as the user; a folder of the system's is there for all to read."""
    owned(monkeypatch, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache_folder()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
@pytest.mark.parametrize("make", ["cache", "parser"])
def test_a_folder_that_is_made_is_the_users_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: str) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("BREAD_CACHE", str(folder))
    before = os.umask(0)
    try:
        if make == "cache":
            BuildCache(folder, 10**9).get("key", "result", lambda work: (work / "result").write_text("done") and None)
        else:
            read_parser(GRAMMAR)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o077 == 0
