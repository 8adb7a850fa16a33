"""The store of a checkpoint: entries that are whole or missing, whatever happens to the file; one process at a time."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from bread.errors import CheckpointWarning, InvalidArgumentError
from bread.jobs.store import DATABASE, Store

N_ENTRIES = 60


def filled(folder: Path) -> dict[str, np.ndarray]:
    """Fill a store; return what is in it."""
    rng = np.random.default_rng(1)
    values = {f"task {number}": rng.normal(size=int(rng.integers(1, 400))) for number in range(N_ENTRIES)}
    store = Store(folder)
    for name, value in values.items():
        store.put(name, value)
    store.close()
    return values


def read(folder: Path, values: dict[str, np.ndarray]) -> tuple[int, list[str]]:
    """Return how many entries are there, each of which must be right, and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = Store(folder, must_exist=True)
        try:
            found = {name: store.get(name) for name in values}
            store.put("another", 1)
            assert store.get("another") is not None
        finally:
            store.close()
    for name, entry in found.items():
        if entry is not None:
            np.testing.assert_array_equal(entry.value, values[name])
    return sum(entry is not None for entry in found.values()), [str(one.message) for one in caught]


def test_what_is_put_is_got(tmp_path):
    values = filled(tmp_path / "run")
    assert read(tmp_path / "run", values) == (N_ENTRIES, [])
    store = Store(tmp_path / "run")
    store.put("task 3", None)  # None is a value
    entry = store.get("task 3")
    assert entry is not None and entry.value is None
    assert store.get("task -1") is None
    store.close()


def test_a_changed_entry_counts_as_missing(tmp_path):
    values = filled(tmp_path)
    with sqlite3.connect(tmp_path / DATABASE) as database:
        database.execute("UPDATE entries SET value = substr(value, 1, 50) WHERE name = 'task 7'")  # truncated
        (packed,) = database.execute("SELECT value FROM entries WHERE name = 'task 9'").fetchone()
        flipped = packed[:-9] + bytes([packed[-9] ^ 1]) + packed[-8:]  # a bit of a number
        database.execute("UPDATE entries SET value = ? WHERE name = 'task 9'", (flipped,))
        database.execute("UPDATE entries SET name = 'task 11 ' WHERE name = 'task 11'")  # of another task
        database.execute("UPDATE entries SET name = 'task 11' WHERE name = 'task 12'")
    database.close()
    n_found, said = read(tmp_path, values)
    assert n_found == N_ENTRIES - 4
    assert len(said) == 1 and "damaged" in said[0] and "checksum is wrong" in said[0] and "again" in said[0]


@pytest.mark.parametrize("damage", ["flip", "truncate", "zero"])
def test_a_damaged_file_gives_right_entries_or_says_that_it_is_damaged(tmp_path, damage):
    values = filled(tmp_path)
    whole = (tmp_path / DATABASE).read_bytes()
    rng = np.random.default_rng(2)
    n_found = []
    for _ in range(40):
        place = int(rng.integers(len(whole)))
        damaged = bytearray(whole)
        if damage == "flip":
            damaged[place] ^= 1 << int(rng.integers(8))
        elif damage == "zero":
            damaged[place : place + 300] = bytes(300)
        else:
            del damaged[place:]
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / DATABASE).write_bytes(damaged)
        try:
            found, said = read(tmp_path, values)
        except InvalidArgumentError as error:
            assert "damaged as a whole" in str(error)
            continue
        n_found.append(found)
        # nothing was said where nothing was lost, or where the index alone has lost an entry
        assert found == N_ENTRIES or said or damage == "flip"
    assert len(n_found) >= (0 if damage == "truncate" else 30)
    if damage == "flip":
        assert np.median(n_found) >= N_ENTRIES - 2  # one bit costs little


def test_an_empty_file_is_a_new_checkpoint(tmp_path):
    (tmp_path / DATABASE).touch()
    store = Store(tmp_path)
    assert store.names() == set()
    store.close()


OPEN = "import sys, pathlib\nfrom bread.jobs.store import Store\nStore(pathlib.Path(sys.argv[1]))"


def test_one_process_at_a_time(tmp_path):
    store = Store(tmp_path / "run")
    with pytest.raises(InvalidArgumentError, match=r"in use by another check\. Wait"):
        Store(tmp_path / "run")
    done = subprocess.run([sys.executable, "-c", OPEN, tmp_path / "run"], capture_output=True, text=True, check=False)
    assert "in use by another check" in done.stderr
    store.put("task", 1)
    store.close()
    assert subprocess.run([sys.executable, "-c", OPEN, tmp_path / "run"], check=False).returncode == 0


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("chapter")
    with pytest.raises(InvalidArgumentError, match=r"is something else\. Name a folder that is not there yet"):
        Store(tmp_path)
    with pytest.raises(InvalidArgumentError, match="is something else"):
        Store(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InvalidArgumentError, match="There is no checkpoint at"):
        Store(tmp_path / "nowhere", must_exist=True)
    assert not (tmp_path / "nowhere").exists()


def test_another_database_is_refused_and_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / DATABASE) as database:
        database.execute("CREATE TABLE songs (name TEXT)")
    database.close()
    with pytest.raises(InvalidArgumentError, match="a database of something else"):
        Store(tmp_path)
    with sqlite3.connect(tmp_path / DATABASE) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    database.close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match=r"cannot be written .*Nothing was computed"):
        Store(tmp_path / "file" / "run")


def with_few_pages(connect):
    def connected(*arguments, **named):
        database = connect(*arguments, **named)
        database.execute("PRAGMA max_page_count = 60")  # then SQLite says that the disk is full
        return database

    return connected


def test_a_disk_that_is_full_costs_what_is_written_then(tmp_path, monkeypatch):
    values = filled(tmp_path)
    monkeypatch.setattr(sqlite3, "connect", with_few_pages(sqlite3.connect))
    store = Store(tmp_path)
    with pytest.warns(CheckpointWarning, match=r"cannot be written \(database or disk is full\).*goes on") as said:
        store.put("large", np.zeros(100_000))
        store.put("large too", np.zeros(100_000))
    assert len(said) == 1 and store.unwritten == 2
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        store.put("specification", np.zeros(100_000), must=True)
    store.close()
    assert read(tmp_path, values) == (N_ENTRIES, [])


def test_a_file_without_its_last_page_loses_what_was_on_it(tmp_path):
    values = filled(tmp_path)
    whole = (tmp_path / DATABASE).read_bytes()
    (tmp_path / DATABASE).write_bytes(whole[:-4096])
    n_found, said = read(tmp_path, values)
    assert N_ENTRIES - 4 <= n_found < N_ENTRIES
    assert len(said) == 1 and f"{N_ENTRIES - n_found} " in said[0] and f"lost of {N_ENTRIES}" in said[0]


def test_pages_lost_in_the_middle_take_no_others_with_them(tmp_path):
    values = filled(tmp_path)
    damaged = bytearray((tmp_path / DATABASE).read_bytes())
    for page in (10, len(damaged) // 4096 - 10):
        damaged[page * 4096 : page * 4096 + 4096] = bytes(4096)
    (tmp_path / DATABASE).write_bytes(damaged)
    n_found, said = read(tmp_path, values)
    assert n_found >= N_ENTRIES - 8 and len(said) == 1


LEAVE = """
import os, sys, numpy as np
from bread.jobs.store import Store
from pathlib import Path
store = Store(Path(sys.argv[1]))
for number in range(20):
    store.put(f"task {number}", np.full(50, number))
os._exit(0)  # the log stays
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The files of a process that was killed: all entries are in the log."""
    folder = tmp_path_factory.mktemp("left") / "run"
    subprocess.run([sys.executable, "-c", LEAVE, folder], check=True)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("place", ["none", "header", "first", "middle", "last", "torn"])
def test_a_log_that_is_damaged_is_said(tmp_path, left, place):
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    log = tmp_path / f"{DATABASE}-wal"
    damaged = bytearray(left[log.name])
    where = {"header": 17, "first": 32 + 24 + 9, "middle": len(damaged) // 2, "last": len(damaged) - 9}
    if place in where:
        damaged[where[place]] ^= 1
    if place == "torn":  # killed in the middle of a write: what was on disk is whole
        del damaged[-5000:]
    log.write_bytes(damaged)
    n_found, said = read(tmp_path, {f"task {number}": np.full(50, number) for number in range(20)})
    assert (n_found == 20) == (place == "none") or place == "torn"
    assert len(said) == (place not in ("none", "torn"))
    if said:
        assert "write-ahead log is not whole" in said[0]


READ = """
import ctypes, os, sys
for capability in (1, 2, 3):  # the superuser may write everywhere
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
"""
ENTRIES = (
    "import sys; from pathlib import Path; from bread.jobs.store import Store; s = Store(Path(sys.argv[1])); "
    "print(len(s.names()), s.get('task 3') is not None, s.is_read_only); s.close()"
)


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_cannot_be_written_can_be_read(tmp_path, left, is_killed):
    folder = tmp_path / "run"
    folder.mkdir()
    for name, content in left.items():
        (folder / name).write_bytes(content)
    if not is_killed:
        Store(folder).close()
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = subprocess.run([sys.executable, "-c", READ, ENTRIES, folder], capture_output=True, text=True, check=False)
    folder.chmod(0o755)
    assert done.stdout == "20 True True\n", done.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize(
    "name", ["a\0b", "a" * 300, "/".join(["a"] * 400), "/".join(["a"] * 1900), "a/" * 5000], ids=len
)
def test_a_path_that_cannot_be_is_said(tmp_path, name):
    with pytest.raises(InvalidArgumentError, match="cannot be written") as refused:
        Store(tmp_path / name)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
