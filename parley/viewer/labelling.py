"""Blind labelling: all raters get the same items, each in a different order, with the rubric but without identities,
models or methods. Raters are compared with each other (Fleiss' kappa) and with the panel."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Sequence
from typing import Any

from parley.agents import ConfigError, seed_from
from parley.judging.scoring.rubrics import load_rubric
from parley.runs import RunFile
from parley.viewer.figures import PANEL
from parley.viewer.notes import NotesFile
from parley.viewer.reading import hidden_words, read_unit, redact, redact_fields
from parley.viewer.table import UnitTable

SCALE = (0, 10)
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
        texts = blind_view(file, unit)["texts"]
        digest = hashlib.sha256(json.dumps(texts).encode("utf-8", "surrogatepass")).hexdigest()
        if texts and digest not in hashes:
            hashes.add(digest)
            items.append(unit)
        if len(items) == count:
            break
    if not items:
        raise ConfigError("no finished unit to label: remove some filters, or wait until units are done")
    return notes.add_set(seed, items, filters)


def blind_view(file: RunFile, unit_id: str) -> dict[str, Any]:
    """What a rater sees of a unit: redacted texts by name, and whether there are two candidates."""
    unit = read_unit(file, unit_id)
    texts = redact_fields(unit["fields"], unit["facets"])
    if not texts:
        words = hidden_words(unit["facets"])
        task = [message["text"] for message in unit["messages"] if message["role"] == "narrator"][:1]
        replies = [
            message["text"]
            for message in unit["messages"]
            if message["role"] not in ("narrator", "evaluator", "coordinator")
        ]
        texts = {"task": redact("\n".join(task), words), "text": redact("\n".join(replies[-1:]), words)}
    return {"texts": texts, "pair": "response_a" in texts and "response_b" in texts}


def rubric(file: RunFile) -> list[dict[str, Any]]:
    """The metrics of the run's rubric with their questions, or one overall score if the run has no rubric."""
    config = file.info().get("config") or {}
    try:
        metrics = load_rubric(str(config["rubric"])).only(config.get("metrics")).metric
        return [{"name": metric.name, "questions": list(metric.questions)} for metric in metrics]
    except (ConfigError, KeyError):
        return [{"name": "Quality", "questions": ["How good is the text overall?"]}]


def next_item(file: RunFile, notes: NotesFile, set_id: int, rater: str) -> dict[str, Any]:
    """The rater's next item, with progress, rubric and scale; without "item" once all are labelled."""
    order = _rater_order(notes, set_id, rater)
    labelled = {row["unit"] for row in notes.labels(set_id) if row["rater"] == rater}
    left = [unit for unit in order if unit not in labelled]
    progress: dict[str, Any] = {"set": set_id, "total": len(order), "done": len(order) - len(left)}
    progress |= {"rubric": rubric(file), "scale": SCALE}
    if not left:
        return progress
    # A unit's id can contain the identity, so the page gets the item's number in the rater's order instead.
    return {**progress, "item": order.index(left[0]), **blind_view(file, left[0])}


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


def agreement(notes: NotesFile, table: UnitTable, set_id: int) -> dict[str, Any]:
    """Fleiss' kappa between raters for each metric and subject, and each rater compared with the panel."""
    try:
        import pandas as pd

        from parley.analysis.stats.agreement import fleiss_kappa, weighted_kappa
    except ModuleNotFoundError:
        return {"unavailable": "agreement needs pandas: pip install 'parley-autogen[analysis]'"}
    labels = pd.DataFrame(notes.labels(set_id))
    if labels.empty:
        return {"raters": [], "between_raters": [], "with_panel": []}
    labels["rating"] = labels["text"].where(labels["text"].notna(), labels["value"].map(_score_text))
    between_raters = []
    for (subject, metric), group in labels.groupby(["subject", "metric"], sort=False):
        ratings = group.pivot_table(index="unit", columns="rater", values="rating", aggfunc="first")
        kappa = _kappa_json(fleiss_kappa(ratings))
        between_raters.append({"subject": subject, "metric": metric, "raters": ratings.shape[1], **kappa})
    positions = table.positions_by_id()
    panel = table.figures(PANEL)
    with_panel = []
    for rater, group in labels.groupby("rater", sort=False):
        choices = group[(group["metric"] == "preferred") & group["text"].notna()]
        compared = [
            (choice, panel_choice)
            for unit, choice in zip(choices["unit"], choices["text"], strict=True)
            if unit in positions and (panel_choice := panel.choice[positions[unit]]) is not None
        ]
        row: dict[str, Any] = {"rater": rater, "items": int(group["unit"].nunique()), "compared": len(compared)}
        if compared:
            rater_choices, panel_choices = (list(side) for side in zip(*compared, strict=True))
            row["same_choice"] = sum(choice == panel_choice for choice, panel_choice in compared)
            categories = ["A", "B", "tie"]
            row |= _kappa_json(weighted_kappa(rater_choices, panel_choices, weights="none", categories=categories))
        scores = group[group["value"].notna()].groupby("unit")["value"].mean()
        gaps = [score - panel.score[positions[unit]] for unit, score in scores.items() if unit in positions]
        gaps = [gap for gap in gaps if not math.isnan(gap)]
        row["mean_difference"] = sum(gaps) / len(gaps) if gaps else None
        row["mean_absolute_difference"] = sum(map(abs, gaps)) / len(gaps) if gaps else None
        with_panel.append(row)
    return {
        "raters": list(dict.fromkeys(labels["rater"])),
        "between_raters": between_raters,
        "with_panel": with_panel,
    }


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
