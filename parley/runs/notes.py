"""Notes and blind labels: tags and comments on units and messages, and the scores of human raters.

They are stored in RUN.notes.sqlite beside the run. The run file itself is never changed, and a copy of the folder
contains both.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
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
APPLICATION_ID = 0x5041524E
"""SQLite's application id: 'PARN'."""


class NotesError(ParleyError):
    """Notes that cannot be written or read."""


class NotesFile:
    """The notes and labels of one run.

    Args:
        run: the run file; its notes need not exist yet.
    """

    def __init__(self, run: Path) -> None:
        self.path = run.with_name(run.name.removesuffix(".gz").removesuffix(".sqlite") + ".notes.sqlite")

    def version(self) -> int:
        """Changes with every note; 0 where there are none."""
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return 0

    def _open(self, *, write: bool = False) -> GuardedConnection | None:
        """The file, checked; None for reading where there are no notes yet, since reading creates no file."""
        try:
            if _is_empty(self.path):
                if not write:
                    return None
                with closing(sqlite3.connect(self.path, isolation_level=None, timeout=10)) as new:
                    new.executescript(SCHEMA)
                    new.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db = open_to_read(self.path)
            _refuse_if_not_notes(db)
            if write:
                db.close()
                db = open_to_write(self.path)
            db.row_factory = sqlite3.Row
            return db
        except (NotOpened, sqlite3.Error, UnicodeError, OSError) as error:
            raise self._error("written" if write else "read", error) from None

    def _error(self, wanted: str, error: Exception) -> NotesError:
        if isinstance(error, NotOpened):
            return NotesError(f"{self.path.name} {error}")
        if isinstance(error, UnicodeError):  # SQLite's message quotes what is damaged
            return NotesError(f"{self.path.name} is damaged: its tables cannot be read")
        return NotesError(f"{self.path.name} cannot be {wanted}: {error}")

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
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
        db = self._open(write=True)
        assert db is not None, "opened for writing, the file is created"
        try:
            with closing(db):
                yield db
        except (sqlite3.Error, UnicodeError) as error:
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
        """The notes on a unit and its messages, or all notes of the run."""
        return self._rows(
            "SELECT id, unit, seq, author, tag, comment, at FROM notes "
            "WHERE withdrawn_at IS NULL AND (?1 IS NULL OR unit = ?1) ORDER BY id",
            (unit,),
        )

    def units_by_tag(self) -> dict[str, list[str]]:
        units: dict[str, list[str]] = {}
        for row in self._rows(
            "SELECT DISTINCT tag, unit FROM notes WHERE withdrawn_at IS NULL AND tag != '' ORDER BY tag"
        ):
            units.setdefault(row["tag"], []).append(row["unit"])
        return units

    def add_set(self, seed: int, items: Sequence[str], filters: Mapping[str, Any]) -> int:
        """Add a set of units to label and return its id; `filters` are those it was drawn with."""
        with self._writing() as db:
            cursor = db.execute(
                "INSERT INTO sets (seed, items, chosen, at) VALUES (?, ?, ?, ?)",
                (seed, json.dumps(list(items)), json.dumps(dict(filters)), time.time()),
            )
            return int(cursor.lastrowid or 0)

    def sets(self) -> list[dict[str, Any]]:
        rows = self._rows("SELECT id, seed, items, chosen, at FROM sets ORDER BY id")
        try:
            sets = [{**row, "items": json.loads(row["items"]), "chosen": json.loads(row["chosen"])} for row in rows]
            if all(isinstance(unit, str) for label_set in sets for unit in label_set["items"]):
                return sets
        except (ValueError, TypeError, RecursionError):
            pass
        raise NotesError(f"{self.path.name} is damaged: a set to label cannot be read")

    def add_labels(
        self, set_id: int, unit: str, rater: str, labels: Sequence[tuple[str, str, float | None, str | None]]
    ) -> None:
        """Store one rater's labels of one item, (subject, metric, value, text)…, in one transaction."""
        now = time.time()
        with self._writing() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(set_id, unit, rater, *label, now) for label in labels],
            )
            db.execute("COMMIT")

    def labels(self, set_id: int | None = None) -> list[dict[str, Any]]:
        """The labels of one set, or all labels of the run."""
        rows = self._rows(
            'SELECT nth_set AS "set", unit, rater, subject, metric, value, text, at FROM labels '
            "WHERE ?1 IS NULL OR nth_set = ?1 ORDER BY nth_set, at",
            (set_id,),
        )
        if any(not isinstance(row["value"], int | float | None) for row in rows):
            raise NotesError(f"{self.path.name} is damaged: a label's score is not a number")
        return rows


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True


def _refuse_if_not_notes(db: sqlite3.Connection) -> None:
    """Before anything is read or written: notes can come with a run from anywhere."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise NotOpened("is not a notes file")
    known = entries_of(SCHEMA)
    if missing := {name for _, name, _, _ in known} - refuse_foreign_schema(db, known):
        raise NotOpened(f"is damaged (no such table: {min(missing)})")
