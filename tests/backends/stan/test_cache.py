"""The build cache: one build per key, kills, corruption, size; and what enters the key."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from bread.backends.stan.language.messages import StanBuildError
from bread.backends.stan.native.cache import IN_USE_SECONDS, MARK, default_cache
from bread.errors import BreadError
from tests.support.builds import cache_in, wait_for, write

BUILDER = """
    import sys, time
    from pathlib import Path
    from bread.backends.stan.native.cache import BuildCache

    def build(folder):
        (folder / "half").write_text("unfinished")
        with open(sys.argv[1] + "/builds", "a") as log:
            log.write("built\\n")
        time.sleep(float(sys.argv[2]))
        (folder / "result").write_text("finished")

    print(BuildCache(Path(sys.argv[1]) / "cache", 10**9).get("key", "result", build).read_text())
"""


def unwanted(folder: Path) -> None:
    raise AssertionError("built again")


def start_builder(folder: Path, seconds: float) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(BUILDER), str(folder), str(seconds)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


# ---- entries -------------------------------------------------------------------------------------------------


def test_a_build_is_made_once(tmp_path: Path) -> None:
    path = cache_in(tmp_path).get("key", "result", write())
    assert path.read_text() == "finished"
    assert cache_in(tmp_path).get("key", "result", unwanted) == path
    assert cache_in(tmp_path).keys() == ["key"]


def test_a_failed_build_leaves_no_entry(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "result").write_text("half")
        raise StanBuildError("no memory")

    with pytest.raises(StanBuildError, match="no memory"):
        cache_in(tmp_path).get("key", "result", fail)
    assert not list((tmp_path / "cache" / "building").iterdir())
    assert cache_in(tmp_path).get("key", "result", write()).read_text() == "finished"


DAMAGED_MARKS = {
    "bad mark": b"{",
    "another kind of mark": b'["result"]',
    "an empty mark": b"",
    "a binary mark": bytes(range(256)),
    "a deep mark": b"[" * 200_000,
    "another checksum": b'{"result": "0"}',
}


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed", "unmarked", "a folder", *DAMAGED_MARKS])
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, damage: str) -> None:
    path = cache_in(tmp_path).get("key", "result", write("first"))
    mark = path.with_name(MARK)
    if damage in DAMAGED_MARKS:
        mark.write_bytes(DAMAGED_MARKS[damage])
    elif damage in ("unmarked", "a folder"):
        mark.unlink()
        if damage == "a folder":
            mark.mkdir()
    elif damage == "removed":
        path.unlink()
    else:
        path.write_text("fiRst" if damage == "changed" else "")
    assert cache_in(tmp_path).get("key", "result", write("second")).read_text() == "second"
    assert cache_in(tmp_path).get("key", "result", unwanted).read_text() == "second"


def test_two_processes_build_once(tmp_path: Path) -> None:
    builders = [start_builder(tmp_path, 1.0) for _ in range(2)]
    assert [builder.communicate(timeout=60)[0].strip() for builder in builders] == ["finished"] * 2
    assert (tmp_path / "builds").read_text() == "built\n"


def test_a_kill_during_a_build_leaves_a_usable_cache(tmp_path: Path) -> None:
    killed = start_builder(tmp_path, 600.0)
    wait_for(lambda: list((tmp_path / "cache").glob("building/key-*/half")))
    waiting = start_builder(tmp_path, 0.0)
    time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    assert waiting.communicate(timeout=60)[0].strip() == "finished"
    assert (tmp_path / "builds").read_text() == "built\n" * 2
    assert not list((tmp_path / "cache" / "building").iterdir())
    assert cache_in(tmp_path).get("key", "result", unwanted).read_text() == "finished"


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    cache, text = cache_in(tmp_path, 3500), "x" * 1000
    for age, key in ((4, "oldest"), (3, "used again"), (2, "old")):
        mark = cache.get(key, "result", write(text)).with_name(MARK)
        os.utime(mark, (time.time() - age * IN_USE_SECONDS,) * 2)
    cache.get("used again", "result", unwanted)
    cache.get("new", "result", write(text))
    assert cache.keys() == ["old", "used again", "new"]
    assert not (tmp_path / "cache" / "oldest").exists()


def test_entries_in_use_are_kept_whatever_the_size(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, 100)
    for key in ("first", "second"):
        cache.get(key, "result", write("x" * 1000))
    assert cache.keys() == ["first", "second"]


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BREAD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "bread" in default_cache().folder.parts
    monkeypatch.setenv("BREAD_CACHE", str(tmp_path / "chosen"))
    assert default_cache().folder == tmp_path / "chosen"


# ---- folders that are not as usual --------------------------------------------------------------------------------


def refuse(*arguments: object, **options: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_a_folder_that_is_only_read_gives_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache_in(tmp_path).get("key", "result", write())
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert cache_in(tmp_path).get("key", "result", unwanted) == path


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(BreadError, match=r"cannot be written \(Permission denied\).*BREAD_CACHE") as caught:
        cache_in(tmp_path).get("key", "result", write())
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_in_place_of_the_folder_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("BREAD_CACHE", str(file))
    with pytest.raises(BreadError, match=r"cannot be written \(Not a directory\).*BREAD_CACHE"):
        default_cache().get("key", "result", write())
    assert file.read_text() == "no folder"


def test_a_user_without_a_home_is_told_to_name_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BREAD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where there is no home
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BreadError, match=r"no home folder.*BREAD_CACHE"):
        default_cache()
    assert not list(tmp_path.iterdir())


def test_the_folder_may_have_any_name_and_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BREAD_CACHE", "mémoire à part 缓存")
    cache = default_cache()
    monkeypatch.chdir("/")
    path = cache.get("key", "result", write())
    assert path.read_text() == "finished" and path.is_relative_to(tmp_path / "mémoire à part 缓存")


def test_entries_that_another_process_removes_do_not_disturb(tmp_path: Path) -> None:
    """Entries come and go while they are listed and counted; seen to fail within a second."""
    cache, stopped = cache_in(tmp_path, 100), threading.Event()

    def come_and_go() -> None:
        while not stopped.is_set():
            for number in range(20):
                entry = tmp_path / "cache" / f"entry-{number}"
                entry.mkdir(parents=True, exist_ok=True)
                (entry / MARK).write_text("{}")
            for number in range(20):
                shutil.rmtree(tmp_path / "cache" / f"entry-{number}")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for number in range(200):
            cache.get(f"key-{number % 5}", "result", write(), content=str(number))
            cache.find("none", "result")
            (tmp_path / "cache" / f"key-{number % 5}" / MARK).unlink()
    finally:
        stopped.set()
        thread.join()


def test_what_killed_builds_left_is_removed_by_any_later_build(tmp_path: Path) -> None:
    killed, building = start_builder(tmp_path, 600.0), tmp_path / "cache" / "building"
    wait_for(lambda: list(building.glob("key-*/half")))
    cache_in(tmp_path).get("other", "result", write())
    assert list(building.glob("key-*/half"))  # it lives
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    cache_in(tmp_path).get("third", "result", write())
    assert not list(building.iterdir())


def test_waiting_for_another_build_can_be_stopped(tmp_path: Path) -> None:
    builder = start_builder(tmp_path, 600.0)
    wait_for(lambda: list((tmp_path / "cache").glob("building/key-*/half")))
    with pytest.raises(StanBuildError, match="was stopped"):
        cache_in(tmp_path).get("key", "result", unwanted, is_stopped=lambda: True)
    builder.send_signal(signal.SIGKILL)
    builder.communicate(timeout=60)


# ---- builds with a compiler that only keeps a record -----------------------------------------------------------


# ---- a real build --------------------------------------------------------------------------------------------
