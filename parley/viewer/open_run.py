"""A run that is open in the viewer: its units, its notes, and its index, which grows in the background.

The page gets the units as a table in columns, which it filters, sorts and counts by itself. Facets come from the plan
and never change: they are sent once, as labels and a code for each unit. Figures are sent as units are indexed.
`static/units.js` is the only place that answers a query; an exported page brings the same table.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from array import array
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from parley import __version__
from parley.agents import ParleyError
from parley.runs import RunFile
from parley.runs.diagnosis import find_damage
from parley.runs.example import shipped_page
from parley.runs.notes import NotesFile
from parley.runs.reading import parse_facets
from parley.viewer.figures import UnitFigures, UnitUsage
from parley.viewer.index import SearchIndex, run_identity
from parley.viewer.reporter import FAILED, Reporter, cache_key, compute, early_cautions, unit_counts
from parley.viewer.run_folder import FileStamp, file_stamp

WAIT_SECONDS = 1.0
"""How long a page waits for indexing, so that a small run is complete when first shown."""


class OpenRun:
    """One run's units, index and notes.

    The run file is opened for each request and closed again, so that a run that ends while it is being viewed can
    remove its write-ahead log and become a single file.

    Args:
        path: the run file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = NotesFile(path)
        self._stamp: FileStamp | None = None
        self._starting = threading.Lock()
        self._worker: threading.Thread | None = None
        self._closed = threading.Event()
        self._index_error = ""

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
        self._start_indexing()
        assert self._worker is not None
        self._worker.join(seconds)
        return not self._worker.is_alive()

    def _start_indexing(self) -> None:
        """Index newly finished units in the background."""
        with self._starting:
            stamp = file_stamp(self.path)
            if stamp != self._stamp and (self._worker is None or not self._worker.is_alive()):
                self._worker = threading.Thread(
                    target=self._update_index, name=f"index of {self.path.name}", daemon=True
                )
                self._worker.start()
                self._stamp = stamp

    def _update_index(self) -> None:
        try:
            for _ in self._index.update():
                if self._closed.is_set():
                    return
            self._index_error = ""
        except (ParleyError, OSError, sqlite3.Error) as error:
            self._index_error = str(error)  # shown on the page, with the units indexed so far
        except Exception as error:
            self._index_error = find_damage(self.path) or f"indexing failed: {error!r}"

    @cached_property
    def _planned(self) -> tuple[str, str]:
        """The plan's name, since another run may later have the same path, and its units for the page, as JSON."""
        with self.file() as file:
            file.check_plan()
            planned = planned_units(file.rows("SELECT id, facets FROM units ORDER BY position")[1])
            return run_identity(file), json.dumps({**planned, **PAGE})

    def units(self, plan: str, after: int) -> str:
        """The units for the page, as JSON: all or only new ones.

        Args:
            plan: the plan that the page has already; "" if none.
            after: the number that came with the figures that it has.
        """
        name, planned = self._planned  # before the index: two threads would share one interpreter
        self.wait_until_indexed(WAIT_SECONDS)
        same_plan = plan == name
        last, figures = self._index.rows(after if same_plan else 0)
        with self.file() as file:
            new = {**progress_of(file), "plan": name, "after": last}
        new |= {"tags": self.notes.units_by_tag(), "index_error": self._index_error}
        start = "{" if same_plan else f"{planned[:-1]},"
        return f'{start}{json.dumps(new)[1:-1]},"figures":{figures}}}'

    def exported_units(self, units: Sequence[str]) -> dict[str, Any]:
        """The units for the page of an export."""
        with self.file() as file:
            progress = progress_of(file)
            rows = {row[0]: row for row in file.rows("SELECT id, facets, position FROM units")[1]}
        chosen = [rows[unit] for unit in units]
        places = {position: place for place, (_, _, position) in enumerate(chosen)}
        status = "".join(progress["status"][position] for position in places)
        of_run = planned_units([row[:2] for row in rows.values()])["facets"].items()
        return {
            **planned_units([(unit, facets) for unit, facets, _ in chosen]),
            # What a part of a run has once, such as a scenario, is not an id: see `alike` in units.js.
            "repeated": [
                name for name, column in of_run if len(column["labels"]) < len(rows) - column["codes"].count(-1)
            ],
            **PAGE,
            "status": status,
            "done": status.count("d"),
            "errors": {places[position]: error for position, error in progress["errors"].items() if position in places},
            "figures": [[places[row[0]], *row[1:]] for row in json.loads(self._index.rows()[1]) if row[0] in places],
            "tags": self.notes.units_by_tag(),
            "index_error": "",
        }

    def search(self, text: str, *, prompts: bool) -> list[int]:
        """The positions of the units whose replies, or also prompts, contain the words."""
        return self._index.search(text, include_prompts=prompts)

    def report(self, *others: Path, reporter: Reporter | None = None, first: bool = False) -> dict[str, Any]:
        """The run's results, or its comparison with another run, as last computed.

        Args:
            others: the run that this one is compared with, if any.
            reporter: computes it in the background, and until then it is "pending"; without one, it is computed now.
            first: whether it has priority.
        """
        paths = (self.path, *others)
        units, cached = unit_counts(paths), self._cached(cache_key(paths))
        if cached is None and not others:
            cached = self._shipped()
        if cached is not None and cached["units"] == units:
            return dict(cached["figures"])
        if reporter is None:
            return dict(compute(self._index, *paths)["figures"])
        if paths in reporter.failed:
            return {"cautions": [], "unavailable": FAILED[len(others)]}
        # During a run it takes at most a tenth of the time, so it may be slightly out of date.
        if cached is None or time.time() > cached["at"] + 10 * cached["seconds"]:
            reporter.request(*paths, first=first)
        if cached is None:
            with self.file() as file:
                return {"cautions": early_cautions(file), "pending": True, "progress": reporter.progress(*paths)}
        return {**cached["figures"], "pending": False}

    def _shipped(self) -> dict[str, Any] | None:
        """Copy the example's shipped page into the cache."""
        for key, value in shipped_page(self.path).items():
            self._index.store(key, value)
        return self._cached("headline")

    def _cached(self, key: str) -> dict[str, Any] | None:
        """The cached result, if this version of Parley computed it."""
        stored: dict[str, Any] | None = self._index.load(key)
        return stored if stored is not None and stored.get("version") == __version__ else None


PAGE = {"fields": UnitFigures._fields, "usage": UnitUsage._fields}
"""The names of the numbers in a row of figures."""


def planned_units(rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The ids of units, and their facets as columns.

    Args:
        rows: the id of each unit, and its facets as JSON.
    """
    labels: dict[str, dict[str, int]] = {}
    codes: dict[str, array[int]] = {}
    for position, (_, text) in enumerate(rows):
        for name, value in parse_facets(text).items():
            if name not in codes:
                labels[name], codes[name] = {}, array("i", [-1]) * len(rows)
            numbers = labels[name]
            codes[name][position] = numbers.setdefault(value, len(numbers))
    facets = {name: {"labels": list(labels[name]), "codes": column.tolist()} for name, column in codes.items()}
    return {"ids": [unit for unit, _ in rows], "facets": facets}


def progress_of(file: RunFile) -> dict[str, Any]:
    """The changing state of a run: each unit's status, by its first letter, and errors.

    Args:
        file: the run.
    """
    letters = "SELECT substr(status, 1, 1) AS letter FROM units ORDER BY position"
    status = file.rows(f"SELECT group_concat(letter, '') FROM ({letters})")[1][0][0] or ""
    errors = dict(file.rows("SELECT position, error FROM units WHERE status = 'failed'")[1])
    return {"status": status, "errors": errors, "done": status.count("d")}
