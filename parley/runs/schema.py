"""The tables of run files, of every format that was ever written, and how an older one is completed."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from importlib.resources import files

from parley.runs.opening import NotOpened, SchemaEntry, entries_of, refuse_foreign_schema

FORMAT = 3
"""2: the table `calls` has the providers' prompt caches (`cached_tokens`, `written_tokens`). 3: messages and calls have
the model's thinking (`thought`, `thought_tokens`), and messages whether they were `cut` at the limit of tokens."""
APPLICATION_ID = 0x5041524C
"""SQLite's application id: 'PARL'."""
TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events")
"""The tables that every run file has."""
TO_FORMAT_2 = (
    "ALTER TABLE calls ADD COLUMN cached_tokens INTEGER",
    "ALTER TABLE calls ADD COLUMN written_tokens INTEGER NOT NULL DEFAULT 0",
)
"""What makes format 2 of format 1."""
NEW_IN_3 = (("messages", "thought"), ("messages", "cut"), ("calls", "thought"), ("calls", "thought_tokens"))
OLD_VIEW = """CREATE VIEW transcript AS
    SELECT m.unit, m.seq, m.round, m.speaker, m.role, p.text AS persona, t.text AS text,
           m.parse_status, m.parsed, m.expected
    FROM messages m JOIN texts t ON t.id = m.text LEFT JOIN texts p ON p.id = m.persona"""
"""The view of formats 1 and 2."""
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
    """The statements that create a run file of today."""
    script = files("parley.runs").joinpath("schema.sql").read_text("utf-8")
    return tuple(part for statement in script.split(";\n") if (part := statement.strip()))


def _view() -> str:
    return next(statement for statement in statements() if "VIEW transcript" in statement)


def _to_format_3() -> tuple[str, ...]:
    """What makes format 3 of format 2."""
    columns = (f"ALTER TABLE {table} ADD COLUMN {name} INTEGER" for table, name in NEW_IN_3)
    return ("DROP VIEW transcript", *columns, _view())


@lru_cache(maxsize=1)
def known_entries() -> frozenset[SchemaEntry]:
    """All that SQLite may list in a run file: of every format, made as such or upgraded from an older one."""
    third = ";\n".join((*statements(), *BATCH_TABLES, PENDING_TABLE))
    second = _without(third.replace(_view(), OLD_VIEW), {name for _, name in NEW_IN_3})
    first = _without(second, {"cached_tokens", "written_tokens"})
    upgraded = ";\n".join((first, *TO_FORMAT_2))
    upgrades = [";\n".join((older, *_to_format_3())) for older in (second, upgraded)]
    return frozenset().union(*map(entries_of, (third, second, first, upgraded, *upgrades)))


def _without(script: str, columns: set[str]) -> str:
    """The script without the lines of these columns."""
    lines = script.splitlines(keepends=True)
    return "".join(line for line in lines if line.split(maxsplit=1)[:1] not in [[name] for name in columns])


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


def _lacks(db: sqlite3.Connection, table: str, name: str) -> bool:
    return all(column[1] != name for column in db.execute(f"PRAGMA main.table_info({table})"))


def prepare_to_write(db: sqlite3.Connection, tables: set[str]) -> None:
    """Prepare for writing, and add to the file what an older format lacks."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("BEGIN IMMEDIATE")  # fails here, and not after the first reply, if the file is read-only
    for column, upgrade in (("cached_tokens", TO_FORMAT_2), ("thought", _to_format_3())):
        if _lacks(db, "calls", column):
            for statement in upgrade:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {FORMAT}")
    if "checks" not in tables:
        db.execute(checks_table())
    db.execute("COMMIT")


def complete_old_format(db: sqlite3.Connection, tables: set[str]) -> None:
    """Add what an older format lacks, in temporary views: a file that is only read is not changed."""
    db.execute("PRAGMA query_only = OFF")
    if _lacks(db, "calls", "thought"):
        caches = ", NULL AS cached_tokens, 0 AS written_tokens" if _lacks(db, "calls", "cached_tokens") else ""
        db.execute(
            f"CREATE TEMP VIEW calls AS SELECT *{caches}, NULL AS thought, NULL AS thought_tokens FROM main.calls"
        )
        for name in ("messages", "transcript"):
            db.execute(f"CREATE TEMP VIEW {name} AS SELECT *, NULL AS thought, NULL AS cut FROM main.{name}")
    if "checks" not in tables:
        columns = ", ".join(f"NULL AS {name}" for name in ("unit", "plan", "outcome", "verdicts"))
        db.execute(f"CREATE TEMP VIEW checks AS SELECT {columns} WHERE 0")
    db.execute("PRAGMA query_only = ON")
