"""Caches addressed by content, in one SQLite file each beside the runs: of model replies and what was found, of scores.

The address of a reply covers server, model, parameters, messages, schema and tools, and the sample: the unit of the
run and how often it asked the same thing. So repeats never collapse into one reply, while a run that was cut short
gets back what it had already paid for.
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


class TextCache:
    """Texts by address; `holds` says what they are, for a person who must mend the file."""

    holds = "cache"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fresh: list[tuple[bytes, str, str, float]] = []
        self._due = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise ParleyError(
                f"the {self.holds} {path} cannot be used ({error}); delete it, or run with --no-cache"
            ) from None

    def get_text(self, address: bytes) -> str | None:
        row = self._db.execute("SELECT reply FROM replies WHERE address = ?", (address,)).fetchone()
        return None if row is None else str(row[0])

    def put_text(self, address: bytes, model: str, text: str) -> None:
        """Written at once, unless the last time was just now: a slow model's replies are all safe, and a fast one's
        rarely lock the file."""
        self._fresh.append((address, model, text, time.time()))
        if time.monotonic() >= self._due:
            self.commit()

    def commit(self) -> None:
        if not self._fresh:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", self._fresh)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise ParleyError(f"the {self.holds} {self.path} cannot be written: {error}") from None
        self._fresh.clear()
        self._due = time.monotonic() + COMMIT_SECONDS

    def close(self) -> None:
        self.commit()
        self._db.close()


class ReplyCache(TextCache):
    """Model replies by the hash of what was asked, in one SQLite file."""

    holds = "reply cache"

    def get(self, address: bytes) -> Reply | None:
        text = self.get_text(address)
        if text is None:
            return None
        reply = Reply.model_validate_json(text)
        reply.cached = True
        return reply

    def put(self, address: bytes, model: str, reply: Reply) -> None:
        self.put_text(address, model, reply.model_dump_json())
