"""Texts from anyone's file: .txt (a line each), .jsonl or .csv (a field of each row), `-` for standard input.

A line that cannot be read is named. A field may lie deeper: `continuation.text`. A blank text is a text, and its row
keeps its place; only blank lines between are passed over.
"""

from __future__ import annotations

import csv
import io
import math
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from parley.agents import ConfigError

_MISSING = object()
"""What is found where there is no such field: null is something else."""


class Line(NamedTuple):
    number: int
    text: str
    given: float | None = None
    """A score that stands in the file itself."""


def read_lines(source: str, field: str | None = None, given: str | None = None) -> list[Line]:
    """The texts of a file in their order. `field` is "text" unless said; `given` names a field with scores."""
    where = "standard input" if source == "-" else source
    raw = _read(source)
    kind = Path(source).suffix.lower() if source != "-" else (".jsonl" if field or given else ".txt")
    if kind == ".txt":
        if field or given:
            raise ConfigError(f"{where}: a .txt file has no fields; a .jsonl or .csv file has")
        # Only \n ends a line: a text may hold what else Python takes for one (form feeds, NEL …).
        lines = [Line(number, text.rstrip("\r")) for number, text in enumerate(raw.split("\n"), 1) if text.strip()]
    elif kind in (".jsonl", ".csv"):
        rows = list(_json_rows(raw, where) if kind == ".jsonl" else _csv_rows(raw, where))
        lines = [_line(row, number, where, field or "text", given) for number, row in rows]
        if rows and given and all(_get(row, given) is _MISSING for _, row in rows):
            raise ConfigError(f"{where}: no row has a field '{given}'{_instead(rows[0][1], given)}")
    else:
        raise ConfigError(f"{where}: a .txt, .jsonl or .csv file is asked for, or - for standard input")
    if not lines:
        raise ConfigError(f"{where}: there is no text in it")
    return lines


def _read(source: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 text (byte {error.start})") from None


def _json_rows(raw: str, where: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(raw.split("\n"), 1):
        if line.strip():
            try:
                yield number, from_json(line)
            except ValueError as error:
                raise ConfigError(f"{where}, line {number}: not JSON ({error})") from None


def _csv_rows(raw: str, where: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(raw, newline=""))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ConfigError(f"{where}, line {reader.line_num}: {error}") from None


def _line(row: Any, number: int, where: str, field: str, given: str | None) -> Line:
    text = _get(row, field)
    if text is _MISSING:
        raise ConfigError(f"{where}, line {number}: no text in the field '{field}'{_instead(row, field)}")
    if not isinstance(text, str):
        inner = f" ('{field}' has: {_names(text)})" if isinstance(text, dict) else ""
        raise ConfigError(f"{where}, line {number}: the field '{field}' holds no text{inner}")
    if given is None:
        return Line(number, text)
    try:
        return Line(number, text, _score(_get(row, given)))
    except ValueError:
        raise ConfigError(f"{where}, line {number}: '{given}' is not a number") from None


def _get(row: Any, field: str) -> Any:
    """The value of a field; a name with dots may be a path."""
    if isinstance(row, dict) and field in row:
        return row[field]
    name, dot, rest = field.partition(".")
    return _get(row[name], rest) if dot and isinstance(row, dict) and name in row else _MISSING


def _instead(row: Any, field: str, inside: str = "") -> str:
    """What there is where the path to a field breaks off."""
    name, _, rest = field.partition(".")
    if rest and isinstance(row, dict) and isinstance(row.get(name), dict):
        return _instead(row[name], rest, f"{inside}.{name}" if inside else name)
    who = f"'{inside}'" if inside else "it"
    return f" ({who} has: {_names(row)})" if isinstance(row, dict) else ""


def _names(row: dict[Any, Any]) -> str:
    return textwrap.shorten(", ".join(map(str, row)), 100, placeholder=" …") or "nothing"


def _score(value: Any) -> float | None:
    if value is _MISSING or value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, OverflowError):
        raise ValueError("it is not a number") from None
    return found if math.isfinite(found) else None
