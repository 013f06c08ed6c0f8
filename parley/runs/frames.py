"""Runs as pandas frames: `verdicts(file)` and `turns(file)`, each row with the facets of its unit.

Facets are read once per unit, and repeated strings are stored once (as pandas categories), so that a million verdicts
fit into a few hundred megabytes.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley.base.text import without_surrogates
from parley.runs.diagnosis import explain_damage
from parley.runs.rows import Row
from parley.runs.store import RunFile

NUMBERS = ("round", "value", "sampled", "seq", "on_scale")
ROWS_AT_ONCE = 500


def _accepts_path(read: Callable[[RunFile], pd.DataFrame]) -> Callable[[RunFile | str | Path], pd.DataFrame]:
    """Let a function that takes an open run file take a path too."""

    @wraps(read)
    def read_path(file: RunFile | str | Path) -> pd.DataFrame:
        if isinstance(file, RunFile):
            return read(file)
        with explain_damage(Path(file)), RunFile.open(Path(file)) as opened:
            return read(opened)

    return read_path


@_accepts_path
def verdicts(file: RunFile) -> pd.DataFrame:
    """One row per verdict of a finished unit, with `seq` and `words` of the message that it comes from.

    In a run with silent ballots, `on_scale` is the share on their answers.

    Args:
        file: An open run file, or the path of one.
    """
    facets = units(file)
    return _with_words(file, facets, _verdicts(file, facets, _ballots(file, facets)))


def read_once(file: RunFile) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Verdicts, ballots and spending of a run, with its units read only once.

    Args:
        file: An open run file.
    """
    facets = units(file)
    ballots = _ballots(file, facets)
    return _verdicts(file, facets, ballots), ballots, _spending(file, facets)


def _verdicts(file: RunFile, facets: pd.DataFrame, ballots: pd.DataFrame) -> pd.DataFrame:
    columns = ("judge", "role", "round", "subject", "metric", "value", "sampled", "text", "status", "seq")
    return _with_ballots(_with_facets(facets, columns, file.verdicts()), ballots)


def _with_words(file: RunFile, facets: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts with the `words` of their message, which are missing if a verdict comes from none."""
    texts = file.stream(
        "SELECT u.position, m.seq, t.text FROM units u JOIN messages m ON m.unit = u.id "
        "JOIN texts t ON t.id = m.text WHERE u.status = 'done' ORDER BY u.position, m.seq"
    )
    words = _with_facets(facets[["unit"]], ("seq", "words"), texts)
    return verdicts.merge(words, how="left", on=["unit", "seq"]).astype({"seq": "Int64"})


@_accepts_path
def ballots(file: RunFile) -> pd.DataFrame:
    """One row per silent ballot of a finished unit. `on_scale`: see `RunFile.ballots`; NaN if unknown.

    Args:
        file: An open run file, or the path of one.
    """
    return _ballots(file, units(file))


def _ballots(file: RunFile, facets: pd.DataFrame) -> pd.DataFrame:
    return _with_facets(facets, ("judge", "round", "metric", "on_scale"), file.ballots())


def _with_ballots(verdicts: pd.DataFrame, ballots: pd.DataFrame) -> pd.DataFrame:
    """The verdicts with the share on their ballots' answers."""
    if ballots.empty:
        return verdicts
    of_pairs = verdicts["metric"].astype(object).replace("log-odds", "preferred")  # both belong to one ballot
    frames = verdicts.assign(metric=of_pairs), ballots
    keys, ballot_keys = (
        pd.MultiIndex.from_frame(frame[["unit", "judge", "round", "metric"]].astype(str)) for frame in frames
    )
    once = ~ballot_keys.duplicated(keep=False)  # RLDF's referee casts several ballots for one verdict
    places = ballot_keys[once].get_indexer(keys)
    verdicts["on_scale"] = np.append(ballots["on_scale"].to_numpy()[once], np.nan)[places]
    return verdicts


@_accepts_path
def turns(file: RunFile) -> pd.DataFrame:
    """One row per message of a finished unit.

    Args:
        file: An open run file, or the path of one.
    """
    columns = ("seq", "round", "speaker", "role", "text", "parse_status")
    rows = file.stream(
        f"SELECT u.position, {', '.join(f't.{name}' for name in columns)} FROM transcript t "
        "JOIN units u ON u.id = t.unit WHERE u.status = 'done' ORDER BY u.position, t.seq"
    )
    return _with_facets(units(file), columns, rows).astype({"seq": int})


@_accepts_path
def units(file: RunFile) -> pd.DataFrame:
    """One row per finished unit: its id and its facets, indexed by its position in the plan.

    Args:
        file: An open run file, or the path of one.
    """
    file.check_plan()
    positions, ids, columns = array("q"), list[str](), dict[str, list[Any]]()
    kept = dict[str, str]()  # equal strings of facets are stored once
    for position, unit, text in file.stream(
        "SELECT position, id, facets FROM units WHERE status = 'done' ORDER BY position"
    ):
        facets = _facets(text)
        for name in facets:
            if name not in columns:
                columns[name] = [np.nan] * len(ids)
        for name, column in columns.items():
            facet = facets.get(name, np.nan)
            column.append(kept.setdefault(facet, facet) if isinstance(facet, str) else facet)
        positions.append(position)
        ids.append(unit)
    return pd.DataFrame(
        {"unit": ids} | {name: column for name, column in columns.items() if name != "unit"}, index=positions
    )


def _facets(text: str) -> Any:
    """A unit's facets; other kinds of values from another tool's run (lists, tables) as text."""
    facets = json.loads(text)
    if "[" in text or "{" in text[1:]:
        facets = {
            name: json.dumps(facet) if isinstance(facet, list | dict) else facet for name, facet in facets.items()
        }
    # JSON has surrogates only as escapes: most units need not be searched value by value.
    return without_surrogates(facets) if "\\u" in text else facets


@_accepts_path
def spending(file: RunFile) -> pd.DataFrame:
    """One row per finished unit: its id, its facets, its calls, tokens and cost in US dollars, and its times.

    `latency` is the sum over its calls (0 for those from the cache); `started` and `finished` are the unit's own.

    Args:
        file: An open run file, or the path of one.
    """
    return _spending(file, units(file))


def _spending(file: RunFile, facets: pd.DataFrame) -> pd.DataFrame:
    _, rows = file.rows(
        "SELECT u.position, count(*), sum(c.prompt_tokens + c.completion_tokens), "
        "CASE WHEN count(*) = count(c.cost) THEN sum(c.cost) END, sum(c.latency), u.started_at, u.finished_at "
        "FROM calls c JOIN units u ON u.id = c.unit WHERE u.status = 'done' GROUP BY u.position"
    )
    columns = ["position", "calls", "tokens", "cost", "latency", "started", "finished"]
    spent = pd.DataFrame(rows, columns=columns).set_index("position")
    return facets.drop(columns=columns, errors="ignore").join(spent.astype(float))


def _with_facets(facets: pd.DataFrame, columns: Sequence[str], table: Iterable[Row]) -> pd.DataFrame:
    positions, data = _columns(columns, iter(table))
    rows = facets.index.get_indexer(positions)
    frame: dict[str, Any] = {"unit": pd.Categorical.from_codes(rows, categories=facets["unit"])} | data
    for name in facets.columns.drop("unit"):
        if name not in frame:
            frame[name] = _repeated(facets[name], rows)
    whole, has_unit = pd.DataFrame(frame), rows >= 0
    # A unit of a running study may have ended after the units were read.
    return whole if has_unit.all() else whole[has_unit].reset_index(drop=True)


def _repeated(facet: pd.Series, rows: np.ndarray) -> Any:
    """A facet of the units, repeated on each row; strings as categories."""
    if facet.dtype != object and not isinstance(facet.dtype, pd.StringDtype):
        return facet.to_numpy()[rows]
    codes, categories = pd.factorize(facet)
    return pd.Categorical.from_codes(codes[rows], categories=categories)


def _columns(columns: Sequence[str], rows: Iterator[Row]) -> tuple[np.ndarray, dict[str, Any]]:
    """Read positions (the first column) and the last columns of rows, with strings as codes.

    Rows are not kept in memory.
    """
    positions = array("q")
    numbers = {name: array("d") for name in columns if name in NUMBERS}
    codes = {name: array("i") for name in columns if name not in NUMBERS}
    code_of: dict[str, dict[Any, int]] = {name: {None: -1} for name in codes}
    missing = float("nan")
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        table = list(zip(*chunk, strict=True))
        positions.extend(table[0])
        for name, values in zip(columns, table[-len(columns) :], strict=True):
            if name in numbers:
                numbers[name].extend([missing if value is None else value for value in values])
            else:
                place_of = code_of[name]
                for value in dict.fromkeys(values):
                    place_of.setdefault(value, len(place_of) - 1)
                codes[name].extend(map(place_of.__getitem__, values))
    data: dict[str, Any] = {}
    for name in columns:
        if name in numbers:
            column = np.frombuffer(numbers[name], dtype=float) if numbers[name] else np.zeros(0)
            if name == "round":
                if not np.isfinite(column).all():
                    raise ValueError("a round is not a number")
                column = column.astype(int)
            data[name] = column
        else:
            code = np.frombuffer(codes[name], dtype=np.int32) if codes[name] else np.zeros(0, dtype=np.int32)
            data[name] = pd.Categorical.from_codes(code, categories=pd.Index(list(code_of[name])[1:], dtype=object))
    return np.frombuffer(positions, dtype=np.int64) if positions else np.zeros(0, dtype=np.int64), data
