"""What people say about a run: tags and comments on units and messages, and the labels of blind raters.

They stand in RUN.notes.sqlite beside the run: the run itself is never touched, and whoever copies the folder has both.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

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
CREATE TABLE IF NOT EXISTS sets (
    id INTEGER PRIMARY KEY, seed INTEGER NOT NULL, items TEXT NOT NULL, chosen TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS labels (
    nth_set INTEGER NOT NULL, unit TEXT NOT NULL, rater TEXT NOT NULL, subject TEXT NOT NULL, metric TEXT NOT NULL,
    value REAL, text TEXT, at REAL NOT NULL, PRIMARY KEY (nth_set, unit, rater, subject, metric)
) WITHOUT ROWID;
"""
APPLICATION = 0x5041524E
"""SQLite's application id: 'PARN'."""


class NotesError(ParleyError):
    """Notes that cannot be kept or read."""


class Notes:
    def __init__(self, run: Path) -> None:
        self.path = run.with_name(run.name.removesuffix(".sqlite") + ".notes.sqlite")

    def version(self) -> int:
        """Changes with every note; 0 where there are none."""
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return 0

    def _open(self, *, write: bool = False) -> GuardedConnection | None:
        """None for reading where nobody has said anything yet: reading makes no file."""
        try:
            if _is_empty(self.path):
                if not write:
                    return None
                with closing(sqlite3.connect(self.path, isolation_level=None, timeout=10)) as new:
                    new.executescript(SCHEMA)
                    new.execute(f"PRAGMA application_id = {APPLICATION}")
            db = open_to_read(self.path)
            _refuse_if_not_notes(db)
            if write:
                db.close()
                db = open_to_write(self.path)
                db.limit_work()
            db.row_factory = sqlite3.Row
            return db
        except (NotOpened, sqlite3.Error, OSError) as error:
            raise self._error("written" if write else "read", error) from None

    def _error(self, wanted: str, error: Exception) -> NotesError:
        if isinstance(error, NotOpened):
            return NotesError(f"{self.path.name} {error}")
        return NotesError(f"{self.path.name} cannot be {wanted}: {error}")

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        db = self._open()
        if db is None:
            return []
        try:
            with closing(db):
                rows = [dict(row) for row in db.execute(sql, values).fetchmany(db.size())]
                db.refuse_if_changed()
                return rows
        except (NotOpened, sqlite3.Error, UnicodeError) as error:
            raise self._error("read", error) from None

    def _write(self, sql: str, values: Sequence[Any]) -> int:
        db = self._open(write=True)
        assert db is not None
        try:
            with closing(db):
                return int(db.execute(sql, values).lastrowid or 0)
        except sqlite3.Error as error:
            raise self._error("written", error) from None

    def add(self, unit: str, seq: int | None, author: str, tag: str, comment: str) -> int:
        return self._write(
            "INSERT INTO notes (unit, seq, author, tag, comment, at) VALUES (?, ?, ?, ?, ?, ?)",
            (unit, seq, author, tag, comment, time.time()),
        )

    def withdraw(self, note: int) -> None:
        """It is no longer shown; it stays in the file."""
        self._write("UPDATE notes SET withdrawn_at = ? WHERE id = ?", (time.time(), note))

    def of(self, unit: str | None = None) -> list[dict[str, Any]]:
        """The notes on a unit and its messages, or all."""
        return self._rows(
            "SELECT id, unit, seq, author, tag, comment, at FROM notes "
            "WHERE withdrawn_at IS NULL AND (?1 IS NULL OR unit = ?1) ORDER BY id",
            (unit,),
        )

    def tags(self) -> dict[str, list[str]]:
        """The units that carry each tag."""
        found: dict[str, list[str]] = {}
        for row in self._rows(
            "SELECT DISTINCT tag, unit FROM notes WHERE withdrawn_at IS NULL AND tag != '' ORDER BY tag"
        ):
            found.setdefault(row["tag"], []).append(row["unit"])
        return found

    def new_set(self, seed: int, items: Sequence[str], chosen: Mapping[str, Any]) -> int:
        return self._write(
            "INSERT INTO sets (seed, items, chosen, at) VALUES (?, ?, ?, ?)",
            (seed, json.dumps(list(items)), json.dumps(dict(chosen)), time.time()),
        )

    def sets(self) -> list[dict[str, Any]]:
        found = self._rows("SELECT id, seed, items, chosen, at FROM sets ORDER BY id")
        try:
            return [{**row, "items": json.loads(row["items"]), "chosen": json.loads(row["chosen"])} for row in found]
        except (ValueError, TypeError, RecursionError):
            raise NotesError(f"{self.path.name} is damaged: a set to label cannot be read") from None

    def label(
        self, nth: int, unit: str, rater: str, given: Sequence[tuple[str, str, float | None, str | None]]
    ) -> None:
        """All a rater says about one item: (subject, metric, value, text)…, in one transaction."""
        db = self._open(write=True)
        assert db is not None
        try:
            with closing(db):
                db.execute("BEGIN IMMEDIATE")
                db.executemany(
                    "INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (nth, unit, rater, subject, metric, value, text, time.time())
                        for subject, metric, value, text in given
                    ],
                )
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._error("written", error) from None

    def labels(self, nth: int | None = None) -> list[dict[str, Any]]:
        return self._rows(
            'SELECT nth_set AS "set", unit, rater, subject, metric, value, text, at FROM labels '
            "WHERE ?1 IS NULL OR nth_set = ?1 ORDER BY nth_set, at",
            (nth,),
        )


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True


def _refuse_if_not_notes(db: sqlite3.Connection) -> None:
    """Before anything is read or written: whoever sends a run can send notes with it."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise NotOpened("is there but holds no notes of Parley's")
    known = entries_of(SCHEMA)
    if missing := {name for _, name, _, _ in known} - refuse_foreign_schema(db, known):
        raise NotOpened(f"is damaged (no such table: {min(missing)})")
