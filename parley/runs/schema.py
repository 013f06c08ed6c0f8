"""The tables of run files, the creation of new files, and checksums by unit.

The table `checks` has three checksums per unit, so that small damage is noticed and not read as data: of its plan (id,
position, facets), written with the plan; of its outcome (status, times, messages, calls, which message each verdict
comes from) and of its verdicts, written in the transaction that finishes it. They are computed from what SQLite gives
back, since it stores some values as others (1 as 1.0, NaN as NULL). Texts need none, since a text's id is its hash.
CRC-32 detects accidents; nothing is signed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from zlib import crc32

from parley.base.errors import ConfigError, ParleyError, explain_unwritable
from parley.base.files import unused_file
from parley.judging import Unit
from parley.runs.opening import NotOpened, RunFileError, SchemaEntry, entries_of, reason, refuse_foreign_schema
from parley.runs.rows import Row, text_id

FORMAT, OLDER = 4, 3
"""Increased when the tables change. A file of the older format, whose verdicts have no `seq`, is read as if all were
NULL and gets the column when its run is resumed; files of other formats are refused."""
APPLICATION_ID = 0x5041524C
"""SQLite's application id: 'PARL'."""
LONGEST_INFO = 32 * 2**20
"""Maximum bytes of a value in the table `run`: as for the longest reply, since a team's config has all its tasks."""
TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events", "checks")
"""The tables that every run file has."""
INSERT = {
    table: f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * columns)})"
    for table, columns in (("messages", 12), ("calls", 16), ("verdicts", 12))
}
FINISH_UNIT = "UPDATE units SET status = ?, error = ?, stop_reason = ?, started_at = ?, finished_at = ? WHERE id = ?"
_VERDICT = "nth, judge, role, round, subject, metric, value, sampled, text, status"
FINISHED_VERDICTS = (
    f"SELECT position, v.{_VERDICT.replace(', ', ', v.')}, v.seq FROM verdicts v JOIN units u ON u.id = v.unit "
    "WHERE u.status = 'done' ORDER BY position, nth"
)
VERDICT_CHECKS = (
    "SELECT u.position, c.unit, c.verdicts FROM checks c JOIN units u ON u.id = c.unit "
    "WHERE u.status = 'done' AND c.verdicts IS NOT NULL"
)
CHECKED = {
    "plan": ("SELECT id, position, facets FROM units WHERE id = ?",),
    "outcome": (
        "SELECT status, error, stop_reason, started_at, finished_at FROM units WHERE id = ?",
        "SELECT seq, round, speaker, role, persona, text, parse_status, parsed, expected FROM messages "
        "WHERE unit = ? ORDER BY seq",
        "SELECT seq, nth, model, prompt, reply, prompt_tokens, completion_tokens, latency, cost, cached, attempts, "
        "cached_tokens, written_tokens FROM calls WHERE unit = ? ORDER BY seq, nth",
        # Columns that were added later stand last and without empty values, so that earlier checksums still hold.
        "SELECT seq, thought, cut FROM messages WHERE unit = ? AND (thought IS NOT NULL OR cut != 0) ORDER BY seq",
        "SELECT seq, nth, thought, thought_tokens FROM calls "
        "WHERE unit = ? AND coalesce(thought, thought_tokens) IS NOT NULL ORDER BY seq, nth",
        "SELECT nth, seq FROM verdicts WHERE unit = ? AND seq IS NOT NULL ORDER BY nth",
    ),
    "verdicts": (f"SELECT {_VERDICT} FROM verdicts WHERE unit = ? ORDER BY nth",),
}
"""What each column of the table `checks` covers: the rows of these selects."""


def _script() -> str:
    return files("parley.runs").joinpath("schema.sql").read_text("utf-8")


@cache
def known_entries(version: int) -> frozenset[SchemaEntry]:
    """All schema entries allowed in a run file of this format."""
    entries = entries_of(_script())
    if version == FORMAT:
        return entries
    return frozenset((kind, name, at, sql.replace("seq INTEGER,PRIMARY", "PRIMARY")) for kind, name, at, sql in entries)


def check_run(db: sqlite3.Connection) -> None:
    """Raise unless the file is a run that this version can read, with nothing foreign in it."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID or version < 1:
        raise NotOpened("is not a Parley run file")
    if version not in (FORMAT, OLDER):
        age = "a newer" if version > FORMAT else "an older"
        raise NotOpened(f"was written by {age} Parley (format {version}; this one reads format {FORMAT})")
    tables = refuse_foreign_schema(db, known_entries(version))
    if missing := [name for name in (*TABLES, "transcript") if name not in tables]:
        raise NotOpened(f"is damaged or truncated (no such table: {missing[0]})")
    if version == OLDER:
        query_only = db.execute("PRAGMA query_only").fetchone()[0]
        db.execute("PRAGMA query_only = OFF")  # which refuses views of our own too; the file is opened for reading
        db.execute("CREATE TEMP VIEW verdicts AS SELECT *, NULL AS seq FROM main.verdicts")
        db.execute(f"PRAGMA query_only = {query_only}")


def prepare_to_write(db: sqlite3.Connection) -> None:
    """Set the journal for writing."""
    db.execute("PRAGMA journal_mode = WAL")
    # A commit is on the disk when it returns, so a power failure loses no finished unit. Units that finish together
    # share one: 32 to 274 commits for 2,000 units, 2 to 40 ms each on a busy machine, no CPU time.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # `RunFile` merges the log, after checking the file
    db.execute("BEGIN IMMEDIATE")  # fails here, and not after the first reply, if the file is read-only
    if db.execute("PRAGMA user_version").fetchone()[0] == OLDER:
        db.execute("DROP VIEW temp.verdicts")
        db.execute("ALTER TABLE verdicts ADD COLUMN seq INTEGER")
        db.execute(f"PRAGMA user_version = {FORMAT}")
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
    db.executescript(f"BEGIN IMMEDIATE; {_script()}")
    for position, unit in enumerate(plan):
        row = (unit.id, position, json.dumps(dict(unit.facets), ensure_ascii=False))
        db.execute("INSERT INTO units (id, position, facets) VALUES (?, ?, ?)", row)
        db.execute("INSERT INTO checks (unit, plan) VALUES (?, ?)", (unit.id, checksum([row])))
    hashed = [(name, hashlib.sha256(text.encode()).hexdigest(), text) for name, text in prompts.items()]
    db.executemany("INSERT INTO prompts VALUES (?, ?, ?)", hashed)
    db.executemany("INSERT INTO run VALUES (?, ?)", [(key, json.dumps(value)) for key, value in info.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("COMMIT")


def checksum(rows: Iterable[Row]) -> int:
    """A checksum of rows, in order: of every value's `str`."""
    text = "".join("\x1f".join(map(str, row)) + "\x1e" for row in rows)
    return crc32(text.encode("utf-8", "surrogatepass"))


def stored_checksum(db: sqlite3.Connection, part: str, unit: str) -> int:
    """A unit's checksum by what is stored.

    Args:
        db: The run file.
        part: "plan", "outcome" or "verdicts".
        unit: The unit's id.
    """
    return checksum(row for select in CHECKED[part] for row in db.execute(select, (unit,)))


def add_checks(db: sqlite3.Connection, units: Iterable[str]) -> None:
    """Write the checksums of units that were just finished; part of the same transaction."""
    db.executemany(
        "INSERT INTO checks (unit, outcome, verdicts) VALUES (?, ?, ?) "
        "ON CONFLICT (unit) DO UPDATE SET outcome = excluded.outcome, verdicts = excluded.verdicts",
        [(unit, *(stored_checksum(db, part, unit) for part in ("outcome", "verdicts"))) for unit in units],
    )


def damaged_plan(db: sqlite3.Connection) -> Iterator[str]:
    """Units whose id, position or facets were changed."""
    rows = db.execute("SELECT c.plan, u.id, u.position, u.facets FROM units u JOIN checks c ON c.unit = u.id")
    return (row[0] for plan, *row in rows if plan is not None and plan != checksum([tuple(row)]))


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
        if crc is not None and crc != checksum(row[1:-1] for row in rows):
            refuse(unit)
        yield from rows
    for unit, crc in expected.values():
        if crc:
            refuse(unit)


def unit_is_damaged(db: sqlite3.Connection, unit: str) -> bool:
    """Whether a unit was changed since it was written; False if it has no checksums."""
    row = db.execute("SELECT plan, outcome, verdicts FROM checks WHERE unit = ?", (unit,)).fetchone()
    stored = {part: crc for part, crc in zip(CHECKED, row or (), strict=False) if crc is not None}
    differs = any(crc != stored_checksum(db, part, unit) for part, crc in stored.items())
    return differs or ("outcome" in stored and _lacks_a_text(db, unit))


def _lacks_a_text(db: sqlite3.Connection, unit: str) -> bool:
    """Whether a text that the unit's messages and calls refer to is missing or was changed: its id is its hash."""
    wanted: set[Any] = set()
    for numbers in db.execute("SELECT text, persona, thought FROM messages WHERE unit = ?", (unit,)):
        wanted.update(numbers)
    for reply, thought, prompt in db.execute("SELECT reply, thought, prompt FROM calls WHERE unit = ?", (unit,)):
        wanted |= {reply, thought, *(number for _, _, number in json.loads(prompt))}
    for number in wanted - {None}:
        (text,) = db.execute("SELECT text FROM texts WHERE id = ?", (number,)).fetchone() or (None,)
        if not isinstance(text, str) or text_id(text) != number:
            return True
    return False
