"""A run that the viewer has open: its table in memory, its index updated in the background, its notes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from parley import __version__
from parley.agents import ParleyError
from parley.runs import RunFile
from parley.runs.diagnosis import find_damage
from parley.runs.notes import NotesFile
from parley.runs.reading import parse_facets
from parley.viewer import bitmaps
from parley.viewer.index import IndexedUnit, SearchIndex, excerpts, fts_query, search_terms
from parley.viewer.reporter import FAILED, NOT_COMPARED, Reporter, comparison_key, compute, unit_counts
from parley.viewer.run_folder import FileStamp, file_stamp
from parley.viewer.table import UnitQuery, UnitTable

SMALL_RUN = 3000
"""With up to this many units the table is read before the first page; otherwise the first page comes from SQL."""


class OpenRun:
    """One run's table, index and notes.

    The run file is opened for each request and closed again, so that a run that ends while it is being viewed can
    remove its write-ahead log and become a single file.

    Args:
        path: the run file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = NotesFile(path)
        self._table: UnitTable | None = None
        self._stamp: FileStamp | None = None
        self._notes_version = -1
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._worker: threading.Thread | None = None
        self._closed = threading.Event()
        self._index_error = ""
        self._cached_search = lru_cache(maxsize=32)(self._search)
        with RunFile.open(path) as file:
            self.size = int(file.rows("SELECT count(*) FROM units")[1][0][0])

    @cached_property
    def _index(self) -> SearchIndex:
        return SearchIndex(self.path)

    def file(self) -> RunFile:
        # Opened and closed for every request, so that a run that ends meanwhile can merge its WAL into one file.
        return RunFile.open(self.path)

    def close(self) -> None:
        self._closed.set()
        if self._worker is not None:
            self._worker.join()

    def wait_until_indexed(self, seconds: float) -> bool:
        """Wait until all finished units are indexed; False if that takes longer."""
        self.table(wait=True)
        if self._worker is not None:
            self._worker.join(seconds)
        return self._worker is None or not self._worker.is_alive()

    def table(self, *, wait: bool = False) -> UnitTable | None:
        """The table, up to date; None while a large run's table is being read for the first time."""
        if self._table is None and (wait or self.size <= SMALL_RUN):
            self._load()
        if self._table is None:
            return None
        self._refresh(self._table)
        return self._table

    def loaded_table(self) -> UnitTable:
        """The table, up to date; a large run's is waited for."""
        table = self.table(wait=True)
        assert table is not None
        return table

    def _load(self) -> None:
        with self._lock:
            if self._table is None:
                with self.file() as file:
                    table = UnitTable(file)
                table.add(self._index.units())
                self._table = table

    def _refresh(self, table: UnitTable) -> None:
        stamp = file_stamp(self.path)
        if stamp != self._stamp:
            with self._lock, self.file() as file:
                table.refresh(file)
            self._stamp = stamp
            self.start_indexing()
        if (version := self.notes.version()) != self._notes_version:
            positions = table.positions_by_id()
            table.tags = {
                tag: bitmaps.from_positions((positions[unit] for unit in units if unit in positions), table.size)
                for tag, units in self.notes.units_by_tag().items()
            }
            self._notes_version = version

    def start_indexing(self) -> None:
        """Index newly finished units in the background; for a small run, wait for it."""
        with self._starting:
            worker = self._worker
            if worker is None or not worker.is_alive():
                worker = threading.Thread(target=self._update_index, name=f"index of {self.path.name}", daemon=True)
                worker.start()
                self._worker = worker  # once it has started: other requests' threads wait for what stands here
        if self.size <= SMALL_RUN:
            worker.join(5.0)

    def _update_index(self) -> None:
        try:
            self._load()
            assert self._table is not None
            self._sort_ahead(self._table)
            for batch in self._index.update() if self.size <= SMALL_RUN else self._indexed_elsewhere(self._index):
                with self._lock:
                    self._table.add(batch)
                self._cached_search.cache_clear()
                if self._closed.is_set():
                    return
            self._sort_ahead(self._table)
            self._index_error = ""
        except (ParleyError, OSError, sqlite3.Error) as error:
            self._index_error = str(error)  # shown on the page, with the units indexed so far
        except Exception as error:
            self._index_error = find_damage(self.path) or f"indexing failed: {error!r}"

    def _sort_ahead(self, table: UnitTable) -> None:
        """Sort a large run before a request has to wait for it; a small one is sorted faster than the pauses take."""
        if self.size > SMALL_RUN:
            table.sort_common_keys()

    def _indexed_elsewhere(self, index: SearchIndex) -> Iterator[list[IndexedUnit]]:
        """Batches indexed in a process of its own, so that requests do not have to wait for the interpreter."""
        command = [sys.executable, "-m", "parley.viewer.index", str(self.path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                for line in process.stdout:
                    first, last = map(int, line.split())
                    yield index.units(first, last)
            finally:
                if self._closed.is_set():
                    process.kill()
            complaint = process.stderr.read().strip().splitlines()
        if process.returncode and not self._closed.is_set():
            raise OSError(f"indexing failed: {complaint[-1] if complaint else process.returncode}")

    def _search(self, text: str, include_prompts: bool) -> int:
        return bitmaps.from_positions(self._index.search(text, include_prompts=include_prompts), self.size)

    def search(self, query: UnitQuery) -> int | None:
        """The set of units that match the text search; None without a search term."""
        return self._cached_search(query.q, query.prompts) if fts_query(query.q) else None

    def page(self, query: UnitQuery) -> dict[str, Any]:
        """One page of units, with the counts of every filter and the progress of the index."""
        table = self.table()
        if table is None:
            page = self._first_page(query)
            self.start_indexing()  # afterwards: reading the table would slow the first page down
            return page
        matches = self.search(query)
        with self._lock:
            page = table.page(query, matches) | self.progress(table)
        if matches is not None:
            with self.file() as file:
                ids = [row["id"] for row in page["rows"]]
                found = excerpts(file, ids, search_terms(query.q), include_prompts=query.prompts)
            for row in page["rows"]:
                row["excerpt"] = found.get(row["id"])
        return page

    def progress(self, table: UnitTable) -> dict[str, Any]:
        """How many of the finished units are indexed: a page shows no others."""
        done = table.status.get("done", 0).bit_count()
        return {"indexed": table.indexed, "done": done, "loading": False, "index_error": self._index_error}

    def _first_page(self, query: UnitQuery) -> dict[str, Any]:
        """Units straight from the run file, while the table is being read: in the plan's order, planned ones last."""
        columns, size = "id, position, facets, status, error", query.size
        # One query per status, so that each can use the index on (status, position).
        parts = " UNION ALL ".join(
            f"SELECT * FROM (SELECT {columns} FROM units WHERE status = '{status}' ORDER BY position LIMIT {size})"
            for status in ("planned", "done", "failed")
        )
        with self.file() as file:
            names, values = file.rows(f"SELECT * FROM ({parts}) ORDER BY status = 'planned', position LIMIT {size}")
        rows = [dict(zip(names, row, strict=True)) for row in values]
        for row in rows:
            row |= {"facets": parse_facets(row["facets"]), "tags": [], "answers": []}
            row |= dict.fromkeys(("score", "margin", "choice", "flip", "changed", "parse"))
        return {
            "total": self.size,
            "matching": self.size,
            "rows": rows,
            "filters": [],
            "judges": [],
            "indexed": 0,
            "done": 0,
            "loading": True,
            "index_error": self._index_error,
        }

    def headline(self, reporter: Reporter | None = None, *, first: bool = False) -> dict[str, Any]:
        """What the run found, as of the last time it was computed; "pending" while it is being computed.

        Args:
            reporter: computes it in the background; without one, it is computed now.
            first: whether it goes before other runs.
        """
        with self.file() as file:
            units = file.counts()
        cached = self._cached("headline")
        # People's labels correct the judges in the report.
        labels = self.notes.label_count()
        if cached is not None and (cached["units"], cached["labels"]) == (units, labels):
            return dict(cached["figures"])
        if reporter is None:
            return dict(compute(self.path, self._index)["figures"])
        if (self.path,) in reporter.failed:
            return {"cautions": [], "unavailable": FAILED}
        # During a run it takes at most a tenth of the time, so it may be slightly out of date.
        if cached is None or time.time() > cached["at"] + 10 * cached["seconds"]:
            reporter.request(self.path, first=first)
        if cached is None:
            return {"cautions": [], "pending": True, "progress": reporter.progress(self.path)}
        return {**cached["figures"], "pending": False}

    def _cached(self, key: str) -> dict[str, Any] | None:
        """What this version of Parley computed; another version's numbers may not be those of its report."""
        stored: dict[str, Any] | None = self._index.load(key)
        return stored if stored is not None and stored.get("version") == __version__ else None

    def pictures(self) -> dict[str, str]:
        """The report's figures by name, as SVG; none until the report was made."""
        return dict(self._index.load("pictures") or {})

    def comparison(self, other: Path, reporter: Reporter) -> dict[str, Any]:
        """The other run minus this one on the units that both have; "pending" while it is being computed.

        Args:
            other: the other run's file.
            reporter: computes it in the background.
        """
        cached = self._cached(comparison_key(other))
        if cached is not None and cached["units"] == unit_counts(self.path, other):
            return dict(cached["found"])
        if (self.path, other) in reporter.failed:
            return {"unavailable": NOT_COMPARED}
        reporter.request(self.path, other, first=True)
        progress = {} if cached else {"progress": reporter.progress(self.path, other)}
        return {**(cached["found"] if cached else {}), **progress, "pending": cached is None}
