"""The tables of run files, of every format that was ever written."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from parley.runs.opening import SchemaEntry, entries_of

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
