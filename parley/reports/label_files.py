"""Labels as files: exported as CSV or JSON lines, and imported into the notes of another copy of the run.

Each row is one rater's answer to one question about one unit. Its `draw` says how the unit was drawn, so that the same
run elsewhere gives the same draw again, with the same probabilities.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.base.text import plural
from parley.reports.label_answers import Question, answer, questions
from parley.reports.label_draw import (
    DrawSettings,
    asked_item,
    drawn_items,
    rater_order,
    stored_settings,
    text_id,
)
from parley.reports.label_rows import FORMULA_STARTS, LabelFileError, LabelRow, read_label_file
from parley.reports.label_texts import LabelItem, label_item
from parley.runs import RunFile
from parley.runs.notes import Answer, Item, NotesFile
from parley.runs.reading import NotFound

COLUMNS = (
    "unit", "rater", "question", "subject", "value", "comment", "draw", "probability", "position", "simulated", "at",
)  # fmt: skip


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
                problems.append(f"{row.place}: {row.rater} answers this at {seen[key]} already")
            elif old is not None and (old["value"], old["text"]) != (given.value, given.text):
                said = old["value"] if old["text"] is None else old["text"]
                problems.append(f"{row.place}: {row.rater} answered this before, with {said}")
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
        said = f"draw {draw}: {plural(len(self.answers), 'labelled item')} of {plural(len(places), 'rater')}"
        chosen = " (chosen, not drawn at random: they do not correct the judges)"
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
    return None, settings, [Item(unit, text_id(label_item(file, unit)), None, n) for n, unit in enumerate(units)]


def _item(file: RunFile, unit: str, settings: DrawSettings) -> LabelItem | None:
    try:
        return asked_item(file, unit, settings)
    except NotFound:
        return None


def _question(item: LabelItem, row: LabelRow) -> Question:
    """The item's question that a row answers."""
    asked = questions(item)
    named = [question for question in asked if question.name == row.question]
    for question in named:
        if question.subject == row.subject:
            return question
    if named:
        subjects = ", ".join(question.subject or "(none)" for question in named)
        raise ConfigError(f"{row.question} of '{row.subject}' is not asked; subject may be {subjects}")
    names = ", ".join(dict.fromkeys(question.name for question in asked))
    raise ConfigError(f"question '{row.question}' is not asked about this unit; asked is {names or 'nothing'}")
