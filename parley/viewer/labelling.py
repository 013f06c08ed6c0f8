"""Blind labelling: all raters get the same items, each in a different order, with the rubric but without identities,
models or methods. Raters are compared with each other (Fleiss' kappa) and with the judges, metric by metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from parley.agents import ConfigError
from parley.reports.label_draw import CHOICES, final_verdicts, rater_order
from parley.reports.label_texts import PAIR_VALUES, SCALE, LabelItem, label_item
from parley.runs import RunFile
from parley.runs.notes import Answer, NotesFile
from parley.runs.reading import NotFound
from parley.viewer.figures import PANEL, majority
from parley.viewer.table import UnitTable


def next_item(file: RunFile, notes: NotesFile, draw: int, rater: str) -> dict[str, Any]:
    """The rater's next item, with progress; without "item" once all are labelled."""
    order = rater_order(notes, draw, rater)
    labelled = {row["unit"] for row in notes.labels(draw) if row["rater"] == rater}
    left = [unit for unit in order if unit not in labelled]
    progress: dict[str, Any] = {"set": draw, "total": len(order), "done": len(order) - len(left)}
    if not left:
        return progress
    # A unit's id can contain the identity, so the page gets the item's number in the rater's order instead.
    return {**progress, "item": order.index(left[0]), **label_item(file, left[0]).page()}


def unit_of_item(notes: NotesFile, draw: int, rater: str, item: int) -> str:
    order = rater_order(notes, draw, rater)
    if not 0 <= item < len(order):
        raise ConfigError(f"draw {draw} has no item {item}")
    return order[item]


def label_rows(item: LabelItem, scores: Sequence[tuple[int, str, float]], choice: str | None) -> list[Answer]:
    """A rater's answers about an item as they are stored.

    Args:
        item: The item.
        scores: The number of a text, a metric and its score.
        choice: The value of the chosen option; None if none was asked for.
    """
    rows: list[Answer] = []
    metrics = {metric.name: metric for metric in item.metrics}
    for number, metric, value in scores:
        if number >= len(item.texts) or metric not in metrics:
            raise ConfigError(f"this item has no score '{metric}' of text {number + 1}")
        rows.append(Answer(item.texts[number].subject, metric, value, metrics[metric].on_judges_scale(value), None))
    if choice is not None:
        words = dict(item.options).get(choice)
        if words is None:
            raise ConfigError(f"this item has no option '{choice}'")
        value = PAIR_VALUES[choice] if item.is_pair else float(choice)
        rows.append(Answer("", item.choice, value, None, choice if item.is_pair else words))
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
    for (side, metric), group in labels.groupby([sides, "question"], sort=False):
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
            if (choice := judged[label.unit].get(("", label.question))) is not None
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
            if isinstance(score := judged[label.unit].get((label.subject, label.question)), float)
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
    verdicts = final_verdicts(file, unit, round=item.round)
    known: dict[tuple[str, str], float | str | None] = {}
    for choice in CHOICES:
        known["", choice] = majority(text for metric, _, _, text in verdicts if metric == choice)
    low, high = SCALE
    for metric in item.metrics:
        for subject in {text.subject for text in item.texts} if metric.scale else ():
            values = [
                v for name, about, v, _ in verdicts if name == metric.name and subject in ("", about) and v is not None
            ]
            if values and metric.scale:
                start, end = metric.scale
                mean = sum(values) / len(values)
                known[subject, metric.name] = low + (mean - start) / (end - start) * (high - low)
    return known


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
