"""Which requests of a run are in which batch: written before a batch is made, so that none is sent twice."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from typing import NamedTuple

from parley.runs.store import RunFile, RunFileError

_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches (mark TEXT PRIMARY KEY, model TEXT NOT NULL, file TEXT NOT NULL, batch TEXT, "
    "made_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS batched (request TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID",
)


class Sent(NamedTuple):
    mark: str
    file: str
    """The uploaded requests."""
    batch: str | None
    """None where the batch was about to be made, and nobody heard whether it was."""


class BatchBook:
    def __init__(self, file: RunFile) -> None:
        self._file = file
        for table in _TABLES:
            self._write([(table, ())])

    def enter(self, mark: str, model: str, file: str, requests: Iterable[str]) -> None:
        """A batch that is about to be made; a request that was in an earlier one is in this one now."""
        self._write(
            [
                ("INSERT INTO batches VALUES (?, ?, ?, NULL, ?)", (mark, model, file, time.time())),
                *(("INSERT OR REPLACE INTO batched VALUES (?, ?)", (request, mark)) for request in requests),
            ]
        )

    def made(self, mark: str, batch: str) -> None:
        self._write([("UPDATE batches SET batch = ? WHERE mark = ?", (batch, mark))])

    def sent(self, request: str) -> Sent | None:
        """The last batch a request was in."""
        rows = self._file.rows(
            "SELECT b.mark, b.file, b.batch FROM batched r JOIN batches b ON b.mark = r.mark WHERE r.request = ?",
            (request,),
        )[1]
        return Sent(*rows[0]) if rows else None

    def _write(self, statements: list[tuple[str, tuple[object, ...]]]) -> None:
        db = self._file.db
        try:
            db.execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                db.execute(sql, values)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise RunFileError(f"{self._file.path} cannot be written: {error}") from None
