"""The tables of run files, of every format that was ever written, and how an older one is completed."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from importlib.resources import files

from parley.runs.opening import NotOpened, SchemaEntry, entries_of, refuse_foreign_schema

FORMAT = 2
"""2: the table `calls` has the providers' prompt caches (`cached_tokens`, `written_tokens`)."""
APPLICATION_ID = 0x5041524C
"""SQLite's application id: 'PARL'."""
TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events")
"""The tables that every run file has."""
UPGRADE = (
    "ALTER TABLE calls ADD COLUMN cached_tokens INTEGER",
    "ALTER TABLE calls ADD COLUMN written_tokens INTEGER NOT NULL DEFAULT 0",
)
"""What makes format 2 of format 1."""
BATCH_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches (mark TEXT PRIMARY KEY, model TEXT NOT NULL, file TEXT NOT NULL, batch TEXT, "
    "made_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS batched (request TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID",
)
"""Tables that only `--executor batch` creates."""


@lru_cache(maxsize=1)
def statements() -> tuple[str, ...]:
    """The statements that create a run file of today."""
    script = files("parley.runs").joinpath("schema.sql").read_text("utf-8")
    return tuple(part for statement in script.split(";\n") if (part := statement.strip()))


@lru_cache(maxsize=1)
def known_entries() -> frozenset[SchemaEntry]:
    """All that SQLite may list in a run file: of format 1, of format 2, and of a format 1 that was upgraded."""
    new = ";\n".join((*statements(), *BATCH_TABLES))
    added = ("cached_tokens", "written_tokens")
    old = "".join(line for line in new.splitlines(keepends=True) if not line.strip().startswith(added))
    return entries_of(new) | entries_of(old) | entries_of(";\n".join((old, *UPGRADE)))


def checks_table() -> str:
    """For runs that were begun before there were checksums."""
    return next(statement for statement in statements() if "TABLE checks" in statement)


def check_run(db: sqlite3.Connection) -> set[str]:
    """Raise unless the file is a run that this version can read, with nothing in it that is not ours.

    Returns the names of its tables and of its view.
    """
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID or version < 1:
        raise NotOpened("is not a Parley run file")
    if version > FORMAT:
        raise NotOpened(f"was written by a newer Parley (format {version}, this one reads {FORMAT})")
    tables = refuse_foreign_schema(db, known_entries())
    if missing := [name for name in (*TABLES, "transcript") if name not in tables]:
        raise NotOpened(f"is damaged or truncated (no such table: {missing[0]})")
    return tables


def _counts_prompt_caches(db: sqlite3.Connection) -> bool:
    return any(column[1] == "cached_tokens" for column in db.execute("PRAGMA main.table_info(calls)"))


def prepare_to_write(db: sqlite3.Connection, tables: set[str]) -> None:
    """Prepare for writing, and add to the file what an older format lacks."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("BEGIN IMMEDIATE")  # fails here, and not after the first reply, if the file is read-only
    if not _counts_prompt_caches(db):
        for statement in UPGRADE:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {FORMAT}")
    if "checks" not in tables:
        db.execute(checks_table())
    db.execute("COMMIT")


def complete_old_format(db: sqlite3.Connection, tables: set[str]) -> None:
    """Add what an older format lacks, in temporary views: a file that is only read is not changed."""
    db.execute("PRAGMA query_only = OFF")
    if not _counts_prompt_caches(db):
        db.execute("CREATE TEMP VIEW calls AS SELECT *, NULL AS cached_tokens, 0 AS written_tokens FROM main.calls")
    if "checks" not in tables:
        columns = ", ".join(f"NULL AS {name}" for name in ("unit", "plan", "outcome", "verdicts"))
        db.execute(f"CREATE TEMP VIEW checks AS SELECT {columns} WHERE 0")
    db.execute("PRAGMA query_only = ON")
