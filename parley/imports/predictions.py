"""Answers to BBQ from a file: JSONL with category, example_id and prediction (an index, or a text).

`null` or −1 stands for an answer that could not be parsed. A line that matches no row of the data, or repeats one,
raises an error with its number: a score over the wrong rows would look like any other.
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

UNPARSED = -1


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions, matched with the rows of the data."""

    rows: tuple[BbqRow, ...]
    answers: tuple[int, ...]
    """For each row the index of the predicted answer, −1 if it could not be parsed."""
    how: Mapping[str, int]
    """The number of predictions by how they were parsed."""
    missing: int
    """Rows without a prediction, in the categories that have any."""


def read_predictions(path: Path, rows: Sequence[BbqRow]) -> Predictions:
    """Read a file of predictions.

    Args:
        path: The JSONL file.
        rows: The rows of BBQ that it may refer to.
    """
    try:
        lines = path.read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    known = {(row.category, row.example_id): row for row in rows}
    line_of: dict[tuple[str, int], int] = {}
    predicted: list[BbqRow] = []
    answers: list[int] = []
    how = Counter[str]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            key, prediction = _fields(line)
            row = known.get(key)
            if row is None:
                raise ValueError(f"there is no row {key[0]} {key[1]} in the data")
            if key in line_of:
                raise ValueError(f"{key[0]} {key[1]} is already predicted in line {line_of[key]}")
            answer, way = parse_prediction(prediction, row)
        except ValueError as error:
            raise ScenarioError(f"{path}, line {number}: {str(error).splitlines()[0]}") from None
        line_of[key] = number
        predicted.append(row)
        answers.append(answer)
        how[way] += 1
    if not predicted:
        raise ScenarioError(f"{path}: it has no predictions")
    categories = {row.category for row in predicted}
    missing = sum(row.category in categories for row in rows) - len(predicted)
    return Predictions(tuple(predicted), tuple(answers), dict(how), missing)


def _fields(line: bytes) -> tuple[tuple[str, int], Any]:
    record = from_json(line)
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    if missing := [key for key in ("category", "example_id", "prediction") if key not in record]:
        raise ValueError(f"'{missing[0]}' is missing")
    try:
        return (str(record["category"]), int(record["example_id"])), record["prediction"]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("example_id is not a number") from None


def parse_prediction(prediction: Any, row: BbqRow) -> tuple[int, str]:
    """The index of the predicted answer (−1 if it could not be parsed), and how it was found.

    Args:
        prediction: A place, a text, or None.
        row: The row of BBQ.
    """
    if isinstance(prediction, str):
        index, how = match(prediction, [answer.text for answer in row.answers], row.unknown, row.question)
        return UNPARSED if index is None else index, how
    if prediction is None or prediction != prediction:  # NaN
        return UNPARSED, "missing"
    if isinstance(prediction, bool) or not isinstance(prediction, int | float) or prediction not in (-1, 0, 1, 2):
        raise ValueError(f"the prediction must be 0, 1, 2 or a text, got {str(prediction)[:40]!r}")
    return int(prediction), "missing" if prediction < 0 else "place"


def columns(rows: Sequence[BbqRow], answers: Sequence[int]) -> dict[str, list[Any]]:
    """The columns that `parley.analysis.bbq.scores.AnswerTable.of` takes.

    Args:
        rows: The rows of BBQ that were answered.
        answers: The index of each answer, −1 if it could not be parsed.
    """
    return {
        "category": [row.category for row in rows],
        "condition": [row.condition for row in rows],
        "label": [row.label for row in rows],
        "target": [UNPARSED if row.target is None else row.target for row in rows],
        "unknown": [row.unknown for row in rows],
        "names": [row.names for row in rows],
        "scenario": [(row.category, row.example_id // SHARED) for row in rows],
        "question": [row.question_index for row in rows],
        "prediction": list(answers),
    }
