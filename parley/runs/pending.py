"""What units that are not done have paid for, kept in the run file where the reply cache is off.

The table `pending_replies` is created when the first reply is written, a unit's rows are deleted in the transaction
that stores the unit as done, and the table is dropped when the file is closed without any. So a finished run has none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping

from parley.agents.models.session import PendingReplies
from parley.runs.failures import RunFileError, reason
from parley.runs.schema import PENDING_TABLE
from parley.runs.store import RunFile

KEEP_SECONDS = 0.75
"""The shortest time between two writes. They are made in the engine's and the workers' ticks, about once a second; a
kill loses the replies that came since the last one."""
PendingRow = tuple[str, bytes, str]
"""Unit, address, reply."""


class UnfinishedUnits:
    """The replies of the units that one process runs.

    Args:
        earlier: Returns the stored replies of a unit.
        collect: Whether to collect new ones: not if they are in the reply cache.
    """

    def __init__(self, earlier: Callable[[str], Mapping[bytes, str]], *, collect: bool) -> None:
        self._earlier, self._collect = earlier, collect
        self._units: dict[str, PendingReplies] = {}

    def begin(self, unit: str) -> PendingReplies | None:
        """The replies of a unit that is about to be run; None if it has none and none are collected."""
        earlier = self._earlier(unit)
        if not earlier and not self._collect:
            return None
        replies = PendingReplies(earlier)
        if self._collect:
            self._units[unit] = replies
        return replies

    def done(self, unit: str) -> None:
        """Forget a unit that is stored."""
        self._units.pop(unit, None)

    def take(self) -> list[PendingRow]:
        """What came since the last time."""
        return [(unit, *reply) for unit, replies in self._units.items() for reply in replies.take()]


class PendingTable:
    """The table `pending_replies` of a run file that is open for writing."""

    def __init__(self, file: RunFile) -> None:
        self._file = file

    def of(self, unit: str) -> dict[bytes, str]:
        """The stored replies of a unit, by address."""
        if unit not in self._file.pending_units:
            return {}
        return dict(self._file.rows("SELECT address, reply FROM pending_replies WHERE unit = ?", (unit,))[1])

    def add(self, rows: Iterable[PendingRow]) -> None:
        """Write replies in one transaction."""
        if not (rows := list(rows)):
            return
        db = self._file.db
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute(PENDING_TABLE)
            db.executemany("INSERT OR REPLACE INTO pending_replies VALUES (?, ?, ?)", rows)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise RunFileError(f"{self._file.path} cannot be written: {reason(error)}") from None
        self._file.pending_units.update(unit for unit, _, _ in rows)
