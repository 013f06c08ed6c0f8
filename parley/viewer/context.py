"""A run that is being looked at: its table in memory, its index growing in the background, its notes beside it."""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from parley.agents import ParleyError
from parley.runs import RunFile
from parley.runs.diagnosis import find_damage
from parley.viewer import bitmaps, reading
from parley.viewer.headline import headline
from parley.viewer.index import SearchIndex, fts_query, search_terms
from parley.viewer.library import Stamp, facets_of, stamp
from parley.viewer.notes import Notes
from parley.viewer.table import Query, UnitTable

SMALL = 3000
"""Up to so many units the table is read before the first answer; a larger run's first page comes straight from SQL."""


class ViewerContext:
    """Everything open about one run. Files are opened for each answer and closed again: a run that ends while it is
    looked at can fold its log away, and becomes one plain file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = Notes(path)
        self._index: SearchIndex | None = None
        self._table: UnitTable | None = None
        self._seen: Stamp | None = None
        self._tagged = -1
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._closed = threading.Event()
        self._trouble = ""
        self._headline_lock = threading.Lock()
        self._headline_due = 0.0
        self._matching = lru_cache(maxsize=32)(self._match)
        with RunFile.open(path) as file:
            self.units = int(file.rows("SELECT count(*) FROM units")[1][0][0])

    def file(self) -> RunFile:
        return RunFile.open(self.path)

    def close(self) -> None:
        self._closed.set()
        if self._worker is not None:
            self._worker.join()

    def wait(self, seconds: float) -> bool:
        """Until everything finished is looked at."""
        self.table(wait=True)
        if self._worker is not None:
            self._worker.join(seconds)
        return self._worker is None or not self._worker.is_alive()

    def table(self, *, wait: bool = False) -> UnitTable | None:
        """The table, up to date; None while it is still being read for the first time."""
        if self._table is None and (wait or self.units <= SMALL):
            self._load()
        if self._table is None:
            return None
        self._bring_up_to_date(self._table)
        return self._table

    def _load(self) -> None:
        with self._lock:
            if self._table is None:
                with self.file() as file:
                    table = UnitTable(file)
                self._index = self._index or SearchIndex(self.path)
                table.add(self._index.figures())
                self._table = table

    def _bring_up_to_date(self, table: UnitTable) -> None:
        now = stamp(self.path)
        if now != self._seen:
            with self._lock, self.file() as file:
                table.refresh(file)
            self._seen = now
            self.begin()
        if (version := self.notes.version()) != self._tagged:
            places = {unit: position for position, unit in enumerate(table.ids)}
            table.tags = {
                tag: bitmaps.from_positions((places[unit] for unit in units if unit in places), table.size)
                for tag, units in self.notes.tags().items()
            }
            self._tagged = version

    def begin(self) -> None:
        """Look at what was finished since, in the background; a small amount is waited for."""
        if self._worker is None or not self._worker.is_alive():
            self._worker = threading.Thread(target=self._look, name=f"index of {self.path.name}", daemon=True)
            self._worker.start()
        if self.units <= SMALL:
            self._worker.join(5.0)

    def _look(self) -> None:
        try:
            self._load()
            assert self._index is not None
            assert self._table is not None
            for batch in self._index.catch_up():
                with self._lock:
                    self._table.add(batch)
                self._matching.cache_clear()
                if self._closed.is_set():
                    return
            self._table.warm()
            self._trouble = ""
        except (ParleyError, OSError, sqlite3.Error) as error:
            self._trouble = str(error)  # shown on the page; what was looked at so far is there
        except Exception as error:
            self._trouble = find_damage(self.path) or f"the index failed: {error!r}"

    def _match(self, words: str, asked: bool) -> int:
        assert self._index is not None
        return bitmaps.from_positions(self._index.matching(words, asked=asked), self.units)

    def search(self, words: str, *, asked: bool) -> int | None:
        """The units with these words as a set; None where nothing was asked for."""
        return self._matching(words, asked) if fts_query(words) else None

    def page(self, query: Query, words: str, *, asked: bool) -> dict[str, Any]:
        table = self.table()
        if table is None:
            found = self._first_page(query)
            self.begin()  # only now: reading the table must not slow the first page down
            return found
        found_words = self.search(words, asked=asked)
        with self._lock:
            found = table.page(query, found_words)
            done = table.status.get("done", 0).bit_count()
        found |= {"looked": table.looked, "done": done, "loading": False, "trouble": self._trouble}
        if found_words is not None:
            with self.file() as file:
                ids = [row["id"] for row in found["rows"]]
                around = reading.excerpts(file, ids, search_terms(words), asked=asked)
            for row in found["rows"]:
                row["excerpt"] = around.get(row["id"])
        return found

    def _first_page(self, query: Query) -> dict[str, Any]:
        """Straight from the run file, while the table is being read: no filter, no order but the plan's."""
        columns, size = "id, position, facets, status, error", query.size
        parts = " UNION ALL ".join(
            f"SELECT * FROM (SELECT {columns} FROM units WHERE status = '{status}' ORDER BY position LIMIT {size})"
            for status in ("planned", "done", "failed")
        )
        with self.file() as file:
            names, rows = file.rows(f"{parts} ORDER BY position LIMIT {size}")
        shown = [dict(zip(names, row, strict=True)) for row in rows]
        for row in shown:
            row |= {"facets": facets_of(row["facets"]), "tags": []}
            row |= dict.fromkeys(("score", "margin", "choice", "flip", "changed", "parse"))
        return {
            "total": self.units,
            "matching": self.units,
            "rows": shown,
            "filters": [],
            "judges": [],
            "looked": 0,
            "done": 0,
            "loading": True,
            "trouble": self._trouble,
        }

    def headline(self) -> dict[str, Any]:
        """Computed once for a state of the run, and kept in the index's file. While the run goes on, at most a tenth
        of the time goes into it, and the figures may be a little old."""
        with self._headline_lock, self.file() as file:
            self._index = self._index or SearchIndex(self.path)
            done = file.counts()["done"]
            kept = self._index.recall("headline")
            begun = time.monotonic()
            if kept is None or (kept["done"] != done and begun > self._headline_due):
                kept = {"done": done, "found": headline(file)}
                self._index.remember("headline", kept)
                self._headline_due = time.monotonic() + 10 * (time.monotonic() - begun)
        found: dict[str, Any] = kept["found"]
        return found
