"""Finds what is wrong with a damaged run file, after reading it failed unexpectedly.

A sound file is never examined, since that takes longer than most commands. If the file is damaged, the error says how;
otherwise it has contents that Parley does not write, or there is a bug: the error says what failed and where, and has
the exception as its cause.
"""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parley.base.errors import ParleyError, ScenarioError
from parley.runs.opening import RunFileError
from parley.runs.schema import TABLES
from parley.runs.store import RunFile

PACKAGE = Path(__file__).parents[1]

STORED_AS = {"TEXT": "'text'", "INTEGER": "'integer'", "REAL": "'real', 'integer'", "": "'null'"}
"""SQLite's storage classes by declared type of a column; the view of an older file has none where it lacks a column."""
JSON_TYPES = {
    "run.value": None,
    "units.facets": "object",
    "messages.parsed": "object",
    "messages.expected": "object",
    "calls.prompt": "array",
}
"""Columns that contain JSON, with the type of its value; None for any."""
EXPECTED = "replace(replace(messages.expected, 'NaN', '0'), 'Infinity', '0')"
"""Older versions stored numbers that JSON does not have; these count as missing, not as damage."""
RUN_KEYS = {"study": "text", "models": "array", "config": "object"}
"""Required keys of the table `run`, with their JSON types."""
CONSISTENCY = {
    "an expected score is not a number": f"SELECT 1 FROM messages, json_each({EXPECTED}) AS item "
    "WHERE item.type NOT IN ('integer', 'real')",
    "a prompt is not a list of texts": "SELECT 1 FROM calls, json_each(calls.prompt) AS item "
    "WHERE item.type != 'array' OR json_array_length(item.value) != 3 OR json_type(item.value, '$[2]') != 'integer'",
    "the name of a model is not a text": "SELECT 1 FROM run, json_each(run.value) AS item "
    "WHERE run.key = 'models' AND item.type != 'text'",
    "two units have the same position in the plan": "SELECT 1 FROM units GROUP BY position HAVING count(*) > 1",
    "a unit has no position in the plan": "SELECT 1 FROM units WHERE position < 0 "
    "OR position >= (SELECT count(*) FROM units)",
    "the text of a message is missing": "SELECT 1 FROM messages WHERE text NOT IN (SELECT id FROM texts)",
    "the unit of a verdict is missing": "SELECT 1 FROM verdicts WHERE unit NOT IN (SELECT id FROM units)",
    "the unit of a message is missing": "SELECT 1 FROM messages WHERE unit NOT IN (SELECT id FROM units)",
}


@contextmanager
def explain_damage(*paths: Path) -> Iterator[None]:
    """Replace an unexpected exception inside the block with a `RunFileError` that explains the damage."""
    try:
        yield
    except (ParleyError, ScenarioError, OSError):
        raise
    except Exception as error:
        for path in paths:
            if damage := find_damage(path):
                raise RunFileError(f"{path} is damaged: {damage}") from None
        files = ", ".join(map(str, paths))
        raise RunFileError(
            f"{files} cannot be read: {_what_failed(error)}; if Parley wrote it, please report this"
        ) from error


def _what_failed(error: Exception) -> str:
    """The exception, and the last line of Parley in its traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    last = (own_frames or frames)[-1]
    place = Path(last.filename).relative_to(PACKAGE) if own_frames else last.filename
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({place}, line {last.lineno})"


def find_damage(path: Path) -> str | None:
    """The first damage found in the file, or None."""
    try:
        with RunFile.open(path) as file:
            for damage, sql in _checks(file):
                if file.rows(f"{sql} LIMIT 1")[1]:
                    return damage
            types = dict(file.rows("SELECT key, json_type(value) FROM run")[1])
    except ParleyError as error:
        return str(error)
    except (sqlite3.Error, ValueError) as error:  # text that is not UTF-8
        return " ".join(str(error).split())[:200]
    wrong = [key for key, kind in RUN_KEYS.items() if types.get(key) != kind]
    return f"'{wrong[0]}' is missing or has the wrong type" if wrong else None


def _checks(file: RunFile) -> Iterator[tuple[str, str]]:
    """Each check's finding, with a query that returns a row if it applies."""
    for table in TABLES:
        for _, column, kind, required, _, key in file.rows(f"PRAGMA table_info({table})")[1]:
            name = f"{table}.{column}"
            wrong = f"typeof({column}) NOT IN ({STORED_AS[kind]})"
            if name in JSON_TYPES:
                shape, text = JSON_TYPES[name], EXPECTED if name == "messages.expected" else column
                wrong = f"NOT json_valid({text})" + (f" OR json_type({text}) != '{shape}'" if shape else "")
            where = f"{column} IS NULL OR {wrong}" if required or key else f"{column} IS NOT NULL AND ({wrong})"
            yield f"{name} has an invalid value", f"SELECT 1 FROM {table} WHERE {where}"
    yield from CONSISTENCY.items()
