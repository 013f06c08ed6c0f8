"""The tables of run files."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from importlib.resources import files

from parley.runs.opening import NotOpened, SchemaEntry, entries_of, refuse_foreign_schema

FORMAT = 3
"""Raised when the tables change. A file of another format is refused."""
APPLICATION_ID = 0x5041524C
"""SQLite's application id: 'PARL'."""
TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events", "checks")
"""The tables that every run file has."""
BATCH_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches (mark TEXT PRIMARY KEY, model TEXT NOT NULL, file TEXT NOT NULL, batch TEXT, "
    "made_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS batched (request TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID",
)
"""Tables that only `--executor batch` creates."""
PENDING_TABLE = (
    "CREATE TABLE IF NOT EXISTS pending_replies (unit TEXT NOT NULL, address BLOB NOT NULL, reply TEXT NOT NULL, "
    "PRIMARY KEY (unit, address)) WITHOUT ROWID"
)
"""A table that only `--no-cache` creates, for units that are not done (see `parley.runs.pending`)."""


@lru_cache(maxsize=1)
def statements() -> tuple[str, ...]:
    """The statements that create a run file."""
    script = files("parley.runs").joinpath("schema.sql").read_text("utf-8")
    return tuple(part for statement in script.split(";\n") if (part := statement.strip()))


@lru_cache(maxsize=1)
def known_entries() -> frozenset[SchemaEntry]:
    """All that SQLite may list in a run file."""
    return entries_of(";\n".join((*statements(), *BATCH_TABLES, PENDING_TABLE)))


def check_run(db: sqlite3.Connection) -> set[str]:
    """Raise unless the file is a run that this version can read, with nothing in it that is not ours.

    Returns the names of its tables and of its view.
    """
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID or version < 1:
        raise NotOpened("is not a Parley run file")
    if version != FORMAT:
        age = "a newer" if version > FORMAT else "an older"
        raise NotOpened(f"was written by {age} Parley (format {version}; this one reads format {FORMAT})")
    tables = refuse_foreign_schema(db, known_entries())
    if missing := [name for name in (*TABLES, "transcript") if name not in tables]:
        raise NotOpened(f"is damaged or truncated (no such table: {missing[0]})")
    return tables


def prepare_to_write(db: sqlite3.Connection) -> None:
    """Set the journal for writing."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("BEGIN IMMEDIATE")  # fails here, and not after the first reply, if the file is read-only
    db.execute("COMMIT")
