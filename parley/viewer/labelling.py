"""Blind labelling on the page: the rater's next item, and how raters agree with each other and with the judges.

All raters get the same items, each in a different order, with the rubric but without identities, models or methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from parley.agents import ConfigError
from parley.reports.labels.answers import answer, judged
from parley.reports.labels.draws import DrawSettings, asked_item, find_draw, rater_order, why_fewer
from parley.reports.labels.items import LabelItem
from parley.runs import RunFile
from parley.runs.notes import Answer, NotesFile


class RaterView:
    """A draw as one rater sees it: nothing of the other raters, and items by their number.

    A unit's id can contain the identity, so the page gets the item's number in the rater's order instead.

    Args:
        file: The run.
        notes: Its notes.
        draw_id: The draw.
        rater: The rater's name.
    """

    def __init__(self, file: RunFile, notes: NotesFile, draw_id: int, rater: str) -> None:
        self.file, self.notes, self.draw_id, self.rater = file, notes, draw_id, rater
        self.settings = DrawSettings.of(find_draw(notes, draw_id))
        self.order = rater_order(self.settings, notes.items(draw_id), rater)

    def next_item(self) -> dict[str, Any]:
        """The next item with progress; without "item" once all are labelled."""
        mine = [row for row in self.notes.labels(self.draw_id) if row["rater"] == self.rater]
        done = {row["unit"] for row in mine}
        answered = {row["unit"] for row in mine if row["value"] is not None}
        left = [number for number, unit in enumerate(self.order) if unit not in done]
        progress = {"set": self.draw_id, "total": len(self.order), "done": len(self.order) - len(left)}
        progress["skipped"] = len(done - answered)
        if not left:
            return progress
        return {**progress, "item": left[0], **self._item(left[0]).page()}

    def store(self, number: int, scores: Sequence[tuple[int, str, float]], choice: str | None, comment: str) -> None:
        """Store the rater's answers about an item; without any, it is skipped.

        Args:
            number: The item's number.
            scores: The number of a text, a metric and its score.
            choice: The value of the chosen option.
            comment: What the rater wrote.
        """
        item = self._item(number)
        answers = given_answers(item, scores, choice)
        self.notes.add_labels(
            self.draw_id, self.order[number], self.rater, answers, comment=comment.strip(), position=number
        )

    def undo(self) -> None:
        """Take back the rater's last item."""
        mine = [row for row in self.notes.labels(self.draw_id) if row["rater"] == self.rater]
        if not mine:
            raise ConfigError("there is nothing to undo")
        self.notes.remove_labels(self.draw_id, max(mine, key=lambda row: row["at"])["unit"], self.rater)

    def _item(self, number: int) -> LabelItem:
        if not 0 <= number < len(self.order):
            raise ConfigError(f"draw {self.draw_id} has no item {number}")
        return asked_item(self.file, self.order[number], self.settings)


def given_answers(item: LabelItem, scores: Sequence[tuple[int, str, float]], choice: str | None) -> list[Answer]:
    """One answer to each question about an item; without scores and choice all are skipped."""
    given: dict[tuple[str, str], str | float | None] = {}
    for number, metric, value in scores:
        if number >= len(item.texts):
            raise ConfigError(f"this item has no text {number + 1}")
        given[item.texts[number].subject, metric] = value
    if choice is not None:
        given["", item.choice] = choice
    asked = item.questions()
    if unknown := given.keys() - {(question.subject, question.name) for question in asked}:
        raise ConfigError(f"'{min(unknown)[1]}' is not asked about this item")
    if given and len(given) < len(asked):
        raise ConfigError(f"{len(asked) - len(given)} of {len(asked)} answers are missing")
    return [answer(item, question, given.get((question.subject, question.name))) for question in asked]


def draw_json(file: RunFile, notes: NotesFile, draw: Mapping[str, Any]) -> dict[str, Any]:
    """A draw for the page: how it was drawn, and the agreement on it."""
    settings = DrawSettings.of(draw)
    return {
        "id": draw["id"],
        "at": draw["at"],
        "items": draw["settings"].get("drawn"),
        "texts": draw["settings"].get("texts"),
        "fewer": why_fewer(draw["settings"]),
        "corrects": draw["settings"].get("corrects", []),
        "kind": settings.kind,
        "floor": settings.floor,
        "seed": settings.seed,
        "agreement": agreement(file, notes, draw["id"]),
    }


def agreement(file: RunFile, notes: NotesFile, draw_id: int) -> dict[str, Any]:
    """How the raters of a draw agree with each other, and each of them with the judges."""
    try:
        import pandas as pd

        from parley.analysis.labels import between_raters, non_response, with_judges
    except ModuleNotFoundError:
        return {"unavailable": "agreement needs pandas: pip install 'parley-autogen[analysis]'"}
    rows = notes.labels(draw_id)
    if not rows:
        return {"raters": [], "between_raters": [], "with_judges": []}
    labels = pd.DataFrame(rows)
    said = {(unit, *asked): value for unit in labels["unit"].unique() for asked, value in judged(file, unit).items()}
    responses = non_response(labels).groupby("rater")["skipped"].max()
    people = labels[~labels["simulated"]]
    return {
        "raters": list(dict.fromkeys(labels["rater"])),
        "simulated": bool(labels["simulated"].any()),
        "between_raters": [_json(row) for row in between_raters(labels if people.empty else people)],
        "with_judges": [{**_json(row), "skipped": int(responses[row["rater"]])} for row in with_judges(labels, said)],
    }


def _json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
