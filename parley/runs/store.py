"""A run is one SQLite file: config, versions, prompts, units, every message and call, verdicts, events.

    with RunFile.open(path) as file:
        print(file.info(), file.counts())

A unit is written in one transaction when it is finished: whenever the process is killed, a unit is either stored with
everything it has, or not done.
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
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from parley.agents import ConfigError, ParleyError
from parley.judging import Accepted, Unit
from parley.runs.rows import UNWRITABLE, Record, Rows, to_rows, unwritable_message

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
"""2: the table `calls` has the providers' prompt caches (`cached_tokens`, `written_tokens`)."""
APPLICATION_ID = 0x5041524C
"""SQLite's application id: 'PARL'."""
TABLES = ("run", "prompts", "texts", "units", "messages", "calls", "verdicts", "events")
_COMPUTED = re.compile(r"\bAS\s*\(|\bGENERATED\b|\bCREATE\s+VIRTUAL\b", re.IGNORECASE)


class RunFileError(ParleyError):
    """A file that is not a run, or that this version cannot read or write."""


class Spending(NamedTuple):
    """What a run has spent so far; replies from the cache are free and not counted."""

    calls: int
    tokens: int
    cost: float
    """US dollars; calls without a known price count as 0."""
    priced: bool
    """Whether the price of every call is known."""


class RunFile:
    """One run on disk. Opened for reading, or for writing by one process at a time; a context manager.

    Use `RunFile.open` or `RunFile.create`.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, lock: IO[bytes] | None = None) -> None:
        self.path = path
        self.db = db
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def create(cls, path: Path, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> RunFile:
        """Create a run file with its plan, and open it for writing.

        It is written under another name and then renamed, so that an incomplete file is never taken for a run.

        Args:
            path: Where; its folder is created if needed.
            info: The table `run`, see `parley.runs.describe`.
            prompts: The study's prompts, by name.
            plan: The units, in order.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = _lock(path)
        except OSError as error:
            raise RunFileError(f"{path} cannot be written: {_reason(error)}") from None
        try:
            if path.exists():  # checked under the lock: an existing run must never be overwritten
                raise RunFileError(f"{path} has just been created by another process; the same command resumes it")
            _create_file(path, info, prompts, plan)
        except BaseException:
            _unlock(lock)
            raise
        return cls.open(path, write=True, lock=lock)

    @classmethod
    def open(cls, path: Path, *, write: bool = False, lock: IO[bytes] | None = None) -> RunFile:
        """Open a run file.

        Args:
            path: The file.
            write: Open it for writing, which one process at a time can do. By default it is only read.
            lock: The writer's lock, if `create` already has it.
        """
        if not os.path.isfile(path):
            folder = f"; {path} is a folder, name a file in it" if os.path.isdir(path) else ""
            raise ConfigError(f"there is no run file {path}{folder}")
        try:
            db = _connect(path)
            application = db.execute("PRAGMA application_id").fetchone()[0]
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION_ID:
                raise RunFileError(f"{path} is not a Parley run file")
            if version > FORMAT:
                raise RunFileError(f"{path} was written by a newer Parley (format {version}, this one reads {FORMAT})")
            _check_schema(db, path)
            if write:
                lock = lock or _lock(path)
                db.execute("PRAGMA query_only = OFF")
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("BEGIN IMMEDIATE")  # fails here, and not after the first reply, if the file is read-only
                db.execute("COMMIT")
            if version < FORMAT:
                _upgrade(db, write=write)
        except (sqlite3.Error, UnicodeError, OSError) as error:
            _unlock(lock)
            raise RunFileError(_describe_open_error(path, error)) from None
        except RunFileError:
            _unlock(lock)
            raise
        return cls(path, db, lock)

    def info(self) -> dict[str, Any]:
        """The table `run`: study, target, config, models, sources, plan, units, versions."""
        try:
            return {key: json.loads(value) for key, value in self._rows("SELECT key, value FROM run")}
        except (ValueError, TypeError, RecursionError):
            raise RunFileError(f"{self.path} is damaged: the table 'run' cannot be read") from None

    def prompts(self) -> dict[str, str]:
        """The hashes of the prompts, by name."""
        return dict(self._rows("SELECT name, hash FROM prompts"))

    def counts(self) -> dict[str, int]:
        """The number of units by status: planned, done, failed."""
        by_status = dict(self._rows("SELECT status, count(*) FROM units GROUP BY status"))
        return {status: by_status.get(status, 0) for status in ("planned", "done", "failed")}

    def status(self, unit: str) -> str | None:
        """The status of a unit; None if the plan has no such unit."""
        rows = self.rows("SELECT status FROM units WHERE id = ?", (unit,))[1]
        return rows[0][0] if rows else None

    def spent(self) -> Spending:
        """What the run has spent, abandoned units included as far as the run could record them."""
        calls, tokens, cost, unknown = next(
            self._rows(
                "SELECT count(*), coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost), 0.0), "
                "coalesce(sum(cost IS NULL), 0) FROM calls WHERE NOT cached"
            )
        )
        try:
            for (detail,) in self._rows("SELECT detail FROM events WHERE kind = 'abandoned'"):
                abandoned = json.loads(detail)
                calls, tokens, cost = calls + abandoned[0], tokens + abandoned[1], cost + abandoned[2]
            return Spending(int(calls), int(tokens), float(cost), unknown == 0)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise RunFileError(f"{self.path} is damaged: the calls that were made cannot be summed up") from None

    def prompt_cache_use(self) -> tuple[int, int] | None:
        """Prompt tokens found in servers' prompt caches, and all prompt tokens, of calls whose server reports it.

        None if no server does.
        """
        cached, tokens = next(
            self._rows(
                "SELECT sum(cached_tokens), sum(prompt_tokens) FROM calls "
                "WHERE NOT cached AND cached_tokens IS NOT NULL"
            )
        )
        return None if cached is None else (int(cached), int(tokens))

    def write(self, finished: Sequence[Record | Rows]) -> list[Rows]:
        """Write finished units in one transaction, and return them as they were written.

        A unit with a value that SQLite cannot store (a user's study may return anything) is written as failed.
        """
        units = [to_rows(unit) if isinstance(unit, Record) else unit for unit in finished]
        try:
            self._write(units)
            return units
        except UNWRITABLE as error:
            if len(units) > 1:
                return [rows for unit in units for rows in self.write([unit])]
            failed = units[0].as_failed(unwritable_message(error))
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
            raise RunFileError(
                f"{self.path} cannot be written: {_reason(error)}; units finished before are stored"
            ) from None

    def note(self, kind: str, detail: str) -> None:
        """Add an event: its kind (started, stopped, ended, look, …) and a detail."""
        try:
            self.db.execute("INSERT INTO events VALUES (?, ?, ?)", (time.time(), kind, detail))
        except sqlite3.Error as error:
            raise RunFileError(f"{self.path} cannot be written: {_reason(error)}") from None

    def accepted(self) -> Iterator[Accepted]:
        """What a writing study accepted, in the order of the plan: the replies whose verdict `accepted` is 1."""
        _, rows = self.rows(
            "SELECT u.facets, m.parsed FROM units u JOIN verdicts v ON v.unit = u.id "
            "JOIN messages m ON m.unit = u.id AND m.round = v.round AND m.speaker = v.judge "
            "WHERE u.status = 'done' AND v.metric = 'accepted' AND v.value = 1 ORDER BY u.position, m.seq"
        )
        return (Accepted(json.loads(facets), json.loads(parsed)) for facets, parsed in rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of a query, for frames and the viewer."""
        try:
            cursor = self.db.execute(sql, values)
            return [column[0] for column in cursor.description], cursor.fetchall()
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise RunFileError(_describe_open_error(self.path, error)) from None

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, one by one, for results that do not fit in memory."""
        try:
            yield from self.db.execute(sql, values)
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise RunFileError(_describe_open_error(self.path, error)) from None

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows(sql)[1])

    def close(self) -> None:
        """Close the file; a writer also merges SQLite's write-ahead log into it, unless a reader has it open."""
        if self._lock is not None:
            with suppress(sqlite3.Error):
                self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.close()
        _unlock(self._lock)


def _create_file(path: Path, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> None:
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
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
        raise RunFileError(f"{path} cannot be written: {_reason(error)}") from None


def _fill_database(
    db: sqlite3.Connection, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]
) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in files("parley.runs").joinpath("schema.sql").read_text("utf-8").split(";\n"):
        if statement.strip():
            db.execute(statement)
    rows = ((unit.id, n, json.dumps(dict(unit.facets), ensure_ascii=False)) for n, unit in enumerate(plan))
    db.executemany("INSERT INTO units (id, position, facets) VALUES (?, ?, ?)", rows)
    hashed = [(name, hashlib.sha256(text.encode()).hexdigest(), text) for name, text in prompts.items()]
    db.executemany("INSERT INTO prompts VALUES (?, ?, ?)", hashed)
    db.executemany("INSERT INTO run VALUES (?, ?)", [(key, json.dumps(value)) for key, value in info.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("COMMIT")


def _upgrade(db: sqlite3.Connection, *, write: bool) -> None:
    """Add what format 1 lacks: in the file if the run is resumed, in a temporary view if it is only read."""
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


def _lock(path: Path) -> IO[bytes] | None:
    """Lock the run for writing: two writers would run the same units. The lock ends with the process.

    It is a separate file, since closing a second handle on the database would drop SQLite's own locks.
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
        file.close()  # its last owner deleted it after we opened it, so our lock protects nothing: try again


def _unlock(lock: IO[bytes] | None) -> None:
    """Delete the lock file while it is still locked, so that another process's is never deleted."""
    if lock is not None:
        Path(lock.name).unlink(missing_ok=True)
        lock.close()


def _check_schema(db: sqlite3.Connection, path: Path) -> None:
    """Accept only plain tables and our one view: a trigger, another view or a computed column could run foreign SQL.

    The file's view is not used either: ours is created over it.
    """
    schema = db.execute("SELECT type, name, coalesce(sql, '') FROM main.sqlite_master").fetchall()
    for kind, name, sql in schema:
        if (
            kind not in ("table", "index", "view")
            or (kind == "view" and name != "transcript")
            or (kind != "view" and _COMPUTED.search(str(sql)))
        ):
            raise RunFileError(f"{path} has a {kind} '{name}' that Parley did not write, and is not opened")
    tables = {name for kind, name, _ in schema if kind == "table"}
    if missing := [name for name in TABLES if name not in tables]:
        raise RunFileError(f"{path} is damaged or truncated (no such table: {missing[0]})")
    db.execute("PRAGMA query_only = OFF")
    db.execute(_transcript_view())
    db.execute("PRAGMA query_only = ON")


@lru_cache(maxsize=1)
def _transcript_view() -> str:
    schema = files("parley.runs").joinpath("schema.sql").read_text("utf-8")
    view = schema[schema.index("CREATE VIEW") :].strip().removesuffix(";")
    return view.replace("CREATE VIEW", "CREATE TEMP VIEW", 1)


def _connect(path: Path) -> sqlite3.Connection:
    """Connect for reading; a file in a read-only folder is opened as immutable, since SQLite cannot lock it."""
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


def _reason(error: Exception) -> str:
    text = str(error).lower()
    if "full" in text or getattr(error, "errno", None) == 28:
        return "the disk is full"
    if "readonly" in text or "read-only" in text or getattr(error, "errno", None) in (13, 30):
        return "the file or its folder is read-only"
    if "locked" in text:
        return "another process is writing to it"
    return str(getattr(error, "strerror", None) or error)


def _describe_open_error(path: Path, error: Exception) -> str:
    text = str(error)
    if "not a database" in text:
        return f"{path} is not a Parley run file"
    if any(sign in text for sign in ("malformed", "no such", "disk I/O", "decode", "unsupported file format")):
        return f"{path} is damaged or truncated ({text})"
    return f"{path} cannot be opened: {_reason(error)}"
