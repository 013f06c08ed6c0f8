"""Notes and blind labels: tags and comments on units and messages, and the scores of human raters.

They are stored in RUN.notes.sqlite next to the run. The run file itself is never changed, and a copy of the folder
contains both.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

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
CREATE TABLE IF NOT EXISTS draws (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, seed INTEGER NOT NULL, settings TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS items (
    draw INTEGER NOT NULL, unit TEXT NOT NULL, text_id TEXT NOT NULL, probability REAL, position INTEGER,
    PRIMARY KEY (draw, unit)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (
    draw INTEGER NOT NULL, unit TEXT NOT NULL, rater TEXT NOT NULL, subject TEXT NOT NULL, question TEXT NOT NULL,
    value REAL, judge_value REAL, text TEXT, comment TEXT NOT NULL, position INTEGER, simulated INTEGER NOT NULL,
    at REAL NOT NULL, PRIMARY KEY (draw, unit, rater, subject, question)
) WITHOUT ROWID;
"""
APPLICATION_ID = 0x5041524E
"""SQLite's application id: 'PARN'."""
PATIENCE_SECONDS = 5.0
"""How long a reader waits for those who write."""
DrawKind: TypeAlias = Literal["random", "sorted", "given"]
"""How items are drawn: at random, with probabilities; the most disputed first; or chosen by somebody, in an import."""


class Item(NamedTuple):
    """A unit that could be drawn.

    Args:
        unit: The unit.
        text_id: The digest of what raters see of it, which is the same for units that differ only in their label.
        probability: The probability with which the draw contains its text; None where it was not drawn at random.
        position: Its place in the draw; None if it was not drawn, or another unit with the same text was.
    """

    unit: str
    text_id: str
    probability: float | None
    position: int | None


class Answer(NamedTuple):
    """A rater's answer to one question.

    Args:
        subject: Which text of the item: A or B, or a speaker; empty if there is only one, or for a choice.
        question: The metric of the verdicts that answer the same question.
        value: A score from 0 to 10; for a choice between A and B 1, 0 or 0.5 (tie), for one between options its number;
            None for a skip.
        judge_value: The score on the judges' own scale; None where that is not known, or for a choice.
        text: The choice in words; None for a score.
    """

    subject: str
    question: str
    value: float | None
    judge_value: float | None
    text: str | None


class NotesError(ParleyError):
    """Notes that cannot be written or read."""


class NotesFile:
    """The notes and labels of one run.

    Args:
        run: the run file; its notes need not exist yet.
    """

    def __init__(self, run: Path) -> None:
        self.path = run.with_name(run.name.removesuffix(".sqlite") + ".notes.sqlite")
        self._together: sqlite3.Connection | None = None

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
        """The rows of a query, read again if somebody stores a note meanwhile: several raters use one file."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            before = self.version()
            try:
                return self._read(sql, values)
            except NotesError:
                if time.monotonic() > end or (self.version() == before and not self._is_being_written()):
                    raise
                time.sleep(random.uniform(0, 0.02))  # not all readers at once

    def _is_being_written(self) -> bool:
        return self.path.with_name(f"{self.path.name}-journal").exists()

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
        """The file, for one transaction, which may be that of `all_or_none`."""
        if self._together is not None:
            yield self._together
            return
        db = self._open(write=True)
        assert db is not None, "opened for writing, the file is created"
        try:
            with closing(db), db:
                db.execute("BEGIN IMMEDIATE")
                yield db
        except (sqlite3.Error, UnicodeError) as error:
            raise self._error("written", error) from None

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Store all that is stored inside in one transaction: an end in between leaves nothing of it."""
        with self._writing() as db:
            self._together = db
            try:
                yield
            finally:
                self._together = None

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

    def add_draw(self, kind: DrawKind, seed: int, items: Sequence[Item], settings: Mapping[str, Any]) -> int:
        """Store what was drawn and what it was drawn from, and return the draw's id.

        Args:
            kind: How the items were chosen.
            seed: The seed of the draw and of its raters' orders.
            items: Every unit that could have been drawn.
            settings: How many items were asked for, the floor and the filters.
        """
        with self._writing() as db:
            cursor = db.execute(
                "INSERT INTO draws (kind, seed, settings, at) VALUES (?, ?, ?, ?)",
                (kind, seed, json.dumps(dict(settings)), time.time()),
            )
            draw = int(cursor.lastrowid or 0)
            db.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", [(draw, *item) for item in items])
            return draw

    def draws(self) -> list[dict[str, Any]]:
        """All draws: id, kind, seed, settings, at."""
        rows = self._rows("SELECT id, kind, seed, settings, at FROM draws ORDER BY id")
        try:
            draws = [{**row, "settings": json.loads(row["settings"])} for row in rows]
            if all(isinstance(draw["settings"], dict) for draw in draws):
                return draws
        except (ValueError, TypeError, RecursionError):
            pass
        raise NotesError(f"{self.path.name} is damaged: a draw cannot be read")

    def items(self, draw: int) -> list[Item]:
        """Every unit that a draw could have drawn."""
        return [Item(row["unit"], row["text_id"], row["probability"], row["position"]) for row in self.drawn(draw)]

    def drawn(self, draw: int | None = None) -> list[dict[str, Any]]:
        """What a draw, or every draw, was drawn from: draw, unit, text_id, probability, position."""
        rows = self._rows(
            "SELECT draw, unit, text_id, probability, position FROM items WHERE ?1 IS NULL OR draw = ?1 "
            "ORDER BY draw, position IS NULL, position, unit",
            (draw,),
        )
        if any(not isinstance(row["probability"], int | float | None) for row in rows):
            raise NotesError(f"{self.path.name} is damaged: a probability is not a number")
        if any(not isinstance(row["position"], int | None) for row in rows):
            raise NotesError(f"{self.path.name} is damaged: a position is not a number")
        return rows

    def add_labels(
        self,
        draw: int,
        unit: str,
        rater: str,
        answers: Sequence[Answer],
        *,
        comment: str = "",
        position: int | None = None,
        simulated: bool = False,
        at: float | None = None,
    ) -> None:
        """Store one rater's answers about one item, in one transaction.

        Args:
            draw: The draw's id.
            unit: The unit that was shown.
            rater: The rater's name.
            answers: One per question; a skipped item has every question without a value.
            comment: What the rater wrote.
            position: The place of the item in the rater's order.
            simulated: True if no person answered.
            at: When it was answered; None for now.
        """
        now = time.time() if at is None else at
        with self._writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(draw, unit, rater, *answer, comment, position, simulated, now) for answer in answers],
            )

    def remove_labels(self, draw: int, unit: str, rater: str) -> None:
        """Take back a rater's answers about one item."""
        with self._writing() as db:
            db.execute("DELETE FROM labels WHERE draw = ? AND unit = ? AND rater = ?", (draw, unit, rater))

    def label_count(self) -> int:
        """How many answers raters gave; 0 where they cannot be read, which a report says."""
        try:
            return int(self._rows("SELECT count(*) AS count FROM labels")[0]["count"]) if self.version() else 0
        except (NotesError, IndexError):
            return 0

    def labels(self, draw: int | None = None) -> list[dict[str, Any]]:
        """The labels of one draw, or all labels of the run, each with its item's text id and probability."""
        rows = self._rows(
            "SELECT l.draw, l.unit, coalesce(i.text_id, l.unit) AS text_id, l.rater, l.subject, l.question, l.value, "
            "l.judge_value, l.text, l.comment, i.probability, l.position, l.simulated, l.at "
            "FROM labels l LEFT JOIN items i ON i.draw = l.draw AND i.unit = l.unit "
            "WHERE ?1 IS NULL OR l.draw = ?1 ORDER BY l.draw, l.at",
            (draw,),
        )
        for name in ("value", "judge_value", "probability", "at"):
            if any(not isinstance(row[name], int | float | None) for row in rows):
                raise NotesError(f"{self.path.name} is damaged: a label's {name} is not a number")
        return [{**row, "simulated": bool(row["simulated"])} for row in rows]


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
