"""Reading labels from files: CSV, JSON lines, or what Label Studio and Argilla export. Every problem has its line."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.base.text import plural, without_surrogates

NEEDED = ("unit", "rater", "question", "value")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class LabelFileError(ConfigError):
    """All problems of a file of labels, each with its line."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        problems = sorted(problems, key=lambda problem: int(problem.partition(":")[0].split()[-1]))
        self.summary = f"{path}: {plural(len(problems), 'problem')}, nothing was imported"
        self.problems = problems
        super().__init__(f"{self.summary}: {'; '.join(problems)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """One answer of a file, and its place.

    Args:
        place: "line 3", or "entry 3" of an array.
        unit: The unit's id.
        rater: The rater's name.
        question: The metric, or "preferred" or "answer".
        subject: Which of several texts: A or B, or a speaker.
        value: A score or an option; None for a skip.
        comment: What the rater wrote.
        draw: How the unit was drawn; empty if the file does not say.
        simulated: True if no person answered.
        at: When, in seconds since 1970; None if the file does not say.
    """

    place: str
    unit: str
    rater: str
    question: str
    subject: str = ""
    value: str | float | None = None
    comment: str = ""
    draw: str = ""
    simulated: bool = False
    at: float | None = None


def read_label_file(path: Path) -> tuple[list[LabelRow], list[str]]:
    """The rows and the problems of CSV, JSON lines, or an export of Label Studio or Argilla (a JSON array)."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    problems: list[str] = []
    read = _array if text.lstrip().startswith("[") else _json_lines if text.lstrip().startswith("{") else _csv
    try:
        rows = list(read(text, problems))
    except (csv.Error, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not rows and not problems:
        raise ConfigError(f"{path} has no labels")
    return rows, problems


def _json_lines(text: str, problems: list[str]) -> Iterator[LabelRow]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values = json.loads(line)
            except ValueError:
                values = None
            if isinstance(values, dict):
                yield from _row(f"line {number}", values, problems)
            else:
                problems.append(f"line {number}: not a JSON object")


def _csv(text: str, problems: list[str]) -> Iterator[LabelRow]:
    table = csv.DictReader(io.StringIO(text, newline=""))
    if missing := [name for name in NEEDED if name not in (table.fieldnames or ())]:
        raise ValueError(f"it has no column {' or '.join(missing)}; it needs {', '.join(NEEDED)}")
    for values in table:
        plain = {name: _unquoted(value) for name, value in values.items() if isinstance(value, str)}
        yield from _row(f"line {table.line_num}", plain, problems)


def _unquoted(value: str) -> str:
    """The text without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return value[1:] if value.startswith("'") and value[1:].startswith(FORMULA_STARTS) else value


def _row(place: str, values: Mapping[str, Any], problems: list[str]) -> Iterator[LabelRow]:
    """A row, or a line about what is missing in it."""
    values = without_surrogates(dict(values))
    texts = {name: str(values.get(name) or "").strip() for name in ("unit", "rater", "question", "subject", "draw")}
    if empty := [name for name in ("unit", "rater", "question") if not texts[name]]:
        problems.append(f"{place}: {' and '.join(empty)} {'is' if len(empty) == 1 else 'are'} missing")
        return
    value, at = values.get("value"), values.get("at")
    if not isinstance(value, str | int | float | None) or isinstance(value, bool):
        problems.append(f"{place}: value must be a number or a text")
        return
    try:
        seconds = None if at in (None, "") else float(at)
        if seconds is not None and not math.isfinite(seconds):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        problems.append(f"{place}: at must be seconds since 1970, not '{at}'")
        return
    simulated = str(values.get("simulated") or "0").lower() not in ("0", "false")
    comment = str(values.get("comment") or "")
    yield LabelRow(place=place, value=value, at=seconds, simulated=simulated, comment=comment, **texts)


def _array(text: str, problems: list[str]) -> Iterator[LabelRow]:
    """Rows of an array: Label Studio's tasks with `annotations`, or Argilla's records with `responses`."""
    for number, entry in enumerate(json.loads(text), 1):
        place = f"entry {number}"
        try:
            rows = list(_label_studio(entry) if "annotations" in entry else _argilla(entry))
        except (AttributeError, KeyError, TypeError, IndexError):
            problems.append(f"{place}: neither a task of Label Studio nor a record of Argilla, each with its unit")
            continue
        for row in rows:
            question, _, subject = row["question"].partition(":")
            yield from _row(place, {**row, "question": question, "subject": subject}, problems)


def _label_studio(task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A task whose `data` has the unit, with controls named by question or question:subject."""
    for annotation in task["annotations"]:
        person = annotation.get("completed_by", "")
        rater = person.get("email") or person.get("id") if isinstance(person, dict) else person
        for result in annotation["result"]:
            value = result["value"]
            given = value["choices"][0] if "choices" in value else value.get("rating", value.get("number"))
            yield {
                "unit": task["data"]["unit"],
                "rater": rater,
                "question": result["from_name"],
                "value": None if annotation.get("was_cancelled") else given,
            }


def _argilla(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A record whose id, or `unit` in its metadata, is the unit's; its questions are named in the same way."""
    unit = (record.get("metadata") or {}).get("unit") or record["id"]
    for question, responses in record["responses"].items():
        for response in responses:
            value = None if response.get("status") == "discarded" else response["value"]
            yield {"unit": unit, "rater": response["user_id"], "question": question, "value": value}
