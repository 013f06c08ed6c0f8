"""Run files as earlier versions made them."""

from __future__ import annotations

import sqlite3

from parley.runs.schema import NEW_IN_3, OLD_VIEW


def make_format_2(db: sqlite3.Connection) -> None:
    """Take from a run what came with format 3: the models' thinking, and what was cut."""
    db.execute("DROP VIEW transcript")
    for table, column in NEW_IN_3:
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    db.execute(OLD_VIEW)
    db.execute("PRAGMA user_version = 2")
