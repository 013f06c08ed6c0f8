"""The recorded results: one JSON file a case, a row or sentence a line, so that `git diff` shows what changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def path_of(name: str) -> Path:
    """The file of a case."""
    return RESULTS / f"{name}.json"


def read(name: str) -> dict[str, Any]:
    """A case as it was recorded."""
    recorded: dict[str, Any] = json.loads(path_of(name).read_text("utf-8"))
    return recorded


def write(name: str, made: Mapping[str, Any]) -> None:
    """Record a case."""
    RESULTS.mkdir(exist_ok=True)
    path_of(name).write_text("".join(_lines(made)) + "\n", "utf-8")


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """JSON with one line for each row (an object of plain values) and each sentence."""
    is_row = isinstance(value, Mapping) and not any(isinstance(inner, Mapping | list) for inner in value.values())
    if not isinstance(value, Mapping | list) or (is_row and indent) or not value:
        yield json.dumps(value, ensure_ascii=False)
        return
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    yield f"{opening}\n"
    items = value.items() if isinstance(value, Mapping) else ((None, inner) for inner in value)
    for number, (key, inner) in enumerate(items):
        yield ",\n" if number else ""
        yield f"{indent} " + ("" if key is None else f"{json.dumps(key, ensure_ascii=False)}: ")
        yield from _lines(inner, f"{indent} ")
    yield f"\n{indent}{closing}"
