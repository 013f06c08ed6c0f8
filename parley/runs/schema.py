"""The tables of run files, the creation of new files, and checksums by unit.

The table `checks` has three checksums per unit, so that small damage is noticed and not read as data: of its plan (id,
position, facets), written with the plan; of its outcome (status, times, messages, calls) and of its verdicts, written
in the transaction that finishes it. They are computed from what SQLite gives back, since it stores some values as
others (1 as 1.0, NaN as NULL). Texts need none, since a text's id is its hash. CRC-32 detects accidents; nothing is
signed. schema.sql is the only list of columns: selects, inserts and types for checksums follow from it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, reduce
from importlib.resources import files
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from types import NoneType
from typing import Any
from zlib import crc32

from parley.base.errors import ConfigError, ParleyError, explain_unwritable
from parley.base.files import unused_file
from parley.judging import Unit
from parley.runs.opening import NotOpened, RunFileError, SchemaEntry, entries_of, reason, refuse_foreign_schema
from parley.runs.rows import Row, Rows, text_id

Types = tuple[frozenset[type], ...]
"""By column, the types of values that SQLite returns unchanged, except NaN and -0.0."""
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
        order: The columns that identify a unit's rows; they follow the unit.
        rare: The last columns, with their empty values. Only other values, which are rare, are checked, separately.
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
        """The rare columns of rows in which they are not empty."""
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
"""The columns of a unit that are written with the plan, and when it is finished."""
FINISH_UNIT = f"UPDATE units SET {', '.join(f'{name} = ?' for name in OUTCOME)} WHERE id = ?"


FORMAT = 3
"""Increased when the tables change. Files of another format are refused."""
APPLICATION_ID = 0x5041524C
"""SQLite's application id: 'PARL'."""
LONGEST_INFO = 32 * 2**20
"""Maximum bytes of a value in the table `run`: as for the longest reply, since a team's config has all its tasks."""
TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events", "checks")
"""The tables that every run file has."""


@lru_cache(maxsize=1)
def known_entries() -> frozenset[SchemaEntry]:
    """All schema entries allowed in a run file."""
    return entries_of(";\n".join(statements()))


def check_run(db: sqlite3.Connection) -> set[str]:
    """Raise unless the file is a run that this version can read, with nothing foreign in it.

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
    # A commit is on the disk when it returns, so a power failure loses no finished unit. Units that finish together
    # share one: 32 to 274 commits for 2,000 units, 2 to 40 ms each on a busy machine, no CPU time.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # `RunFile` merges the log, after checking the file
    db.execute("BEGIN IMMEDIATE")  # fails here, and not after the first reply, if the file is read-only
    db.execute("COMMIT")


def create_file(path: Path, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> None:
    """Write the file under another name, then rename it."""
    if long := [key for key, value in info.items() if len(json.dumps(value)) > LONGEST_INFO]:
        raise ConfigError(f"this run's {long[0]} takes more than {LONGEST_INFO:,} bytes; make several runs of it")
    with explain_unwritable(path, RunFileError):
        part = unused_file(path)
    try:
        db = sqlite3.connect(part, isolation_level=None)
        db.execute("PRAGMA journal_mode = OFF")
        _fill_database(db, info, prompts, plan)
        db.close()
        part.replace(path)
    except sqlite3.IntegrityError as error:
        part.unlink(missing_ok=True)
        raise ParleyError(f"the study planned two units with the same id ({error})") from None
    except (sqlite3.Error, OSError) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise RunFileError(f"{path} cannot be written: {reason(error)}") from None


def _fill_database(
    db: sqlite3.Connection, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]
) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in statements():
        db.execute(statement)
    rows = ((unit.id, n, json.dumps(dict(unit.facets), ensure_ascii=False)) for n, unit in enumerate(plan))
    db.executemany("INSERT INTO units (id, position, facets) VALUES (?, ?, ?)", rows)
    add_plan_checks(db)
    hashed = [(name, hashlib.sha256(text.encode()).hexdigest(), text) for name, text in prompts.items()]
    db.executemany("INSERT INTO prompts VALUES (?, ?, ?)", hashed)
    db.executemany("INSERT INTO run VALUES (?, ?)", [(key, json.dumps(value)) for key, value in info.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("COMMIT")


_PLAN, _OUTCOME = (f"SELECT {', '.join(names)} FROM units WHERE id = ?" for names in (PLAN, OUTCOME))
_VERDICT = ", ".join(f"v.{name}" for name in VERDICTS.names[1:])
FINISHED_VERDICTS = (
    f"SELECT u.position, {_VERDICT} FROM verdicts v JOIN units u ON u.id = v.unit "
    "WHERE u.status = 'done' ORDER BY u.position, v.nth"
)
VERDICT_CHECKS = (
    "SELECT u.position, c.unit, c.verdicts FROM checks c JOIN units u ON u.id = c.unit "
    "WHERE u.status = 'done' AND c.verdicts IS NOT NULL"
)


def checksum(rows: Iterable[Row], crc: int = 0) -> int:
    """A checksum of a table's rows, in order.

    Args:
        rows: The rows.
        crc: The checksum of other rows before them; 0 for none.
    """
    return crc32(_text_of(list(rows)).encode("utf-8", "surrogatepass"), crc)


def _text_of(rows: Sequence[Row]) -> str:
    """Every value by `str`. One formatting operation takes half the time of one per value."""
    form = "\x1f".join(["%s"] * len(rows[0])) + "\x1e" if rows else ""
    return form * len(rows) % tuple(chain.from_iterable(rows))


def add_plan_checks(db: sqlite3.Connection) -> None:
    """Write the checksums of a new plan; part of the same transaction."""
    rows = db.execute(f"SELECT {', '.join(PLAN)} FROM units ORDER BY id")
    db.executemany("INSERT INTO checks (unit, plan) VALUES (?, ?)", ((row[0], checksum([row])) for row in rows))


def add_checks(db: sqlite3.Connection, units: Iterable[Rows]) -> None:
    """Write the checksums of units that were just finished; part of the same transaction."""
    db.executemany(
        "INSERT INTO checks (unit, outcome, verdicts) VALUES (?, ?, ?) "
        "ON CONFLICT (unit) DO UPDATE SET outcome = excluded.outcome, verdicts = excluded.verdicts",
        [(unit.id, *_checks(db, unit)) for unit in units],
    )


def _checks(db: sqlite3.Connection, unit: Rows) -> tuple[int, int]:
    """The checksums of outcome and verdicts. Rows are read back only if SQLite may have changed a value."""
    outcome = _written(_outcome(unit.unit[:-1], unit.messages, unit.calls))
    verdicts = _written([VERDICTS.checked(unit.verdicts)])
    return (
        _outcome_checksum(db, unit.id) if outcome is None else outcome,
        _verdicts_checksum(db, unit.id) if verdicts is None else verdicts,
    )


def _outcome(ended: Row, messages: Sequence[Row], calls: Sequence[Row]) -> Iterator[Checked]:
    """The parts of a unit's outcome checksum, in order."""
    yield [ended], tuple(columns_of("units")[name] for name in OUTCOME)
    yield from (MESSAGES.checked(messages), CALLS.checked(calls))
    yield from (MESSAGES.checked_apart(messages), CALLS.checked_apart(calls))


def _plan_checksum(db: sqlite3.Connection, unit: str) -> int:
    return checksum(db.execute(_PLAN, (unit,)))


def _outcome_checksum(db: sqlite3.Connection, unit: str) -> int:
    ended, *_ = db.execute(_OUTCOME, (unit,)).fetchall() or [()]
    messages, calls = (db.execute(table.select, (unit,)).fetchall() for table in (MESSAGES, CALLS))
    return reduce(lambda crc, part: checksum(part[0], crc), _outcome(ended, messages, calls), 0)


def _verdicts_checksum(db: sqlite3.Connection, unit: str) -> int:
    return checksum(VERDICTS.checked(db.execute(VERDICTS.select, (unit,)))[0])


_CHECKSUMS = {"plan": _plan_checksum, "outcome": _outcome_checksum, "verdicts": _verdicts_checksum}
"""Functions that compute each column of the table `checks` from stored rows."""


def _written(parts: Iterable[Checked]) -> int | None:
    """The checksum of rows that were just written; None if SQLite may have changed a value, by the types of all values.

    With every row read back, checksums took 4 to 8% of a run's processor time.
    """
    crc = 0
    for rows, types in parts:
        columns = zip(types, zip(*rows, strict=True), strict=False)
        text = _text_of(rows)
        if not all(kinds.issuperset(map(type, values)) for kinds, values in columns) or "nan" in text or "-0.0" in text:
            return None
        crc = crc32(text.encode(), crc)
    return crc


def damaged_plan(db: sqlite3.Connection) -> Iterator[str]:
    """Units whose id, position or facets were changed."""
    rows = db.execute(
        f"SELECT c.plan, {', '.join(f'u.{name}' for name in PLAN)} FROM units u JOIN checks c ON c.unit = u.id"
    )
    return (unit for plan, *row in rows if plan is not None and plan != checksum([tuple(row)]) for unit in row[:1])


def checked_verdicts(
    verdicts: Iterable[Row], stored: Iterable[tuple[int, str, int]], refuse: Callable[[str], object]
) -> Iterator[Row]:
    """The verdicts of finished units, checked while read, since a separate pass takes as long again.

    Args:
        verdicts: The rows of `FINISHED_VERDICTS`.
        stored: The rows of `VERDICT_CHECKS`.
        refuse: Called with the first unit that has a changed verdict or lost all of them.
    """
    expected = {position: (unit, crc) for position, unit, crc in stored}
    for position, group in groupby(verdicts, key=itemgetter(0)):
        rows = list(group)
        unit, crc = expected.pop(position, ("", None))
        if crc is not None and crc != checksum(row[1:] for row in rows):
            refuse(unit)
        yield from rows
    for unit, crc in expected.values():
        if crc:
            refuse(unit)


def unit_is_damaged(db: sqlite3.Connection, unit: str) -> bool:
    """Whether a unit was changed since it was written; False if it has no checksums."""
    row = db.execute(f"SELECT {', '.join(_CHECKSUMS)} FROM checks WHERE unit = ?", (unit,)).fetchone()
    stored = {name: crc for name, crc in zip(_CHECKSUMS, row or (), strict=False) if crc is not None}
    differs = any(crc != _CHECKSUMS[name](db, unit) for name, crc in stored.items())
    return differs or ("outcome" in stored and None in texts_of(db, unit).values())


def texts_of(db: sqlite3.Connection, unit: str) -> dict[int, str | None]:
    """The texts that a unit's messages and calls refer to; None for one that is missing or was changed."""
    wanted: set[Any] = set()
    for numbers in db.execute("SELECT text, persona, thought FROM messages WHERE unit = ?", (unit,)):
        wanted.update(numbers)
    for reply, thought, prompt in db.execute("SELECT reply, thought, prompt FROM calls WHERE unit = ?", (unit,)):
        wanted |= {reply, thought, *(number for _, _, number in json.loads(prompt))}
    wanted.discard(None)
    return {number: _text(db, number) for number in wanted}


def _text(db: sqlite3.Connection, number: int) -> str | None:
    with suppress(sqlite3.DatabaseError, UnicodeError):
        for (text,) in db.execute("SELECT text FROM texts WHERE id = ?", (number,)):
            return text if isinstance(text, str) and text_id(text) == number else None
    return None
