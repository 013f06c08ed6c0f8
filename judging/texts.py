"""Texts from a file: .txt (one per line), .jsonl or .csv (a field of each row), or `-` for standard input.

An error names the line that caused it. A field may be nested: `continuation.text`. Blank lines are skipped, but a row
whose text is blank is not.
"""

from __future__ import annotations

import csv
import io
import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from parley.agents import ConfigError

_MISSING = object()
"""The value of a field that does not exist, which is not the same as null."""


class TextLine(NamedTuple):
    """One text, with its line number in the file."""

    number: int
    text: str
    given: float | None = None
    """A score from the file itself."""
    also: tuple[str, ...] = ()
    """The values of further fields, as text; empty where a row has none."""


def read_lines(
    source: str, field: str | None = None, given: str | None = None, also: Sequence[str] = ()
) -> list[TextLine]:
    """The texts of a file, in order.

    Args:
        source: The path, or `-` for standard input.
        field: The field with the text, "text" by default; not for .txt files.
        given: A field with scores, if they should be read, too.
        also: Further fields to read as text.
    """
    where = "standard input" if source == "-" else source
    raw = _read(source)
    kind = Path(source).suffix.lower() if source != "-" else (".jsonl" if field or given or also else ".txt")
    if kind == ".txt":
        if field or given or also:
            raise ConfigError(f"{where}: a .txt file has no fields; use a .jsonl or .csv file")
        # Only \n ends a line: a text may contain what str.splitlines also splits at (form feeds, NEL …).
        lines = [TextLine(number, text.rstrip("\r")) for number, text in enumerate(raw.split("\n"), 1) if text.strip()]
    elif kind in (".jsonl", ".csv"):
        rows = list(_json_rows(raw, where) if kind == ".jsonl" else _csv_rows(raw, where))
        lines = [_line(row, number, where, field or "text", given, also) for number, row in rows]
        for name in (*([given] if given else []), *also):
            if rows and all(_get(row, name) is _MISSING for _, row in rows):
                raise ConfigError(f"{where}: no row has a field '{name}'{_fields_hint(rows[0][1], name)}")
    else:
        raise ConfigError(f"{where}: expected a .txt, .jsonl or .csv file, or - for standard input")
    if not lines:
        raise ConfigError(f"{where}: it contains no text")
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


def _line(row: Any, number: int, where: str, field: str, given: str | None, also: Sequence[str]) -> TextLine:
    text = _get(row, field)
    if text is _MISSING:
        raise ConfigError(f"{where}, line {number}: no field '{field}'{_fields_hint(row, field)}")
    if not isinstance(text, str):
        inner = f" ('{field}' has: {_names(text)})" if isinstance(text, dict) else ""
        raise ConfigError(f"{where}, line {number}: the field '{field}' is not a text{inner}")
    more = tuple("" if value in (_MISSING, None) else str(value) for value in (_get(row, name) for name in also))
    if given is None:
        return TextLine(number, text, also=more)
    try:
        return TextLine(number, text, _score(_get(row, given)), more)
    except ValueError:
        raise ConfigError(f"{where}, line {number}: '{given}' is not a number") from None


def _get(row: Any, field: str) -> Any:
    """The value of a field; dots in its name lead into nested objects."""
    if isinstance(row, dict) and field in row:
        return row[field]
    name, dot, rest = field.partition(".")
    return _get(row[name], rest) if dot and isinstance(row, dict) and name in row else _MISSING


def _fields_hint(row: Any, field: str, parent: str = "") -> str:
    """The fields that exist at the point where the path to a field ends."""
    name, _, rest = field.partition(".")
    if rest and isinstance(row, dict) and isinstance(row.get(name), dict):
        return _fields_hint(row[name], rest, f"{parent}.{name}" if parent else name)
    owner = f"'{parent}'" if parent else "it"
    return f" ({owner} has: {_names(row)})" if isinstance(row, dict) else ""


def _names(row: dict[Any, Any]) -> str:
    return textwrap.shorten(", ".join(map(str, row)), 100, placeholder=" …") or "nothing"


def _score(value: Any) -> float | None:
    if value is _MISSING or value is None or value == "":
        return None
    try:
        score = float(value)
    except (TypeError, OverflowError):
        raise ValueError("not a number") from None
    return score if math.isfinite(score) else None
