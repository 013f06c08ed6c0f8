"""Texts from anyone's file: .txt (a line each), .jsonl or .csv (a field of each row), `-` for standard input.

A line that cannot be read is named. A field may lie deeper: `continuation.text`. A blank text is a text, and its row
keeps its place; only blank lines between are passed over.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agents import ConfigError


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
        rows = _json_rows(raw, where) if kind == ".jsonl" else _csv_rows(raw, where)
        lines = [_line(row, number, where, field or "text", given) for number, row in rows]
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
                yield number, json.loads(line)
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
    if not isinstance(text, str):
        fields = f" (it has: {', '.join(map(str, row))})" if isinstance(row, dict) else ""
        raise ConfigError(f"{where}, line {number}: no text in the field '{field}'{fields[:120]}")
    return Line(number, text, _score(_get(row, given), f"{where}, line {number}: '{given}'") if given else None)


def _get(row: Any, field: str) -> Any:
    """The value of a field; a name with dots may be a path."""
    if isinstance(row, dict) and field in row:
        return row[field]
    name, dot, rest = field.partition(".")
    return _get(row[name], rest) if dot and isinstance(row, dict) and name in row else None


def _score(value: Any, where: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{where} is not a number") from None
    return found if math.isfinite(found) else None
