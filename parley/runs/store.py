"""A run is one SQLite file: config, versions, prompts, units, every message and call, verdicts, events.

A unit is written whole, in one transaction, when it is finished: whatever moment the process is killed at, a unit
is either there with everything it has, or still to be done.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from parley.agents import ConfigError, ParleyError
from parley.judging import Accepted, Unit
from parley.runs.rows import UNWRITABLE, Record, Rows, rows_of, unwritable

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
"""2: calls know of providers' prompt caches (`cached_tokens`, `written_tokens`)."""
APPLICATION = 0x5041524C
"""SQLite's application id: 'PARL'."""


TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events")
_COMPUTED = re.compile(r"\bAS\s*\(|\bGENERATED\b|\bCREATE\s+VIRTUAL\b", re.IGNORECASE)


class RunFileError(ParleyError):
    """A file that is not a run, or not one this version can use."""


class RunFile:
    """One run on disk. Opened for reading, or for writing by one process at a time."""

    def __init__(self, path: Path, db: sqlite3.Connection, claim: IO[bytes] | None = None) -> None:
        self.path = path
        self.db = db
        self._claim = claim

    @classmethod
    def create(cls, path: Path, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> RunFile:
        """A new file with its plan, made under another name first: a half-made file is never taken for a run."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            claim = _claim(path)
        except OSError as error:
            raise RunFileError(f"{path} cannot be written: {_why(error)}") from None
        try:
            if path.exists():  # now that nobody else makes it: an empty file must not take a run's place
                raise RunFileError(f"{path} has just been made by another process; the same command goes on with it")
            _make(path, info, prompts, plan)
        except BaseException:
            _release(claim)
            raise
        return cls.open(path, write=True, claim=claim)

    @classmethod
    def open(cls, path: Path, *, write: bool = False, claim: IO[bytes] | None = None) -> RunFile:
        if not os.path.isfile(path):
            folder = f"; {path} is a folder, name a file in it" if os.path.isdir(path) else ""
            raise ConfigError(f"there is no run file {path}{folder}")
        try:
            db = _connect(path)
            application = db.execute("PRAGMA application_id").fetchone()[0]
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION:
                raise RunFileError(f"{path} is not a run of Parley's")
            if version > FORMAT:
                raise RunFileError(f"{path} was made by a newer Parley (format {version}, this one reads {FORMAT})")
            _refuse_strange_schema(db, path)
            if write:
                claim = claim or _claim(path)
                db.execute("PRAGMA query_only = OFF")
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("BEGIN IMMEDIATE")
                db.execute("COMMIT")
            if version < FORMAT:
                _bring_up(db, write=write)
        except (sqlite3.Error, UnicodeError, OSError) as error:
            _release(claim)
            raise RunFileError(_damaged(path, error)) from None
        except RunFileError:
            _release(claim)
            raise
        return cls(path, db, claim)

    def info(self) -> dict[str, Any]:
        try:
            return {key: json.loads(value) for key, value in self._rows("SELECT key, value FROM run")}
        except (ValueError, TypeError, RecursionError):
            raise RunFileError(f"{self.path} is damaged: what it says of itself cannot be read") from None

    def prompts(self) -> dict[str, str]:
        return dict(self._rows("SELECT name, hash FROM prompts"))

    def counts(self) -> dict[str, int]:
        found = dict(self._rows("SELECT status, count(*) FROM units GROUP BY status"))
        return {status: found.get(status, 0) for status in ("planned", "done", "failed")}

    def status(self, unit: str) -> str | None:
        rows = self.rows("SELECT status FROM units WHERE id = ?", (unit,))[1]
        return rows[0][0] if rows else None

    def spent(self) -> tuple[int, int, float, bool]:
        """Calls that were not cached, their tokens, their cost, and whether every price is known.

        Those of units that were abandoned are in it, as far as the run could still note them.
        """
        calls, tokens, cost, unknown = next(
            self._rows(
                "SELECT count(*), coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost), 0.0), "
                "coalesce(sum(cost IS NULL), 0) FROM calls WHERE NOT cached"
            )
        )
        try:
            for (detail,) in self._rows("SELECT detail FROM events WHERE kind = 'abandoned'"):
                more = json.loads(detail)
                calls, tokens, cost = calls + more[0], tokens + more[1], cost + more[2]
            return int(calls), int(tokens), float(cost), unknown == 0
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise RunFileError(f"{self.path} is damaged: what was spent cannot be read") from None

    def reused(self) -> tuple[int, int] | None:
        """Of the calls whose server says so: prompt tokens it had read before, and all of them; None if none says."""
        cached, tokens = next(
            self._rows(
                "SELECT sum(cached_tokens), sum(prompt_tokens) FROM calls "
                "WHERE NOT cached AND cached_tokens IS NOT NULL"
            )
        )
        return None if cached is None else (int(cached), int(tokens))

    def write(self, finished: Sequence[Record | Rows]) -> list[Rows]:
        """Finished units, all in one transaction; gives them back as they are kept.

        One that holds what no database can (a user's own study may give anything) is kept as failed, and alone.
        """
        units = [rows_of(one) if isinstance(one, Record) else one for one in finished]
        try:
            self._write(units)
            return units
        except UNWRITABLE as error:
            if len(units) > 1:
                return [kept for one in units for kept in self.write([one])]
            failed = units[0].failed_by(unwritable(error))
            self._write([failed])
            return [failed]

    def _write(self, units: Sequence[Rows]) -> None:
        texts = {text: address for rows in units for text, address in rows.texts.items()}
        db = self.db
        try:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR IGNORE INTO texts (text, id) VALUES (?, ?)", texts.items())
            db.executemany(
                "INSERT OR REPLACE INTO messages VALUES (?,?,?,?,?,?,?,?,?,?)",
                (row for rows in units for row in rows.messages),
            )
            db.executemany(
                "INSERT OR REPLACE INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (row for rows in units for row in rows.calls),
            )
            db.executemany(
                "INSERT OR REPLACE INTO verdicts VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                (row for rows in units for row in rows.verdicts),
            )
            db.executemany(
                "UPDATE units SET status = ?, error = ?, stop_reason = ?, started_at = ?, finished_at = ? WHERE id = ?",
                (rows.unit for rows in units),
            )
            db.execute("COMMIT")
        except (sqlite3.Error, *UNWRITABLE) as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if isinstance(error, UNWRITABLE):
                raise
            raise RunFileError(f"{self.path} cannot be written: {_why(error)}; what was finished is kept") from None

    def note(self, kind: str, detail: str) -> None:
        """An event of the run: started, resumed, stopped, and why."""
        try:
            self.db.execute("INSERT INTO events VALUES (?, ?, ?)", (time.time(), kind, detail))
        except sqlite3.Error as error:
            raise RunFileError(f"{self.path} cannot be written: {_why(error)}") from None

    def accepted(self) -> Iterator[Accepted]:
        """What a writing study kept, in the order of the plan: the replies whose verdict `accepted` is 1."""
        _, rows = self.rows(
            "SELECT u.facets, m.parsed FROM units u JOIN verdicts v ON v.unit = u.id "
            "JOIN messages m ON m.unit = u.id AND m.round = v.round AND m.speaker = v.judge "
            "WHERE u.status = 'done' AND v.metric = 'accepted' AND v.value = 1 ORDER BY u.position, m.seq"
        )
        return (Accepted(json.loads(facets), json.loads(parsed)) for facets, parsed in rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of any query, for frames and viewers."""
        try:
            cursor = self.db.execute(sql, values)
            return [column[0] for column in cursor.description], cursor.fetchall()
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise RunFileError(_damaged(self.path, error)) from None

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of any query, one after the other."""
        try:
            yield from self.db.execute(sql, values)
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise RunFileError(_damaged(self.path, error)) from None

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows(sql)[1])

    def close(self) -> None:
        """A run that was written becomes one plain file again, unless someone is reading it just now."""
        if self._claim is not None:
            with suppress(sqlite3.Error):
                self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.close()
        _release(self._claim)


def _make(path: Path, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> None:
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        db = sqlite3.connect(part, isolation_level=None)
        db.execute("PRAGMA journal_mode = OFF")
        _fill(db, info, prompts, plan)
        db.close()
        part.replace(path)
    except sqlite3.IntegrityError as error:
        part.unlink(missing_ok=True)
        raise ParleyError(f"the study planned a unit twice ({error}); ids must differ") from None
    except (sqlite3.Error, OSError) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise RunFileError(f"{path} cannot be written: {_why(error)}") from None


def _fill(db: sqlite3.Connection, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in files("parley.runs").joinpath("schema.sql").read_text("utf-8").split(";\n"):
        if statement.strip():
            db.execute(statement)
    rows = ((unit.id, n, json.dumps(dict(unit.facets), ensure_ascii=False)) for n, unit in enumerate(plan))
    db.executemany("INSERT INTO units (id, position, facets) VALUES (?, ?, ?)", rows)
    hashed = [(name, hashlib.sha256(text.encode()).hexdigest(), text) for name, text in prompts.items()]
    db.executemany("INSERT INTO prompts VALUES (?, ?, ?)", hashed)
    db.executemany("INSERT INTO run VALUES (?, ?)", [(key, json.dumps(value)) for key, value in info.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("COMMIT")


def _bring_up(db: sqlite3.Connection, *, write: bool) -> None:
    """A run of format 1 that goes on gets what is new in it; one that is read stays as it is, behind a view."""
    if write:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ALTER TABLE calls ADD COLUMN cached_tokens INTEGER")
        db.execute("ALTER TABLE calls ADD COLUMN written_tokens INTEGER NOT NULL DEFAULT 0")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("COMMIT")
        return
    db.execute("PRAGMA query_only = OFF")
    db.execute("CREATE TEMP VIEW calls AS SELECT *, NULL AS cached_tokens, 0 AS written_tokens FROM main.calls")
    db.execute("PRAGMA query_only = ON")


def _claim(path: Path) -> IO[bytes] | None:
    """One writer at a time: two would hold the same units. The claim ends with the process, however it ends.

    A file of its own, since a second handle on the database, closed, would drop SQLite's own locks.
    """
    if fcntl is None:
        return None
    lock = path.with_name(path.name + ".lock")
    while True:
        file = lock.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise RunFileError(f"{path} is being run by another process") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        file.close()  # whoever had it took it away after we opened it: what we hold is nobody's any more


def _release(claim: IO[bytes] | None) -> None:
    """Taken away while it is still held, so that nobody else's is."""
    if claim is not None:
        Path(claim.name).unlink(missing_ok=True)
        claim.close()


def _refuse_strange_schema(db: sqlite3.Connection, path: Path) -> None:
    """Only plain tables and our one view: a trigger, another view or a computed column would run whoever's SQL it is.

    The view is not taken from the file either, but laid over it.
    """
    found = db.execute("SELECT type, name, coalesce(sql, '') FROM main.sqlite_master").fetchall()
    for kind, name, sql in found:
        if (
            kind not in ("table", "index", "view")
            or (kind == "view" and name != "transcript")
            or (kind != "view" and _COMPUTED.search(str(sql)))
        ):
            raise RunFileError(f"{path} is not a run as Parley writes it: it holds a {kind} '{name}' of its own")
    tables = {name for kind, name, _ in found if kind == "table"}
    if missing := [name for name in TABLES if name not in tables]:
        raise RunFileError(f"{path} is damaged or cut short (no such table: {missing[0]})")
    db.execute("PRAGMA query_only = OFF")
    db.execute(_own_view())
    db.execute("PRAGMA query_only = ON")


@lru_cache(maxsize=1)
def _own_view() -> str:
    whole = files("parley.runs").joinpath("schema.sql").read_text("utf-8")
    view = whole[whole.index("CREATE VIEW") :].strip().removesuffix(";")
    return view.replace("CREATE VIEW", "CREATE TEMP VIEW", 1)


def _connect(path: Path) -> sqlite3.Connection:
    """For reading; a file on a read-only place is taken as it is."""
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA query_only = ON")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        if os.access(path.parent, os.W_OK):
            raise
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    return db


def _why(error: Exception) -> str:
    text = str(error).lower()
    if "full" in text or getattr(error, "errno", None) == 28:
        return "the disk is full"
    if "readonly" in text or "read-only" in text or getattr(error, "errno", None) in (13, 30):
        return "the place is read-only"
    if "locked" in text:
        return "another process is writing to it"
    return str(getattr(error, "strerror", None) or error)


def _damaged(path: Path, error: Exception) -> str:
    text = str(error)
    if "not a database" in text:
        return f"{path} is not a run of Parley's"
    if any(sign in text for sign in ("malformed", "no such", "disk I/O", "decode", "unsupported file format")):
        return f"{path} is damaged or cut short ({text})"
    return f"{path} cannot be opened: {_why(error)}"
