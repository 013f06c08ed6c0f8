"""Content-addressed caches in SQLite files: of model replies and search results, and of toxicity scores.

The address of a reply is a hash of server, model, options, messages, schema and tools, and of the sample: the unit and
how often it made the same request. So repeats never get the same stored reply, while a resumed run gets back the
replies that it has already paid for.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from parley.agents.errors import ParleyError
from parley.agents.models.reply import Reply

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    address BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, made_at REAL NOT NULL
) WITHOUT ROWID
"""
COMMIT_SECONDS = 0.5
"""The shortest time between two commits."""


class TextCache:
    """Texts by address, in one SQLite file.

    Args:
        path: the file; it and its folder are created if they do not exist.
    """

    label = "cache"
    """What the file is called in error messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[tuple[bytes, str, str, float]] = []
        self._next_commit = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise ParleyError(
                f"the {self.label} {path} cannot be used ({error}); delete it, or run with --no-cache"
            ) from None

    def get_text(self, address: bytes) -> str | None:
        row = self._db.execute("SELECT reply FROM replies WHERE address = ?", (address,)).fetchone()
        return None if row is None else str(row[0])

    def put_text(self, address: bytes, model: str, text: str) -> None:
        """Committed immediately, unless the last commit was just now: a slow model's replies are all on disk, while a
        fast model's do not lock the file all the time."""
        self._pending.append((address, model, text, time.time()))
        if time.monotonic() >= self._next_commit:
            self.commit()

    def commit(self) -> None:
        """Write all pending texts."""
        if not self._pending:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", self._pending)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise ParleyError(f"the {self.label} {self.path} cannot be written: {error}") from None
        self._pending.clear()
        self._next_commit = time.monotonic() + COMMIT_SECONDS

    def close(self) -> None:
        self.commit()
        self._db.close()


class ReplyCache(TextCache):
    """The reply cache: model replies by the hash of their request, in one SQLite file.

    Args:
        path: the file; it and its folder are created if they do not exist.
    """

    label = "reply cache"

    def get(self, address: bytes) -> Reply | None:
        """The stored reply, marked as `cached`; None if there is none."""
        text = self.get_text(address)
        if text is None:
            return None
        reply = Reply.model_validate_json(text)
        reply.cached = True
        return reply

    def put(self, address: bytes, model: str, reply: Reply) -> None:
        """Store a reply; `model` is the client's name, for inspecting the file."""
        self.put_text(address, model, reply.model_dump_json())
