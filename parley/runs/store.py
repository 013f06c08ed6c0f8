"""A run file, in SQLite: config, versions, prompts, units, every message and call, verdicts, events.

    with RunFile.open(path) as file:
        print(file.info(), file.counts())

A unit is written in one transaction when it is finished, not message by message: whenever the process is killed, a unit
is either stored completely or not done. One file for all runs would be simpler to list, but runs could not be shared
separately, and damage would affect all of them.
"""

from __future__ import annotations

import json
import operator
import os
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

from parley.agents import LEAST_ON_SCALE, ON_SCALE, READ
from parley.base.errors import ConfigError
from parley.judging import Accepted, Unit
from parley.runs.opening import (
    MORE_THAN_ITS_SIZE,
    FileMarks,
    GuardedConnection,
    NotOpened,
    Replaced,
    RunFileError,
    RunLock,
    describe_open_error,
    open_to_read,
    open_to_write,
    reason,
)
from parley.runs.rows import READABLE, UNWRITABLE, Record, Row, Rows, finite, to_rows, unwritable_message
from parley.runs.schema import (
    FINISH_UNIT,
    FINISHED_VERDICTS,
    INSERT,
    LONGEST_INFO,
    VERDICT_CHECKS,
    add_checks,
    check_run,
    checked_verdicts,
    create_file,
    damaged_plan,
    prepare_to_write,
    unit_is_damaged,
)

CLOSING_SECONDS = 2.0
"""How long a writer waits for readers before it merges the write-ahead log into the file."""
ROWS_AT_ONCE, STREAMED_AT_ONCE = 50_000, 500
ROWS_BETWEEN_MERGES = 1000
"""Rows between merges of the log: about SQLite's 1,000 pages, or 4 MB."""


class Spending(NamedTuple):
    """A run's spending so far; replies from the cache are free and not counted."""

    calls: int
    tokens: int
    cost: float
    """US dollars; calls without a known price count as 0."""
    priced: bool
    """Whether the price of every call is known."""


class Replies(NamedTuple):
    """The replies of a run's agents."""

    statuses: Mapping[str, int]
    """Replies by parse status; "" if no type was requested."""
    cut: int
    """Replies that reached their token limit, without drafts."""
    drafts: int
    """Texts that a critique loop's generator wrote. A protocol may limit their length, so a cut is no fault."""
    cut_drafts: int
    """Drafts that reached their token limit."""
    whole_texts: int
    """Replies that needed no parsing and were not cut off."""

    @property
    def total(self) -> int:
        return sum(self.statuses.values())

    @property
    def typed(self) -> int:
        """Replies that were to be parsed."""
        return self.total - self.statuses.get("", 0)

    @property
    def read(self) -> int:
        """Replies that could be parsed."""
        return sum(self.statuses.get(status, 0) for status in READABLE)


class RunFile:
    """One run on disk. Opened for reading, or for writing by one process at a time; a context manager.

    Use `RunFile.open` or `RunFile.create`.
    """

    def __init__(self, path: Path, db: GuardedConnection, lock: RunLock | None = None) -> None:
        self.path = path
        self.db = db
        self._lock = lock
        self._marks = FileMarks(path) if lock is not None else None
        self._merged = db.total_changes
        self._replaced: Replaced | None = None
        self._plan_checked = False

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
            path: The path; its folder is created if needed.
            info: The table `run`, see `parley.runs.describe`.
            prompts: The study's prompts, by name.
            plan: The units, in order.
        """
        if (
            path.is_symlink() and not path.exists()
        ):  # replaced by a file, it would be another run than that of its target
            raise RunFileError(
                f"{path} is a symbolic link to a file that does not exist; name that file, or remove the link"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = RunLock(path)
        except NotOpened as error:
            raise RunFileError(f"{path} {error}") from None
        except OSError as error:
            raise RunFileError(f"{path} cannot be written: {reason(error)}") from None
        try:
            if path.exists():  # checked under the lock: an existing run must never be overwritten
                raise RunFileError(f"another process has just created {path}; run the same command again to resume it")
            for suffix in ("-wal", "-journal"):  # SQLite would take it for a part of the new file
                if os.path.lexists(left := f"{path}{suffix}"):
                    raise RunFileError(f"{left} is left over from a run file that no longer exists; move it away first")
            create_file(path, info, prompts, plan)
        except BaseException:
            lock.release()
            raise
        return cls.open(path, write=True, lock=lock)

    @classmethod
    def open(cls, path: Path, *, write: bool = False, lock: RunLock | None = None) -> RunFile:
        """Open a run file.

        Args:
            path: The file.
            write: Open it for writing, by one process at a time. The default is for reading.
            lock: The writer's lock, if `create` already has it.
        """
        if not os.path.isfile(path):
            hint = f"; {path} is a folder, name a file in it" if os.path.isdir(path) else ""
            raise ConfigError(f"there is no run file {path}{hint}")
        db = None
        try:
            db = open_to_read(path)  # changes nothing
            check_run(db)
            if write:
                db.close()
                lock = lock or RunLock(path)
                db = open_to_write(path)
                check_run(db)  # again: it may have been written before we had the lock
                prepare_to_write(db)
        except (NotOpened, sqlite3.Error, UnicodeError, OSError) as error:
            if db is not None:
                db.close()
            if lock is not None:
                lock.release()
            raise RunFileError(describe_open_error(path, error)) from None
        return cls(path, db, lock)

    def info(self) -> dict[str, Any]:
        """The table `run`: study, target, config, models, sources, plan, units, versions."""
        # Pages and reports copy it a dozen times: 200 MB took 2.9 GB.
        limit = self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_INFO)
        try:
            return {key: json.loads(value) for key, value in self._rows("SELECT key, value FROM run")}
        except (ValueError, TypeError, RecursionError):
            raise RunFileError(f"{self.path} is damaged: the table 'run' cannot be read") from None
        finally:
            self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)

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

    def done_among(self, units: Sequence[str]) -> set[str]:
        """The done units among these."""
        marks = ", ".join("?" * len(units))
        # Read from the table itself, not from an index on the status: a damaged table must be noticed.
        rows = self.rows(f"SELECT id, status FROM units WHERE id IN ({marks})", units)[1]
        return {unit for unit, status in rows if status == "done"}

    def spent(self) -> Spending:
        """The run's spending, including units that were not finished and calls of a process that was killed."""
        calls, tokens, cost, unknown = next(
            self._rows(
                "SELECT count(*), coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost), 0.0), "
                "coalesce(sum(cost IS NULL), 0) FROM calls WHERE NOT cached"
            )
        )
        try:
            # Older files have a row for each process; `spent` counts all of them.
            for kind, detail in self._rows(
                "SELECT kind, detail FROM events WHERE kind IN ('abandoned', 'spent') ORDER BY kind"
            ):
                stored, counted = json.loads(detail), (calls, tokens, cost)
                join = max if kind == "spent" else operator.add
                calls, tokens, cost = map(join, counted, stored[:3])
            return Spending(int(calls), int(tokens), float(cost), unknown == 0)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise RunFileError(f"{self.path} is damaged: its calls cannot be summed up") from None

    def replies(self) -> Replies:
        """Parse statuses of the replies of finished units."""
        rows = self._rows(
            "SELECT coalesce(m.parse_status, ''), "
            "m.role = 'generator' AND coalesce(m.parse_status, 'copied') IN ('copied', 'empty'), "
            "coalesce(m.cut, 0), count(*) FROM messages m JOIN units u ON u.id = m.unit "
            "WHERE u.status = 'done' AND m.role NOT IN ('narrator', 'coordinator') GROUP BY 1, 2, 3"
        )
        statuses, numbers = Counter[str](), Counter[tuple[bool, bool]]()
        whole = 0
        for status, draft, cut, count in rows:
            statuses[status] += count
            numbers[bool(draft), bool(cut)] += count
            whole += 0 if status or cut else count
        return Replies(
            statuses=dict(statuses),
            cut=numbers[False, True],
            drafts=numbers[True, False] + numbers[True, True],
            cut_drafts=numbers[True, True],
            whole_texts=whole,
        )

    def lost_verdicts(self) -> dict[str, int]:
        """The parse statuses of all verdicts, if none of them could be read; else empty.

        A coordinator's are left out: they come from rules, which also apply to refusals.
        """
        readable = "SELECT EXISTS (SELECT 1 FROM verdicts WHERE status IN ('ok', 'repaired') AND role != 'coordinator')"
        if next(self._rows(readable))[0]:
            return {}
        return dict(self._rows("SELECT status, count(*) FROM verdicts WHERE role != 'coordinator' GROUP BY 1"))

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

    def ballots(self) -> Iterator[Row]:
        """Every silent ballot of finished units: the unit's position, judge, round, metric and share.

        The share is that of probability, or of sampled replies, on the ballot's answers; None (NaN in older files) if
        unusable.
        """
        for position, judge, round, text in self.stream(
            "SELECT u.position, m.speaker, m.round, m.expected FROM units u JOIN messages m ON m.unit = u.id "
            "WHERE u.status = 'done' AND m.expected IS NOT NULL ORDER BY u.position, m.seq"
        ):
            expected = finite(json.loads(text))
            for key, share in expected.items():
                metric = key.removesuffix(f" {ON_SCALE}").removesuffix(f" {READ}")
                if metric != key:
                    is_read = share < LEAST_ON_SCALE or any(name.startswith(f"{metric}=") for name in expected)
                    yield position, judge, round, metric, share if is_read else None

    def refuse_if_replaced(self) -> None:
        """Raise if the file was removed, replaced or overwritten since it was opened for writing.

        SQLite would continue: it would leave the log beside the file there now, and merge it into that.
        """
        if self._replaced is None and self._marks is not None and (how := self._marks.changed()):
            kept = self._marks.drop_logs(self.db)
            merge = f"; {kept} has the run's last units: name it FILE-wal, next to the run file FILE" if kept else ""
            self._replaced = Replaced(
                f"{self.path} was {how} while it was being run: the file there now is left as it is; the replies so "
                f"far are in the reply cache{merge}"
            )
        if self._replaced is not None:
            raise self._replaced

    def _merge_often(self) -> None:
        """Merge the log into the file now and then. SQLite would do so without checking the file first."""
        if self.db.total_changes - self._merged >= ROWS_BETWEEN_MERGES and self._marks is not None:
            self.refuse_if_replaced()
            with self._marks.merging():
                self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._merged = self.db.total_changes

    def write(self, finished: Sequence[Record | Rows], spent: Sequence[float] | None = None) -> list[Rows]:
        """Write finished units in one transaction, and return them as they were written.

        A unit with a value that SQLite cannot store (a user's study may return anything) is written as failed.

        Args:
            finished: The units.
            spent: The run's calls, tokens and dollars so far, to be stored with them.
        """
        self.refuse_if_replaced()
        units = [to_rows(unit) if isinstance(unit, Record) else unit for unit in finished]
        try:
            self._write(units, spent)
            return units
        except UNWRITABLE as error:
            if len(units) > 1:
                return [rows for unit in units for rows in self.write([unit], spent)]
            failed = units[0].as_failed(unwritable_message(error))
            self._write([failed], spent)
            return [failed]

    def _write(self, units: Sequence[Rows], spent: Sequence[float] | None) -> None:
        texts = {text: address for rows in units for text, address in rows.texts.items()}
        db = self.db
        try:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR IGNORE INTO texts (text, id) VALUES (?, ?)", texts.items())
            db.executemany(INSERT["messages"], (row for rows in units for row in rows.messages))
            db.executemany(INSERT["calls"], (row for rows in units for row in rows.calls))
            db.executemany(INSERT["verdicts"], (row for rows in units for row in rows.verdicts))
            db.executemany(FINISH_UNIT, (rows.unit for rows in units))
            # Failed units are run again, and need no checksums.
            add_checks(db, [rows.id for rows in units if not rows.failed])
            if spent is not None:
                detail = json.dumps(list(spent))
                if not db.execute("UPDATE events SET detail = ? WHERE kind = 'spent'", (detail,)).rowcount:
                    db.execute("INSERT INTO events VALUES (?, 'spent', ?)", (time.time(), detail))
            db.execute("COMMIT")
            self._merge_often()
        except (sqlite3.Error, *UNWRITABLE) as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if isinstance(error, UNWRITABLE):
                raise
            raise RunFileError(
                f"{self.path} cannot be written: {reason(error)}; units finished before are stored"
            ) from None

    def note(self, kind: str, detail: str) -> None:
        """Add an event: its kind (started, stopped, ended, look, …) and a detail."""
        self.refuse_if_replaced()
        try:
            self.db.execute("INSERT INTO events VALUES (?, ?, ?)", (time.time(), kind, detail))
        except sqlite3.Error as error:
            raise RunFileError(f"{self.path} cannot be written: {reason(error)}") from None

    def accepted(self) -> Iterator[Accepted]:
        """The replies that a writing study accepted (verdict `accepted` of 1), in the plan's order."""
        _, rows = self.rows(
            "SELECT u.facets, m.parsed FROM units u JOIN verdicts v ON v.unit = u.id "
            "JOIN messages m ON m.unit = u.id AND m.round = v.round AND m.speaker = v.judge "
            "WHERE u.status = 'done' AND v.metric = 'accepted' AND v.value = 1 ORDER BY u.position, m.seq"
        )
        return (Accepted(json.loads(facets), json.loads(parsed)) for facets, parsed in rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of a query, for frames and the viewer."""
        rows: list[tuple[Any, ...]] = []
        with self._reading():
            cursor = self.db.execute(sql, values)
            while part := cursor.fetchmany(ROWS_AT_ONCE):
                rows += part
                self._refuse_too_many(len(rows))
            self.db.refuse_if_changed()
            return [column[0] for column in cursor.description], rows

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, one by one, for results that do not fit in memory."""
        with self._reading():
            cursor, count = self.db.execute(sql, values), 0
            while part := cursor.fetchmany(STREAMED_AT_ONCE):
                self.db.refuse_if_changed()
                count += len(part)
                self._refuse_too_many(count)
                yield from part

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (NotOpened, sqlite3.DatabaseError, UnicodeError) as error:
            raise RunFileError(describe_open_error(self.path, error)) from None

    def _refuse_too_many(self, rows: int) -> None:
        """Raise if there are more rows than fit into the file: its pages then form a cycle."""
        if rows >= ROWS_AT_ONCE and rows > self.db.size():
            raise NotOpened(MORE_THAN_ITS_SIZE)

    def check_plan(self) -> None:
        """Raise if the facets of a unit were changed since they were written."""
        if not self._plan_checked:
            self._refuse_damaged(damaged_plan)
            self._plan_checked = True

    def check_verdicts(self) -> None:
        """Raise if the verdicts of a unit were changed since they were written."""
        deque(self.verdicts(), maxlen=0)

    def verdicts(self) -> Iterator[Row]:
        """The verdicts of finished units: position, number, judge and the rest, in the order of the plan.

        Raises if those of a unit were changed since they were written.
        """
        return checked_verdicts(self.stream(FINISHED_VERDICTS), self._rows(VERDICT_CHECKS), self._refuse_unit)

    def check_unit(self, unit: str) -> None:
        """Raise if anything of a unit was changed since it was written."""
        self._refuse_damaged(lambda db: iter([unit] if unit_is_damaged(db, unit) else []))

    def _refuse_damaged(self, find: Callable[[sqlite3.Connection], Iterator[str]]) -> None:
        with self._reading():
            unit = next(find(self.db), None)
            self.db.refuse_if_changed()
        if unit is not None:
            self._refuse_unit(unit)

    def _refuse_unit(self, unit: str) -> NoReturn:
        raise RunFileError(
            f"{self.path} is damaged: unit '{unit}' is not as it was written (its checksum differs); "
            f"docs/runs.md says how it is run again"
        )

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows(sql)[1])

    def close(self) -> None:
        """Close the file; a writer also merges SQLite's write-ahead log into it, unless a reader keeps it open."""
        if self._lock is not None:
            with suppress(Replaced):
                self.refuse_if_replaced()
                self._merge_log()
            if self._marks is not None:
                self._marks.close(self.db)
            self._lock.release()
        else:
            self.db.close()

    def _merge_log(self) -> None:
        """Merge the log. Readers open a run only briefly, and cannot merge it themselves."""
        end = time.monotonic() + CLOSING_SECONDS
        with suppress(sqlite3.Error):
            while True:
                try:
                    self.db.execute("PRAGMA journal_mode = DELETE")
                    return
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > end:
                        self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
                        return
                    time.sleep(0.02)
