"""The tables that a unit's rows are in. schema.sql is the one list of their columns: selects, inserts and the types
that checksums know follow from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from types import NoneType
from typing import Any

from parley.runs.rows import Row

Types = tuple[frozenset[type], ...]
"""By column, the types of values that SQLite gives back as they are, except NaN and -0.0."""
Checked = tuple[list[Row], Types]
"""Rows that a checksum covers, with the types of their columns."""
TYPES = {kind: frozenset({plain, NoneType}) for kind, plain in (("INTEGER", int), ("REAL", float), ("TEXT", str))}


@cache
def statements() -> tuple[str, ...]:
    """The statements that create a run file."""
    script = files("parley.runs").joinpath("schema.sql").read_text("utf-8")
    return tuple(part for statement in script.split(";\n") if (part := statement.strip()))


@cache
def columns_of(table: str) -> dict[str, frozenset[type]]:
    """A table's columns in order, with their types."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(next(statement for statement in statements() if f"CREATE TABLE {table} (" in statement))
        return {name: TYPES[kind] for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})")}


@dataclass(frozen=True)
class Table:
    """A table whose first column is the unit.

    Args:
        name: Its name.
        order: The columns that tell a unit's rows apart; they follow the unit.
        rare: The last columns, with the values that say nothing. Few rows have others: only those are checked, apart.
    """

    name: str
    order: tuple[str, ...]
    rare: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(columns_of(self.name))

    @cached_property
    def select(self) -> str:
        """Selects a unit's rows with all their columns."""
        return f"SELECT {', '.join(self.names)} FROM {self.name} WHERE unit = ? ORDER BY {', '.join(self.order)}"

    @cached_property
    def insert(self) -> str:
        return f"INSERT OR REPLACE INTO {self.name} VALUES ({', '.join('?' * len(self.names))})"

    def named(self, row: Row) -> dict[str, Any]:
        """The row's values by column."""
        return dict(zip(self.names, row, strict=True))

    def checked(self, rows: Iterable[Row]) -> Checked:
        """The rows without the unit and the rare columns."""
        types, end = tuple(columns_of(self.name).values()), len(self.names) - len(self.rare)
        return [row[1:end] for row in rows], types[1:end]

    def checked_apart(self, rows: Iterable[Row]) -> Checked:
        """The rare columns of the rows that have something in them."""
        types, end, keys = tuple(columns_of(self.name).values()), len(self.names) - len(self.rare), len(self.order) + 1
        blanks = tuple(self.rare.values())
        telling = [
            row for row in rows if any(value not in blank for value, blank in zip(row[end:], blanks, strict=True))
        ]
        return [row[1:keys] + row[end:] for row in telling], types[1:keys] + types[end:]


MESSAGES = Table("messages", ("seq",), {"thought": (None,), "cut": (None, 0)})
CALLS = Table("calls", ("seq", "nth"), {"thought": (None,), "thought_tokens": (None,)})
VERDICTS = Table("verdicts", ("nth",))
PLAN, OUTCOME = tuple(columns_of("units"))[:3], tuple(columns_of("units"))[3:]
"""The columns of a unit that are written with the plan, and those that are written when it is finished."""
FINISH_UNIT = f"UPDATE units SET {', '.join(f'{name} = ?' for name in OUTCOME)} WHERE id = ?"
