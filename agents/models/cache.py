"""The reply cache: model replies and search results by address, in a SQLite file.

The address of a reply is a hash of server, model, options, messages, schema and tools, and of the sample: the unit and
how often it made the same request. Repeats therefore never share a stored reply, while a resumed run gets back the
replies that it has already paid for. A damaged cache is set aside under another name, and an empty one replaces it. A
sound cache that cannot be opened or written (too many open files, a read-only disk) stays as it is and stops the run.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from parley.base.errors import ParleyError
from parley.base.home import say, set_aside

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    address BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, made_at REAL NOT NULL
)
"""
# Not WITHOUT ROWID, as older caches are: addresses are random, so that every row would be put between others, at five
# times the CPU (30 µs at 10,000 replies, here 6), and one of more than 1 KB would take a page of its own.
_COLUMNS = ["address", "model", "reply", "made_at"]
COMMIT_SECONDS = 0.5
"""The shortest time between two commits."""
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT}
"""SQLite's errors for a file with wrong content. Errors in statements count: ours match our tables."""
APPLICATION_ID = 0x50415250
T = TypeVar("T")


class NotOurs(sqlite3.DatabaseError):
    """The file is a sound database, but not one of our caches."""

    sqlite_errorcode = sqlite3.SQLITE_FORMAT


ERRORS = (sqlite3.Error, UnicodeError)
"""Errors that reading and writing a cache may raise. In a damaged file, SQLite's messages may not be UTF-8."""


def _is_damage(error: Exception) -> bool:
    is_undecodable = isinstance(error, UnicodeError) or "Could not decode" in str(error)
    return is_undecodable or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


class ReplyCache:
    """Model replies and search results, by the hash of their request.

    Args:
        path: the file; it and its folder are created if they do not exist.
        alone: whether this is the only process that writes to it. Missing replies are then not looked up in the
            file, which saves a tenth of a message's CPU time.
    """

    PROMISED = 1
    """The mark of a cache that a message has promised: the next run of that name gets its replies."""

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        self.path = path
        self._pending: list[tuple[bytes, str, str, float]] = []
        self._next_commit = 0.0
        self._warned = False
        self._file: tuple[int, int] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._open()
            except ERRORS as error:
                if not _is_damage(error):
                    raise
                self._begin_anew(error)
        except (*ERRORS, OSError) as error:
            raise ParleyError(
                f"the reply cache {path} cannot be opened ({self._reason(error)}); fix that, or run with --no-cache"
            ) from None
        self._known: set[bytes] | None = set() if alone else None
        try:
            if self._known is not None:
                self._known.update(row[0] for row in self._db.execute("SELECT address FROM replies"))
        except ERRORS as error:
            self._replace_damaged(error, "read")

    @staticmethod
    def mark(path: Path) -> int | None:
        """The `user_version` of a cache; None if the file is not one that Parley made. An empty file is to be one."""
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            header = file.read(72)
        ours = header.startswith(b"SQLite format 3") and int.from_bytes(header[68:]) == APPLICATION_ID
        return int.from_bytes(header[60:64]) if ours or not header else None

    def _open(self) -> None:
        self._file = self._identity()
        self._db = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        try:
            things = self._db.execute(
                "SELECT type, name FROM sqlite_master WHERE name <> 'sqlite_autoindex_replies_1'"
            ).fetchall()
            columns = [row[1] for row in self._db.execute("PRAGMA table_info(replies)")]
            if things and (things != [("table", "replies")] or columns != _COLUMNS):
                raise NotOurs("it is a database with other tables")
            self._db.execute("PRAGMA synchronous=OFF")  # first: the others would wait for the disk, at every start
            if not things:
                self._db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            self._db.execute("PRAGMA journal_mode=WAL")  # later: the file itself has the id, not only its log
            if not things:
                self._db.execute(_SCHEMA)
        except BaseException:
            self._db.close()
            raise
        self._file = self._file or self._identity()

    def _identity(self) -> tuple[int, int] | None:
        """Identifies this file, as opposed to another one of the same name."""
        try:
            file = self.path.stat()
        except FileNotFoundError:
            return None
        return file.st_dev, file.st_ino

    def _begin_anew(self, error: Exception) -> None:
        """Set the damaged file aside, unless another process has done so, and open a new one."""
        self._db.close()
        if self._identity() == self._file is not None:
            try:
                set_aside(self.path, "reply cache", error)
            except OSError as obstacle:
                raise ParleyError(
                    f"the reply cache {self.path} is damaged ({error}) and cannot be set aside "
                    f"({obstacle.strerror}); move it away, or run with --no-cache"
                ) from None
        self._open()

    def _reason(self, error: Exception) -> str:
        """Why a file cannot be opened: the system's reason, since SQLite gives none."""
        if isinstance(error, sqlite3.Error):
            try:
                os.close(os.open(self.path, os.O_RDWR))
            except OSError as cause:
                return cause.strerror or str(cause)
        return getattr(error, "strerror", None) or str(error)

    async def find(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """The same as `read`. Asynchronous, since a worker's cache is in another process."""
        if self._known is not None and address not in self._known:
            return None
        return self.read(address, parse)

    def read(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """Parse the stored text; None if there is none, or if it cannot be parsed.

        Args:
            address: The text's address.
            parse: May raise `ValueError`, `TypeError` or `RecursionError`: the entry is then damaged, and a miss.
        """
        try:
            row = self._db.execute("SELECT CAST(reply AS BLOB) FROM replies WHERE address = ?", (address,)).fetchone()
        except ERRORS as error:
            self._replace_damaged(error, "read")
            return None
        if row is None:
            return None
        try:
            return parse(str(row[0], "utf-8"))
        except (ValueError, TypeError, RecursionError):
            if not self._warned:
                self._warned = True
                say(f"the reply cache {self.path} has an entry that cannot be read; such entries are made again")
            return None

    def _replace_damaged(self, error: Exception, what: str) -> None:
        """Start a new file if this one is damaged; otherwise raise an error that names it."""
        try:
            if _is_damage(error):
                self._begin_anew(error)
                return
        except (*ERRORS, OSError) as second:
            raise ParleyError(f"the reply cache {self.path} cannot be {what}: {self._reason(second)}") from None
        raise ParleyError(f"the reply cache {self.path} cannot be {what}: {self._reason(error)}") from None

    def put_text(self, address: bytes, model: str, text: str) -> None:
        """Store a text; `model` names its source, for people who inspect the file.

        It is committed immediately, unless the last commit was just now: a slow model's replies are all on disk, while
        a fast model's do not lock the file all the time.
        """
        if self._known is not None:
            self._known.add(address)
        self._pending.append((address, model, text, time.time()))
        if time.monotonic() >= self._next_commit:
            self.commit()

    def commit(self) -> None:
        """Write all pending texts."""
        if not self._pending:
            return
        try:
            self._write_pending()
        except ERRORS as error:
            self._replace_damaged(error, "written")
            try:
                self._write_pending()
            except ERRORS as again:
                raise ParleyError(f"the reply cache {self.path} cannot be written: {again}") from None
        self._pending.clear()
        self._next_commit = time.monotonic() + COMMIT_SECONDS

    def _write_pending(self) -> None:
        with self._db:  # commits, or rolls back
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", self._pending)

    def promise(self) -> None:
        """Keep the replies for the next run of this name."""
        self.commit()
        self._db.execute(f"PRAGMA user_version={self.PROMISED}")

    def close(self) -> None:
        self.commit()
        self._db.close()
