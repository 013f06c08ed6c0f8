"""Blind labelling: all raters get the same items, each in a different order, with the rubric but without identities,
models or methods. Raters are compared with each other (Fleiss' kappa) and with the judges, metric by metric."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Sequence
from typing import Any

from parley.agents import ConfigError, seed_from
from parley.reports.label_texts import SCALE, LabelItem, label_item
from parley.runs import RunFile
from parley.runs.notes import NotesFile
from parley.runs.reading import NotFound
from parley.viewer.figures import PANEL, majority
from parley.viewer.table import UnitTable

CHOICES = ("preferred", "answer")
"""The metrics whose verdicts are choices, which raters make too."""
MAX_UNITS_PER_ITEM = 20
"""Units read per requested item, at most: many units show the same text under different labels."""


def draw_set(
    file: RunFile, notes: NotesFile, units: Sequence[str], *, count: int, seed: int, filters: dict[str, Any]
) -> int:
    """Draw a set of units whose texts differ after redaction, store it and return its id.

    Args:
        file: the run.
        notes: where the set is stored.
        units: ids of the units to draw from.
        count: how many items to draw, at most.
        seed: the seed of the draw.
        filters: the filters that gave `units`, stored with the set.
    """
    shuffled = list(units)
    random.Random(seed).shuffle(shuffled)
    hashes: set[str] = set()
    items: list[str] = []
    for unit in shuffled[: count * MAX_UNITS_PER_ITEM]:
        item = label_item(file, unit)
        content = [item.task, [text.text for text in item.texts]]
        digest = hashlib.sha256(json.dumps(content).encode("utf-8", "surrogatepass")).hexdigest()
        if (item.texts or item.choice) and digest not in hashes:
            hashes.add(digest)
            items.append(unit)
        if len(items) == count:
            break
    if not items:
        raise ConfigError("no finished unit to label: remove some filters, or wait until units are done")
    return notes.add_set(seed, items, filters)


def next_item(file: RunFile, notes: NotesFile, set_id: int, rater: str) -> dict[str, Any]:
    """The rater's next item, with progress; without "item" once all are labelled."""
    order = _rater_order(notes, set_id, rater)
    labelled = {row["unit"] for row in notes.labels(set_id) if row["rater"] == rater}
    left = [unit for unit in order if unit not in labelled]
    progress: dict[str, Any] = {"set": set_id, "total": len(order), "done": len(order) - len(left)}
    if not left:
        return progress
    # A unit's id can contain the identity, so the page gets the item's number in the rater's order instead.
    return {**progress, "item": order.index(left[0]), **label_item(file, left[0]).page()}


def unit_of_item(notes: NotesFile, set_id: int, rater: str, item: int) -> str:
    order = _rater_order(notes, set_id, rater)
    if not 0 <= item < len(order):
        raise ConfigError(f"set {set_id} has no item {item}")
    return order[item]


def _rater_order(notes: NotesFile, set_id: int, rater: str) -> list[str]:
    for label_set in notes.sets():
        if label_set["id"] == set_id:
            order: list[str] = list(label_set["items"])
            random.Random(seed_from(label_set["seed"], rater)).shuffle(order)
            return order
    raise ConfigError(f"there is no label set {set_id}")


def label_rows(
    item: LabelItem, scores: Sequence[tuple[int, str, float]], choice: str | None
) -> list[tuple[str, str, float | None, str | None]]:
    """A rater's labels of an item as they are stored, (subject, metric, value, text)….

    Args:
        item: The item.
        scores: The number of a text, a metric and its score.
        choice: The value of the chosen option; None if none was asked for.
    """
    rows: list[tuple[str, str, float | None, str | None]] = []
    metrics = {metric.name for metric in item.metrics}
    for number, metric, value in scores:
        if number >= len(item.texts) or metric not in metrics:
            raise ConfigError(f"this item has no score '{metric}' of text {number + 1}")
        rows.append((item.texts[number].subject, metric, value, None))
    if choice is not None:
        words = dict(item.options).get(choice)
        if words is None:
            raise ConfigError(f"this item has no option '{choice}'")
        rows.append(("", item.choice, None, choice) if item.is_pair else ("", item.choice, float(choice), words))
    if not rows:
        raise ConfigError("a label needs a score or a choice")
    return rows


def agreement(file: RunFile, notes: NotesFile, set_id: int) -> dict[str, Any]:
    """Fleiss' kappa between raters for each metric and subject, and each rater compared with the judges."""
    try:
        import pandas as pd

        from parley.analysis.stats.agreement import fleiss_kappa, weighted_kappa
    except ModuleNotFoundError:
        return {"unavailable": "agreement needs pandas: pip install 'parley-autogen[analysis]'"}
    labels = pd.DataFrame(notes.labels(set_id))
    if labels.empty:
        return {"raters": [], "between_raters": [], "with_judges": []}
    labels["rating"] = labels["text"].where(labels["text"].notna(), labels["value"].map(_score_text))
    # The subjects A and B are places, shown to all; other subjects are speakers, who differ from unit to unit.
    sides = labels["subject"].where(labels["subject"].isin(["A", "B"]), "")
    labels["row"] = labels["unit"] + "\x00" + labels["subject"].where(sides == "", "")
    between_raters = []
    for (side, metric), group in labels.groupby([sides, "metric"], sort=False):
        ratings = group.pivot_table(index="row", columns="rater", values="rating", aggfunc="first")
        kappa = _kappa_json(fleiss_kappa(ratings))
        between_raters.append({"subject": side, "metric": metric, "raters": ratings.shape[1], **kappa})
    judged = {unit: _judged(file, unit) for unit in labels["unit"].unique()}
    with_judges = []
    for rater, group in labels.groupby("rater", sort=False):
        row: dict[str, Any] = {"rater": rater, "items": int(group["unit"].nunique())}
        choices = [
            (label.text, choice)
            for label in group[group["text"].notna()].itertuples()
            if (choice := judged[label.unit].get(("", label.metric))) is not None
        ]
        row["compared"] = len(choices)
        if choices:
            rater_choices, judges_choices = (list(side) for side in zip(*choices, strict=True))
            row["same_choice"] = sum(choice == other for choice, other in choices)
            categories = ["A", "B", "tie"] if {*rater_choices, *judges_choices} <= {"A", "B", "tie"} else None
            row |= _kappa_json(weighted_kappa(rater_choices, judges_choices, weights="none", categories=categories))
        gaps = [
            label.value - score
            for label in group[group["text"].isna()].itertuples()
            if isinstance(score := judged[label.unit].get((label.subject, label.metric)), float)
        ]
        row["scores"] = len(gaps)
        row["mean_difference"] = sum(gaps) / len(gaps) if gaps else None
        row["mean_absolute_difference"] = sum(map(abs, gaps)) / len(gaps) if gaps else None
        with_judges.append(row)
    return {
        "raters": list(dict.fromkeys(labels["rater"])),
        "between_raters": between_raters,
        "with_judges": with_judges,
    }


def _judged(file: RunFile, unit: str) -> dict[tuple[str, str], float | str | None]:
    """What the judges said of an item, by subject and metric: mean scores on the raters' scale, and the choice."""
    try:
        item = label_item(file, unit)
    except NotFound:
        return {}
    _, verdicts = file.rows(
        "SELECT metric, subject, role, round, value, text FROM verdicts WHERE unit = ? ORDER BY nth", (unit,)
    )
    known: dict[tuple[str, str], float | str | None] = {}
    for choice in CHOICES:
        final = _final([row for row in verdicts if row[0] == choice], None)
        known["", choice] = majority(text for *_, text in final)
    low, high = SCALE
    for metric in item.metrics:
        for subject in {text.subject for text in item.texts} if metric.scale else ():
            rows = [row for row in verdicts if row[0] == metric.name and subject in ("", row[1])]
            values = [value for *_, value, _ in _final(rows, item.round) if value is not None]
            if values and metric.scale:
                start, end = metric.scale
                mean = sum(values) / len(values)
                known[subject, metric.name] = low + (mean - start) / (end - start) * (high - low)
    return known


def _final(rows: Sequence[Any], round: int | None) -> Sequence[Any]:
    """The verdicts of a round, by default the last; a chair's, where there is one."""
    last = max((row[3] for row in rows), default=0) if round is None else round
    rows = [row for row in rows if row[3] == last]
    return [row for row in rows if row[2] == "chair"] or rows


def tag_table(notes: NotesFile, table: UnitTable) -> list[dict[str, Any]]:
    """For each tag, the panel's verdicts on the units that carry it."""
    all_positions = table.positions_by_id()
    panel = table.figures(PANEL)
    rows = []
    for tag, units in notes.units_by_tag().items():
        positions = [all_positions[unit] for unit in units if unit in all_positions]
        scores = [score for position in positions if not math.isnan(score := panel.score[position])]
        choices = [choice for position in positions if (choice := panel.choice[position])]
        rows.append(
            {
                "tag": tag,
                "units": len(positions),
                "score": sum(scores) / len(scores) if scores else None,
                "choices": {choice: choices.count(choice) for choice in sorted(set(choices))},
                "flipped": sum(panel.flip[position] == "flipped" for position in positions),
            }
        )
    return rows


def _score_text(value: float | None) -> str | None:
    return None if value is None or math.isnan(value) else f"{value:g}"


def _kappa_json(kappa: Any) -> dict[str, Any]:
    values = {"kappa": kappa.estimate, "low": kappa.low, "high": kappa.high}
    return {key: None if math.isnan(value) else value for key, value in values.items()} | {
        "note": kappa.note,
        "n": kappa.n,
    }
