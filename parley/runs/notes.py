"""Notes: tags and comments on units and messages.

They are stored in RUN.notes.sqlite next to the run. The run file itself is never changed, and a copy of the folder
contains both.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from parley.agents import ParleyError
from parley.runs.opening import (
    GuardedConnection,
    NotOpened,
    entries_of,
    open_to_read,
    open_to_write,
    refuse_foreign_schema,
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY, unit TEXT NOT NULL, seq INTEGER, author TEXT NOT NULL, tag TEXT NOT NULL,
    comment TEXT NOT NULL, at REAL NOT NULL, withdrawn_at REAL
);
"""
APPLICATION_ID = 0x5041524E
"""SQLite's application id: 'PARN'."""
READ = "read"
"""The tag of units that somebody has read, in an order that nobody chose."""
PATIENCE_SECONDS = 5.0
"""How long a reader waits for writers."""
T = TypeVar("T")


class NotesError(ParleyError):
    """Notes that cannot be written or read."""


def runs_in(folder: Path) -> list[Path]:
    """The run files of a folder and of those in it, without the notes on them."""
    return sorted(path for path in folder.rglob("*.sqlite") if not path.stem.endswith(".notes") and path.is_file())


class NotesFile:
    """The notes of one run.

    Args:
        run: the run file; its notes need not exist yet.
    """

    def __init__(self, run: Path) -> None:
        self.path = run.with_name(run.name.removesuffix(".sqlite") + ".notes.sqlite")

    def version(self) -> int:
        """Changes with every note; 0 where there are none."""
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return 0

    def _open(self) -> GuardedConnection | None:
        """Open and check the file for reading; None if there are no notes yet, since reading creates no file."""
        try:
            if self.path.is_symlink():
                raise NotOpened("is a link, and is not opened: notes are next to their run")
            if not self.path.exists() or not self.path.stat().st_size:
                return None
            db = open_to_read(self.path)
            if not db.execute("PRAGMA page_count").fetchone()[0]:  # whoever wrote the first note was stopped
                db.close()
                return None
            _refuse_if_not_notes(db)
            db.row_factory = sqlite3.Row
            return db
        except (NotOpened, sqlite3.Error, UnicodeError, OSError) as error:
            raise self._error("read", error) from None

    def _error(self, wanted: str, error: Exception) -> NotesError:
        if isinstance(error, NotOpened):
            return NotesError(f"{self.path.name} {error}")
        if isinstance(error, UnicodeError):  # SQLite's message quotes what is damaged
            return NotesError(f"{self.path.name} is damaged: its tables cannot be read")
        return NotesError(f"{self.path.name} cannot be {wanted}: {error}")

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        return self._patiently(lambda: self._read(sql, values))

    def _patiently(self, read: Callable[[], T]) -> T:
        """Read again if someone stores a note meanwhile, since several people may use one file."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            before = self.version()
            try:
                return read()
            except NotesError:
                being_written = self.path.with_name(f"{self.path.name}-journal").exists()
                if time.monotonic() > end or (self.version() == before and not being_written):
                    raise
                time.sleep(random.uniform(0, 0.02))  # not all readers at once

    def _read(self, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        db = self._open()
        if db is None:
            return []
        try:
            with closing(db):
                rows = [dict(row) for row in db.execute(sql, values).fetchmany(db.size())]
                db.refuse_if_changed()
                if any(isinstance(value, bytes) for row in rows for value in row.values()):
                    raise NotOpened("is damaged: it contains bytes in place of text")
                return rows
        except (NotOpened, sqlite3.Error, UnicodeError) as error:
            raise self._error("read", error) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The file, for one transaction, which also makes the table of the first note."""
        if checked := self._patiently(self._open):  # opening it for writing may change a file that is not ours
            checked.close()
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666))
            with closing(open_to_write(self.path)) as db, db:
                db.execute("BEGIN IMMEDIATE")
                if not self.path.stat().st_size:
                    db.execute(SCHEMA)
                    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                _refuse_if_not_notes(db)
                yield db
        except (NotOpened, sqlite3.Error, UnicodeError, OSError) as error:
            raise self._error("written", error) from None

    def add(self, unit: str, seq: int | None, author: str, tag: str, comment: str) -> int:
        """Add a note and return its id.

        Args:
            unit: the unit's id.
            seq: the message's number, or None for a note on the whole unit.
            author: the author's name, or "".
            tag: a tag, or "".
            comment: a comment, or "".
        """
        with self._writing() as db:
            cursor = db.execute(
                "INSERT INTO notes (unit, seq, author, tag, comment, at) VALUES (?, ?, ?, ?, ?, ?)",
                (unit, seq, author, tag, comment, time.time()),
            )
            return int(cursor.lastrowid or 0)

    def withdraw(self, note: int) -> None:
        """Stop showing a note. It stays in the file."""
        with self._writing() as db:
            db.execute("UPDATE notes SET withdrawn_at = ? WHERE id = ?", (time.time(), note))

    def notes(self, unit: str | None = None) -> list[dict[str, Any]]:
        """The notes on a unit and its messages, or all notes of the run.

        Older versions stored a run's name, group and tags here, as notes without a unit.
        """
        return self._rows(
            "SELECT id, unit, seq, author, tag, comment, at FROM notes "
            "WHERE withdrawn_at IS NULL AND unit != '' AND (?1 IS NULL OR unit = ?1) ORDER BY id",
            (unit,),
        )

    def units_by_tag(self) -> dict[str, list[str]]:
        units: dict[str, list[str]] = {}
        for row in self._rows(
            "SELECT DISTINCT tag, unit FROM notes WHERE withdrawn_at IS NULL AND tag != '' AND unit != '' ORDER BY tag"
        ):
            units.setdefault(row["tag"], []).append(row["unit"])
        return units


def mixed(position: int) -> int:
    """A number to sort units by at random, always in the same order: MurmurHash3's finaliser of the unit's position.

    The viewer's `mixed` (units.js) gives the same numbers.
    """
    number = position + 1
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        number = (number ^ number >> shift) * factor & 0xFFFFFFFF
    return number ^ number >> 16


def _refuse_if_not_notes(db: sqlite3.Connection) -> None:
    """Check before reading or writing: notes can come with a run from anywhere."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise NotOpened("is not a notes file")
    entries = entries_of(SCHEMA)
    if missing := {name for _, name, _, _ in entries} - refuse_foreign_schema(db, entries):
        raise NotOpened(f"is damaged (no such table: {min(missing)})")
