"""Labels as files: exported as CSV or JSON lines, and imported into the notes of another copy of the run.

What Label Studio and Argilla export is imported too. A file with problems is refused, and every problem has its line.

Each row is one rater's answer to one question about one unit. Its `draw` says how the unit was drawn, so that the same
run elsewhere gives the same draw again, with the same probabilities.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.base.text import plural, without_surrogates
from parley.reports.labels.answers import answer
from parley.reports.labels.draws import (
    DrawSettings,
    asked_item,
    drawn_items,
    rater_order,
    stored_settings,
    text_id,
)
from parley.reports.labels.items import LabelItem, LabelItems, Question
from parley.runs import RunFile
from parley.runs.notes import Answer, Item, NotesFile
from parley.runs.reading import NotFound

COLUMNS = (
    "unit", "rater", "question", "subject", "value", "comment", "draw", "probability", "position", "simulated", "at",
)  # fmt: skip
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
        raise ValueError(f"it has no column {' or '.join(missing)}; labels need {', '.join(NEEDED)}")
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
            problems.append(f"{place}: neither a Label Studio task nor an Argilla record with its unit")
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


def exported(notes: NotesFile) -> list[dict[str, Any]]:
    """All labels of a run as rows of `COLUMNS`. A skip has no value."""
    recipes = {draw["id"]: DrawSettings.of(draw).recipe() for draw in notes.draws()}
    rows = []
    for label in notes.labels():
        value = label["value"] if label["text"] is None else label["text"]
        recipe = recipes.get(label["draw"], "")
        rows.append({**{name: label.get(name) for name in COLUMNS}, "value": value, "draw": recipe})
    return rows


def as_csv(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...] = COLUMNS) -> str:
    """Rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [int(value) if isinstance(value := row[column], bool) else value for column in columns]
        writer.writerow("'" + v if isinstance(v, str) and v.startswith(FORMULA_STARTS) else v for v in values)
    return text.getvalue()


def import_labels(file: RunFile, notes: NotesFile, path: Path, draw_id: int | None = None) -> list[str]:
    """Store the labels of a file, all or none, and return what was stored, in words.

    Args:
        file: The run.
        notes: Where its labels are stored.
        path: The file.
        draw_id: The draw that the labels answer, where the file does not say.
    """
    rows_of: dict[str, list[LabelRow]] = {}
    labels, problems = read_label_file(path)
    for row in labels:
        rows_of.setdefault(row.draw, []).append(row)
    read = [_Import(file, notes, recipe, rows, draw_id, problems) for recipe, rows in rows_of.items()]
    if problems:
        raise LabelFileError(path, problems)
    with notes.all_or_none():
        return [part.store(notes) for part in read]


class _Import:
    """The rows of a file that belong to one draw, checked; nothing is stored yet."""

    def __init__(
        self,
        file: RunFile,
        notes: NotesFile,
        recipe: str,
        rows: Sequence[LabelRow],
        draw_id: int | None,
        problems: list[str],
    ) -> None:
        known: dict[str, LabelItem | None] = {}
        self.draw_id, self.settings, self.items = _draw_for(file, notes, recipe, rows, draw_id)
        drawn = {item.unit for item in self.items if item.position is not None}
        labels = notes.labels(self.draw_id) if self.draw_id is not None else []
        before = {(label["unit"], label["rater"], label["subject"], label["question"]): label for label in labels}
        seen: dict[tuple[str, ...], str] = {}
        self.answers: dict[tuple[str, str], list[tuple[LabelRow, Answer]]] = {}
        for row in rows:
            if row.unit not in known:
                known[row.unit] = _item(file, row.unit, self.settings)
            item = known[row.unit]
            if item is None or row.unit not in drawn:
                why = "is not in the run" if item is None else "was not drawn"
                problems.append(f"{row.place}: unit '{row.unit}' {why}")
                continue
            try:
                given = answer(item, _question(item, row), row.value)
            except ConfigError as error:
                problems.append(f"{row.place}: {error}")
                continue
            key = (row.unit, row.rater, given.subject, given.question)
            old = before.get(key)
            if key in seen:
                problems.append(f"{row.place}: {row.rater} already answered this at {seen[key]}")
            elif old is not None and (old["value"], old["text"]) != (given.value, given.text):
                said = old["value"] if old["text"] is None else old["text"]
                problems.append(f"{row.place}: {row.rater} already answered this with {said}")
            seen[key] = row.place
            self.answers.setdefault((row.unit, row.rater), []).append((row, given))

    def store(self, notes: NotesFile) -> str:
        """Store the draw, if it is new, and the answers; says what was stored."""
        settings = self.settings
        draw = self.draw_id
        if draw is None:
            draw = notes.add_draw(settings.kind, settings.seed, self.items, stored_settings(settings, self.items))
        places: dict[str, dict[str, int]] = {}
        for (unit, rater), pairs in self.answers.items():
            if rater not in places:
                places[rater] = {name: n for n, name in enumerate(rater_order(settings, self.items, rater))}
            rows = [row for row, _ in pairs]
            notes.add_labels(
                draw,
                unit,
                rater,
                [given for _, given in pairs],
                comment=next((row.comment for row in rows if row.comment), ""),
                position=places[rater][unit],
                simulated=any(row.simulated for row in rows),
                at=rows[0].at,
            )
        said = f"draw {draw}: {plural(len(self.answers), 'labelled item')} by {plural(len(places), 'rater')}"
        chosen = " (chosen, not drawn at random, so they do not correct the judges)"
        return said + ("" if settings.kind == "random" else chosen)


def _draw_for(
    file: RunFile, notes: NotesFile, recipe: str, rows: Sequence[LabelRow], draw_id: int | None
) -> tuple[int | None, DrawSettings, list[Item]]:
    """The draw that rows belong to, its id None if the notes do not have it yet.

    Labels without a draw are a list that somebody chose, without probabilities.
    """
    if recipe or draw_id is not None:
        for draw in notes.draws():
            settings = DrawSettings.of(draw)
            if settings.recipe() == recipe if recipe else draw["id"] == draw_id:
                return draw["id"], settings, notes.items(draw["id"])
        if not recipe:
            raise ConfigError(f"there is no draw {draw_id}")
        settings = DrawSettings.from_recipe(recipe)
        if settings.kind != "given":
            return None, settings, drawn_items(file, settings)
    units = [unit for unit in dict.fromkeys(row.unit for row in rows) if file.status(unit) is not None]
    settings = DrawSettings(count=len(units), kind="given", scores=True)
    items = LabelItems(file)
    return None, settings, [Item(unit, text_id(items.of(unit)), None, n) for n, unit in enumerate(units)]


def _item(file: RunFile, unit: str, settings: DrawSettings) -> LabelItem | None:
    try:
        return asked_item(file, unit, settings)
    except NotFound:
        return None


def _question(item: LabelItem, row: LabelRow) -> Question:
    """The item's question that a row answers."""
    asked = item.questions()
    named = [question for question in asked if question.name == row.question]
    for question in named:
        if question.subject == row.subject:
            return question
    if named:
        subjects = ", ".join(question.subject or "(none)" for question in named)
        raise ConfigError(f"{row.question} of '{row.subject}' is not asked; subject may be {subjects}")
    names = ", ".join(dict.fromkeys(question.name for question in asked))
    raise ConfigError(f"question '{row.question}' is not asked about this unit; its questions are {names or 'none'}")
