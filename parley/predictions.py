"""Anyone's answers to BBQ, from a file: JSONL with category, example_id and prediction (a place, or a text).

`null` (or −1) stands for an answer that could not be read. A line that fits no row, or comes twice, is refused with its
number: a score over the wrong rows would look like any other.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from parley.scenarios import ScenarioError
from parley.scenarios.bbq import SHARED, BbqRow, match

UNREAD = -1


@dataclass(frozen=True, slots=True)
class Predictions:
    """The rows that were predicted, with the place predicted (−1: unreadable), and how each was read."""

    rows: tuple[BbqRow, ...]
    places: tuple[int, ...]
    how: Mapping[str, int]
    missing: int
    """Rows of the data, in the categories that were predicted, without a line."""


def read_predictions(path: Path, rows: Sequence[BbqRow]) -> Predictions:
    try:
        lines = path.read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    known = {(row.category, row.example_id): row for row in rows}
    seen: dict[tuple[str, int], int] = {}
    predicted: list[BbqRow] = []
    places: list[int] = []
    how = Counter[str]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            key, prediction = _fields(line)
            row = known.get(key)
            if row is None:
                raise ValueError(f"there is no row {key[0]} {key[1]} in the data")
            if key in seen:
                raise ValueError(f"{key[0]} {key[1]} was predicted in line {seen[key]} already")
            place, way = _read(prediction, row)
        except ValueError as error:
            raise ScenarioError(f"{path}, line {number}: {str(error).splitlines()[0]}") from None
        seen[key] = number
        predicted.append(row)
        places.append(place)
        how[way] += 1
    if not predicted:
        raise ScenarioError(f"{path}: no prediction in it")
    categories = {row.category for row in predicted}
    missing = sum(row.category in categories for row in rows) - len(predicted)
    return Predictions(tuple(predicted), tuple(places), dict(how), missing)


def _fields(line: bytes) -> tuple[tuple[str, int], Any]:
    found = from_json(line)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    if missing := [key for key in ("category", "example_id", "prediction") if key not in found]:
        raise ValueError(f"'{missing[0]}' is missing")
    try:
        return (str(found["category"]), int(found["example_id"])), found["prediction"]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("example_id is not a number") from None


def _read(prediction: Any, row: BbqRow) -> tuple[int, str]:
    if isinstance(prediction, str):
        place, how = match(prediction, [answer.text for answer in row.answers], row.unknown, row.question)
        return UNREAD if place is None else place, how
    if prediction is None or prediction != prediction:
        return UNREAD, "missing"
    if isinstance(prediction, bool) or not isinstance(prediction, int | float) or prediction not in (-1, 0, 1, 2):
        raise ValueError(f"the prediction {str(prediction)[:40]!r} is neither 0, 1, 2 nor a text")
    return int(prediction), "missing" if prediction < 0 else "place"


def columns(rows: Sequence[BbqRow], places: Sequence[int]) -> dict[str, list[Any]]:
    """What `parley.analysis.bbq.scores.AnswerTable.of` takes."""
    return {
        "category": [row.category for row in rows],
        "condition": [row.condition for row in rows],
        "label": [row.label for row in rows],
        "target": [UNREAD if row.target is None else row.target for row in rows],
        "unknown": [row.unknown for row in rows],
        "names": [row.names for row in rows],
        "scenario": [(row.category, row.example_id // SHARED) for row in rows],
        "question": [row.question_index for row in rows],
        "prediction": list(places),
    }
