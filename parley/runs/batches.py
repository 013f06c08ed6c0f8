"""Which request of a run is in which provider batch: written before a batch is created, so that none is sent twice."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from typing import NamedTuple

from parley.runs.failures import RunFileError
from parley.runs.schema import BATCH_TABLES
from parley.runs.store import RunFile


class SentBatch(NamedTuple):
    mark: str
    """Our id of the batch, stored in its metadata at the provider, to find it there."""
    file: str
    """The provider's id of the uploaded requests."""
    batch: str | None
    """The provider's id of the batch; None if the process died before the provider confirmed it."""


class BatchLog:
    """The batches of a run, in two tables of its run file that only `--executor batch` creates."""

    def __init__(self, file: RunFile) -> None:
        self._file = file
        for table in BATCH_TABLES:
            self._write([(table, ())])

    def add(self, mark: str, model: str, file: str, requests: Iterable[str]) -> None:
        """Record a batch that is about to be created; its requests no longer belong to an earlier batch."""
        self._write(
            [
                ("INSERT INTO batches VALUES (?, ?, ?, NULL, ?)", (mark, model, file, time.time())),
                *(("INSERT OR REPLACE INTO batched VALUES (?, ?)", (request, mark)) for request in requests),
            ]
        )

    def confirm(self, mark: str, batch: str) -> None:
        """Record the id that the provider gave the batch."""
        self._write([("UPDATE batches SET batch = ? WHERE mark = ?", (batch, mark))])

    def find(self, request: str) -> SentBatch | None:
        """The last batch that contained the request."""
        rows = self._file.rows(
            "SELECT b.mark, b.file, b.batch FROM batched r JOIN batches b ON b.mark = r.mark WHERE r.request = ?",
            (request,),
        )[1]
        return SentBatch(*rows[0]) if rows else None

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
