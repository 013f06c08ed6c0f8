"""What is wrong with a run file, in one line: asked when reading one failed in a way that nobody foresaw.

A sound file is never examined (that would take longer than most answers). If the file is at fault, that is said; if it
is not, the error is ours, and raised.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from parley.agents import ParleyError
from parley.runs.store import RunFile, RunFileError

TEXT, WHOLE, NUMBER = "'text'", "'integer'", "'real', 'integer'"
COLUMNS: dict[str, dict[str, str]] = {
    "run": {"key": TEXT, "value": "json"},
    "prompts": {"name": TEXT, "hash": TEXT, "text": TEXT},
    "texts": {"id": WHOLE, "text": TEXT},
    "units": {"id": TEXT, "position": WHOLE, "facets": "object", "status": TEXT, "error": f"{TEXT}, 'null'"},
    "messages": {"unit": TEXT, "seq": WHOLE, "round": WHOLE, "speaker": TEXT, "role": TEXT, "text": WHOLE,
                 "parse_status": f"{TEXT}, 'null'", "parsed": "object or nothing", "expected": "object or nothing"},
    "calls": {"unit": TEXT, "seq": WHOLE, "nth": WHOLE, "model": TEXT, "prompt": "list", "reply": WHOLE,
              "prompt_tokens": WHOLE, "completion_tokens": WHOLE, "latency": NUMBER, "cost": f"{NUMBER}, 'null'",
              "cached": WHOLE, "attempts": WHOLE},
    "verdicts": {"unit": TEXT, "nth": WHOLE, "judge": TEXT, "role": TEXT, "round": WHOLE, "subject": TEXT,
                 "metric": TEXT, "value": f"{NUMBER}, 'null'", "sampled": f"{NUMBER}, 'null'",
                 "text": f"{TEXT}, 'null'", "status": TEXT},
    "events": {"at": NUMBER, "kind": TEXT, "detail": TEXT},
}  # fmt: skip
KEYS = {"study": "text", "models": "array", "config": "object"}
"""What every run says of itself."""
ACROSS = {
    "an expectation is no number": "SELECT 1 FROM messages, json_each(messages.expected) AS one "
    "WHERE one.type NOT IN ('integer', 'real')",
    "a prompt is not made of texts": "SELECT 1 FROM calls, json_each(calls.prompt) AS one "
    "WHERE one.type != 'array' OR json_array_length(one.value) != 3 OR json_type(one.value, '$[2]') != 'integer'",
    "two units stand at one place of the plan": "SELECT 1 FROM units GROUP BY position HAVING count(*) > 1",
    "a unit stands at no place of the plan": "SELECT 1 FROM units WHERE position < 0 "
    "OR position >= (SELECT count(*) FROM units)",
    "a message has lost its text": "SELECT 1 FROM messages WHERE text NOT IN (SELECT id FROM texts)",
    "a verdict is about a unit that is not there": "SELECT 1 FROM verdicts WHERE unit NOT IN (SELECT id FROM units)",
    "a message is of a unit that is not there": "SELECT 1 FROM messages WHERE unit NOT IN (SELECT id FROM units)",
}


@contextmanager
def examined(*paths: Path) -> Iterator[None]:
    """Whatever fails in here because of what a file holds is said of the file."""
    try:
        yield
    except (ParleyError, OSError):
        raise
    except Exception:
        for path in paths:
            if what := first_fault(path):
                raise RunFileError(f"{path} is damaged: {what}") from None
        raise


def first_fault(path: Path) -> str | None:
    """The first thing in the file that no run has."""
    try:
        with closing(RunFile.open(path)) as file:
            for what, sql in _questions():
                if file.rows(f"{sql} LIMIT 1")[1]:
                    return what
            found = dict(file.rows("SELECT key, json_type(value) FROM run")[1])
    except ParleyError as error:
        return str(error)
    except (sqlite3.Error, ValueError) as error:  # text that is not UTF-8
        return " ".join(str(error).split())[:200]
    missing = [key for key, kind in KEYS.items() if found.get(key) != kind]
    return f"'{missing[0]}' is not what a run says of itself" if missing else None


def _questions() -> Iterator[tuple[str, str]]:
    for table, columns in COLUMNS.items():
        for column, kind in columns.items():
            yield f"{table}.{column} holds what it never should", f"SELECT 1 FROM {table} WHERE {_wrong(column, kind)}"
    yield from ACROSS.items()


def _wrong(column: str, kind: str) -> str:
    if "'" in kind:
        return f"typeof({column}) NOT IN ({kind})"
    shape, _, nothing = kind.partition(" or ")
    asked = {
        "json": "",
        "object": f" OR json_type({column}) != 'object'",
        "list": f" OR json_type({column}) != 'array'",
    }
    wrong = f"(NOT json_valid({column}){asked[shape]})"
    return f"{column} IS NOT NULL AND {wrong}" if nothing else f"{column} IS NULL OR {wrong}"
