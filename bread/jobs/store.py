"""What a check has finished, on disk: an SQLite database in a folder, with one checksum an entry.

SQLite writes an entry whole or not at all, whatever kills the process, holds the lock that keeps a second process out
(the operating system releases it), and needs nothing installed. An entry whose checksum is wrong counts as missing; of
a file that is damaged in its structure the readable entries are kept. Values are pickles: reading them runs code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

from bread.errors import CheckpointWarning, InvalidArgumentError
from bread.jobs.store_log import read_log
from bread.scratch import scratch_folder

DATABASE = "checkpoint.sqlite"
REPORT = "report.nc"
APPLICATION = 0x62726431  # "brd1": in the header of the file
MOST_ENTRIES = 10_000_000  # a place beyond is damage
BUSY_SECONDS = 1.0  # a process that was killed holds its lock a moment longer
_TABLE = "CREATE TABLE entries (name TEXT PRIMARY KEY, checksum BLOB NOT NULL, value BLOB NOT NULL)"


class Found(NamedTuple):
    """An entry."""

    value: Any


class Store:
    """The entries of a checkpoint, by name. Holds its lock until it is closed.

    Parameters
    ----------
    folder : Path
        Made where it is missing. It must be empty, or a checkpoint.
    must_exist : bool
        Refuse a folder that is no checkpoint yet.

    Raises
    ------
    InvalidArgumentError
        It is something else, another process uses it, it is damaged as a whole, or it cannot be written.
    """

    def __init__(self, folder: Path, *, must_exist: bool = False) -> None:
        self.folder = folder
        self.unwritten = 0  # entries that could not be written
        self._is_damage_said = False
        self.is_read_only = False  # then it is a copy that is read
        self._open = contextlib.ExitStack()
        self._file = folder / DATABASE
        made = self._require_usable(must_exist)
        try:
            self._database = self._opened()
        except InvalidArgumentError:  # the path is too long for SQLite, say: leave nothing behind
            for one in made:
                with contextlib.suppress(OSError):  # it is not empty
                    one.rmdir()
            raise

    def close(self) -> None:
        """Release the lock."""
        with contextlib.suppress(sqlite3.Error):  # where the disk is full, what was written is in the log beside it
            self._database.close()
        self._open.close()

    def names(self) -> set[str]:
        """Return the names of all entries."""
        return {name for (name,) in self._database.execute("SELECT name FROM entries")}

    def get(self, name: str) -> Found | None:
        """Return an entry; None where it is missing, or damaged, which is said once."""
        try:
            row = self._database.execute("SELECT checksum, value FROM entries WHERE name = ?", (name,)).fetchone()
        except sqlite3.DatabaseError as error:
            self._damaged(f"of at least one entry SQLite says '{error}'")
            return None
        if row is None:
            return None
        checksum, packed = row
        if not isinstance(packed, bytes) or _checksum(name, packed) != checksum:
            self._damaged("of at least one entry its checksum is wrong")
            return None
        try:
            return Found(pickle.loads(packed))
        except Exception as error:  # made by code that has changed
            self._damaged(f"at least one entry cannot be read: {type(error).__name__}: {error}")
            return None

    def put(self, name: str, value: Any, *, must: bool = False) -> None:
        """Write an entry: it is on disk when this returns.

        Where that fails, a warning says so once; an entry without which the checkpoint is none ``must`` be written.
        """
        packed = cloudpickle.dumps(value)
        try:
            _insert(self._database, name, packed)
        except (sqlite3.Error, OSError) as error:
            if must:
                raise self._unwritable(error) from error
            self.unwritten += 1
            if self.unwritten == 1:
                warnings.warn(
                    f"The checkpoint '{self.folder}' cannot be written ({error}). The check goes on, and what is in "
                    "the checkpoint stays valid; what could not be written would run again. Is the disk full?",
                    CheckpointWarning,
                    stacklevel=2,
                )

    def clear(self) -> None:
        """Remove all entries."""
        try:
            self._database.execute("DELETE FROM entries")
        except sqlite3.Error as error:
            raise self._unwritable(error) from error

    def _damaged(self, why: str) -> None:
        if not self._is_damage_said:
            self._is_damage_said = True
            warnings.warn(
                f"The checkpoint '{self.folder}' is damaged: {why}. What is lost is computed again, with the same "
                "result.",
                CheckpointWarning,
                stacklevel=3,
            )

    # -- open -------------------------------------------------------------------------------------------------

    def _require_usable(self, must_exist: bool) -> list[Path]:
        """Make the folder where it is missing; return the folders made, the innermost first."""
        try:
            if self._file.is_file():
                return []
            is_other = self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir()))
        except (OSError, ValueError) as error:  # too long; a character that no path may have
            raise self._unwritable(error) from error
        rule = "checkpoint must be a folder that bread makes, or one that it made"
        if must_exist:
            raise InvalidArgumentError(f"There is no checkpoint at '{self.folder}'. {rule}.")
        if is_other:
            raise InvalidArgumentError(
                f"{rule}: '{self.folder}' is something else. Name a folder that is not there yet."
            )
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError, RecursionError) as error:  # too deep
            raise self._unwritable(error) from error
        return missing

    def _opened(self) -> sqlite3.Connection:
        if self._file.is_file() and not (os.access(self._file, os.W_OK) and os.access(self.folder, os.W_OK)):
            self._copy()
        log = read_log(self._logs(self._file)[0])
        database = self._connected(self._file)
        n_lost = log.lost(self._n_read)
        if n_lost:
            self._damaged(f"its write-ahead log is not whole, and {_entries(n_lost)} lost")
        try:
            (damage,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            damage = str(error)
        if damage == "ok":
            return database
        return self._salvaged(database, damage)

    def _copy(self) -> None:
        """Read a copy where the checkpoint cannot be written: SQLite needs a log beside what it reads."""
        place = self._open.enter_context(scratch_folder())
        for file in (self._file, self._logs(self._file)[0]):
            if file.is_file():
                shutil.copyfile(file, place / file.name)
        self._file, self.is_read_only = place / DATABASE, True

    def _connected(self, file: Path) -> sqlite3.Connection:
        """Connect and take the lock."""
        try:
            database = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._unwritable(error) from error
        try:
            database.execute("PRAGMA writable_schema = ON")  # or a file that lacks its end is not opened
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            (application,) = database.execute("PRAGMA application_id").fetchone()
            (is_new,) = database.execute("SELECT count(*) = 0 FROM sqlite_master").fetchone()
            if application != APPLICATION and not is_new:
                raise InvalidArgumentError(f"'{file}' is a database of something else, and no checkpoint of bread.")
            database.execute("BEGIN IMMEDIATE")  # this takes the lock; a full disk is no hindrance
            if is_new:
                database.execute(f"PRAGMA application_id = {APPLICATION}")
                database.execute(_TABLE)
            database.execute("COMMIT")
            _, self._n_read, _ = database.execute("PRAGMA wal_checkpoint").fetchone()
        except sqlite3.DatabaseError as error:
            database.close()
            raise self._refused(error) from error
        except InvalidArgumentError:
            database.close()
            raise
        return database

    def _salvaged(self, database: sqlite3.Connection, damage: str) -> sqlite3.Connection:
        """Return a new database with the entries of a damaged one that can be read."""
        fresh = self._file.with_name(f"{DATABASE}.new")
        for left_over in (fresh, *self._logs(fresh)):
            left_over.unlink(missing_ok=True)
        kept = sqlite3.connect(fresh, isolation_level=None)
        kept.execute(f"PRAGMA application_id = {APPLICATION}")
        kept.execute("BEGIN")
        kept.execute(_TABLE)
        places = _places(database)
        found = dict(_readable(database, max(places, default=0)))
        for name, packed in found.items():
            _insert(kept, name, packed)
        kept.execute("COMMIT")
        kept.close()
        database.close()
        for log in self._logs(self._file):
            log.unlink(missing_ok=True)
        os.replace(fresh, self._file)
        lost = (
            f"{_entries(len(places) - len(found))} lost of {len(places)}" if len(places) > len(found) else "none lost"
        )
        self._damaged(f"SQLite says '{damage.splitlines()[-1]}', and {lost if found else 'its entries cannot be read'}")
        return self._connected(self._file)

    @staticmethod
    def _logs(file: Path) -> list[Path]:
        return [file.with_name(f"{file.name}-{kind}") for kind in ("wal", "shm", "journal")]

    def _refused(self, error: sqlite3.DatabaseError) -> InvalidArgumentError:
        text = str(error)
        if "locked" in text:
            return InvalidArgumentError(
                f"The checkpoint '{self.folder}' is in use by another check. Wait until it ends, or name another."
            )
        if "not a database" in text or "malformed" in text:
            return InvalidArgumentError(
                f"The checkpoint '{self.folder}' is damaged as a whole ({text}). Remove the folder, or name another, "
                "and the check begins anew."
            )
        return self._unwritable(error)

    def _unwritable(self, error: Exception) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"The checkpoint '{self.folder}' cannot be written ({error}). Name a folder that can be, on a disk with "
            "room. Nothing was computed."
        )


def _insert(database: sqlite3.Connection, name: str, packed: bytes) -> None:
    values = (name, _checksum(name, packed), packed)
    database.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", values)


def _checksum(name: str, packed: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + packed).digest()


def _entries(number: int) -> str:
    return f"{number} {'entry is' if number == 1 else 'entries are'}"


def _places(database: sqlite3.Connection) -> set[int]:
    """Return the places of all entries that the table or its index still tells of."""
    found: set[int] = set()
    for source in ("NOT INDEXED ORDER BY rowid", "INDEXED BY sqlite_autoindex_entries_1 ORDER BY name"):
        for order in ("ASC", "DESC"):
            with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError):
                found.update(place for (place,) in database.execute(f"SELECT rowid FROM entries {source} {order}"))
    return {place for place in found if 0 < place <= MOST_ENTRIES}


def _readable(database: sqlite3.Connection, last: int) -> Iterator[tuple[str, bytes]]:
    """Yield the whole entries, each looked for on its own: a page that is lost takes no others with it."""
    for place in range(1, last + 1):
        with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError):
            row = database.execute("SELECT name, checksum, value FROM entries WHERE rowid = ?", (place,)).fetchone()
            if row and isinstance(row[0], str) and isinstance(row[2], bytes) and _checksum(row[0], row[2]) == row[1]:
                yield row[0], row[2]
