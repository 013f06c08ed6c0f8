"""Runs as pandas frames: `verdicts(file)` and `turns(file)`, each row with the facets of its unit.

Facets are read once a unit, and repeated words are kept once (as pandas categories), so that a million verdicts fit
into a few hundred megabytes.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley.runs.store import RunFile

NUMBERS = ("round", "value", "sampled", "seq")


def _of_a_path_too(read: Callable[[RunFile], pd.DataFrame]) -> Callable[[RunFile | str | Path], pd.DataFrame]:
    """A run file that is open already, or where it lies."""

    @wraps(read)
    def opened(file: RunFile | str | Path) -> pd.DataFrame:
        if isinstance(file, RunFile):
            return read(file)
        with closing(RunFile.open(Path(file))) as found:
            return read(found)

    return opened


@_of_a_path_too
def verdicts(file: RunFile) -> pd.DataFrame:
    """One row a verdict of a finished unit."""
    columns = ("judge", "role", "round", "subject", "metric", "value", "sampled", "text", "status")
    return _with_facets(
        file,
        columns,
        f"SELECT u.position, {', '.join(f'v.{name}' for name in columns)} FROM verdicts v "
        "JOIN units u ON u.id = v.unit WHERE u.status = 'done' ORDER BY u.position, v.nth",
    )


@_of_a_path_too
def turns(file: RunFile) -> pd.DataFrame:
    """One row a message of a finished unit."""
    columns = ("seq", "round", "speaker", "role", "text", "parse_status")
    return _with_facets(
        file,
        columns,
        f"SELECT u.position, {', '.join(f't.{name}' for name in columns)} FROM transcript t "
        "JOIN units u ON u.id = t.unit WHERE u.status = 'done' ORDER BY u.position, t.seq",
    )


@_of_a_path_too
def units(file: RunFile) -> pd.DataFrame:
    """One row a finished unit: its id and its facets, by its place in the plan."""
    _, rows = file.rows("SELECT position, id, facets FROM units WHERE status = 'done' ORDER BY position")
    frame = pd.DataFrame([json.loads(facets) for _, _, facets in rows], index=[position for position, _, _ in rows])
    frame.insert(0, "unit", [name for _, name, _ in rows])
    return frame


@_of_a_path_too
def spending(file: RunFile) -> pd.DataFrame:
    """One row a finished unit: its id, its facets, the calls, tokens and dollars that went into it, and its time.

    `latency` sums up the calls' (those from the cache take none); `started` and `finished` are the unit's own.
    """
    _, rows = file.rows(
        "SELECT u.position, count(*), sum(c.prompt_tokens + c.completion_tokens), "
        "CASE WHEN count(*) = count(c.cost) THEN sum(c.cost) END, sum(c.latency), u.started_at, u.finished_at "
        "FROM calls c JOIN units u ON u.id = c.unit WHERE u.status = 'done' GROUP BY u.position"
    )
    columns = ["position", "calls", "tokens", "cost", "latency", "started", "finished"]
    spent = pd.DataFrame(rows, columns=columns).set_index("position")
    return units(file).join(spent.astype(float))


def _with_facets(file: RunFile, columns: Sequence[str], sql: str) -> pd.DataFrame:
    places, read = _columns(file, columns, sql)
    known = units(file)
    at = known.index.get_indexer(places)
    frame: dict[str, Any] = {"unit": pd.Categorical.from_codes(at, categories=known["unit"])} | read
    for name in known.columns.drop("unit"):
        if name not in frame:
            frame[name] = _repeated(known[name], at)
    return pd.DataFrame(frame)


def _repeated(facet: pd.Series, at: np.ndarray) -> Any:
    """A unit's facet on each of its rows; words as categories."""
    if facet.dtype != object and not isinstance(facet.dtype, pd.StringDtype):
        return facet.to_numpy()[at]
    codes, words = pd.factorize(facet)
    return pd.Categorical.from_codes(codes[at], categories=words)


def _columns(file: RunFile, columns: Sequence[str], sql: str) -> tuple[np.ndarray, dict[str, Any]]:
    """The rows of a query column by column, words as codes: no row is held longer than it takes to read it."""
    places = array("q")
    numbers = {name: array("d") for name in columns if name in NUMBERS}
    codes = {name: array("i") for name in columns if name not in NUMBERS}
    words: dict[str, dict[Any, int]] = {name: {} for name in codes}
    missing = float("nan")
    for row in file.stream(sql):
        places.append(row[0])
        for name, value in zip(columns, row[1:], strict=True):
            if name in numbers:
                numbers[name].append(missing if value is None else value)
            else:
                known = words[name]
                codes[name].append(-1 if value is None else known.setdefault(value, len(known)))
    read: dict[str, Any] = {}
    for name in columns:
        if name in numbers:
            found = np.frombuffer(numbers[name], dtype=float) if numbers[name] else np.zeros(0)
            read[name] = found.astype(int) if name in ("round", "seq") else found
        else:
            code = np.frombuffer(codes[name], dtype=np.int32) if codes[name] else np.zeros(0, dtype=np.int32)
            read[name] = pd.Categorical.from_codes(code, categories=pd.Index(list(words[name]), dtype=object))
    return np.frombuffer(places, dtype=np.int64) if places else np.zeros(0, dtype=np.int64), read
