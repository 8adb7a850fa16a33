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
from bread.running.store import DATABASE, Store

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


OPEN = "import sys, pathlib\nfrom bread.running.store import Store\nStore(pathlib.Path(sys.argv[1]))"


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
