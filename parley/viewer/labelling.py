"""Blind labelling, as human evaluations are done: the same items for all raters, each in an order of their own, without
identities, models or methods, with the rubric beside the text. What raters say is compared with each other (Fleiss'
kappa) and with the panel."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any

from parley.agents import ConfigError, seed_from
from parley.judging.scoring.rubrics import load_rubric
from parley.runs import RunFile
from parley.viewer.notes import Notes
from parley.viewer.reading import blotted, masked, unit_whole
from parley.viewer.table import UnitTable

SCALE = (0, 10)
TRIES = 20
"""Units looked at for each wanted item, at most: many units show the same words under other labels."""


def new_set(file: RunFile, notes: Notes, units: Sequence[str], count: int, seed: int, chosen: dict[str, Any]) -> int:
    """Draw items: units whose words, labels blacked out, differ from each other."""
    drawn = list(units)
    random.Random(seed).shuffle(drawn)
    seen: set[str] = set()
    items: list[str] = []
    for unit in drawn[: count * TRIES]:
        shown = blind(file, unit)
        key = hashlib.sha256(json.dumps(shown["texts"]).encode("utf-8", "surrogatepass")).hexdigest()
        if shown["texts"] and key not in seen:
            seen.add(key)
            items.append(unit)
        if len(items) == count:
            break
    if not items:
        raise ConfigError("there is no finished unit to label among these")
    return notes.new_set(seed, items, chosen)


def blind(file: RunFile, unit: str) -> dict[str, Any]:
    """What a rater sees of a unit: texts by name, and whether there are two candidates."""
    whole = unit_whole(file, unit)
    shown = masked(whole["fields"], whole["facets"])
    if not shown:
        hidden = [value for key, value in whole["facets"].items() if key.startswith(("identity", "other")) and value]
        opening = [one["text"] for one in whole["messages"] if one["role"] == "narrator"][:1]
        final = [
            one["text"] for one in whole["messages"] if one["role"] not in ("narrator", "evaluator", "coordinator")
        ]
        shown = {"task": blotted("\n".join(opening), hidden), "text": blotted("\n".join(final[-1:]), hidden)}
    return {"texts": shown, "pair": "response_a" in shown and "response_b" in shown}


def rubric(file: RunFile) -> list[dict[str, Any]]:
    """The metrics with their questions: the run's own, or a single mark where the run has none."""
    config = file.info().get("config") or {}
    try:
        found = load_rubric(str(config["rubric"])).only(config.get("metrics"))
        return [{"name": metric.name, "questions": list(metric.questions)} for metric in found.metric]
    except (ConfigError, KeyError):
        return [{"name": "Quality", "questions": ["How good is the text, all in all?"]}]


def item(file: RunFile, notes: Notes, nth: int, rater: str) -> dict[str, Any]:
    """The next item for a rater, in the rater's own order."""
    found = next((one for one in notes.sets() if one["id"] == nth), None)
    if found is None:
        raise ConfigError(f"there is no set {nth} to label")
    order = list(found["items"])
    random.Random(seed_from(found["seed"], rater)).shuffle(order)
    done = {row["unit"] for row in notes.labels(nth) if row["rater"] == rater}
    left = [unit for unit in order if unit not in done]
    whole = {"set": nth, "total": len(order), "done": len(order) - len(left), "rubric": rubric(file), "scale": SCALE}
    if not left:
        return whole
    # The unit's id would give the identity away: the page gets its number in the rater's order.
    return {**whole, "item": order.index(left[0]), **blind(file, left[0])}


def unit_of(notes: Notes, nth: int, rater: str, number: int) -> str:
    found = next((one for one in notes.sets() if one["id"] == nth), None)
    if found is None or not 0 <= number < len(found["items"]):
        raise ConfigError("there is no such item to label")
    order = list(found["items"])
    random.Random(seed_from(found["seed"], rater)).shuffle(order)
    return str(order[number])


def agreement(notes: Notes, table: UnitTable, nth: int) -> dict[str, Any]:
    """Fleiss' kappa among raters for every metric and subject, and each rater beside the panel."""
    try:
        import pandas as pd

        from parley.analysis.stats.agreement import fleiss_kappa, weighted_kappa
    except ModuleNotFoundError:
        return {"why_none": "agreement needs pandas and friends: pip install 'parley-autogen[analysis]'"}
    labels = pd.DataFrame(notes.labels(nth))
    if labels.empty:
        return {"raters": [], "among": [], "panel": []}
    labels["said"] = labels["text"].where(labels["text"].notna(), labels["value"].map(_mark))
    among = []
    for (subject, metric), group in labels.groupby(["subject", "metric"], sort=False):
        ratings = group.pivot_table(index="unit", columns="rater", values="said", aggfunc="first")
        found = fleiss_kappa(ratings)
        among.append({"subject": subject, "metric": metric, "raters": ratings.shape[1], **_plain(found)})
    places = {unit: position for position, unit in enumerate(table.ids)}
    panel = table.lens("")
    rows = []
    for rater, group in labels.groupby("rater", sort=False):
        chosen = group[(group["metric"] == "preferred") & group["text"].notna()]
        theirs = [panel.choice[places[unit]] if unit in places else None for unit in chosen["unit"]]
        both = [(mine, other) for mine, other in zip(chosen["text"], theirs, strict=True) if other is not None]
        row: dict[str, Any] = {"rater": rater, "items": int(group["unit"].nunique()), "compared": len(both)}
        if both:
            first, second = (list(side) for side in zip(*both, strict=True))
            row["alike"] = sum(mine == other for mine, other in both)
            row |= _plain(weighted_kappa(first, second, weights="none", categories=["A", "B", "tie"]))
        scores = group[group["value"].notna()].groupby("unit")["value"].mean()
        gaps = [value - panel.score[places[unit]] for unit, value in scores.items() if unit in places]
        gaps = [gap for gap in gaps if gap == gap]
        row["mean_gap"] = sum(gaps) / len(gaps) if gaps else None
        row["mean_distance"] = sum(map(abs, gaps)) / len(gaps) if gaps else None
        rows.append(row)
    return {"raters": list(dict.fromkeys(labels["rater"])), "among": among, "panel": rows}


def tag_table(notes: Notes, table: UnitTable) -> list[dict[str, Any]]:
    """Human tags beside the panel's verdicts: for each tag, what the panel said of the units that carry it."""
    places = {unit: position for position, unit in enumerate(table.ids)}
    lens = table.lens("")
    rows = []
    for tag, units in notes.tags().items():
        at = [places[unit] for unit in units if unit in places]
        scores = [lens.score[position] for position in at if lens.score[position] == lens.score[position]]
        choices = [lens.choice[position] for position in at]
        rows.append(
            {
                "tag": tag,
                "units": len(at),
                "score": sum(scores) / len(scores) if scores else None,
                "choices": {choice: choices.count(choice) for choice in sorted({one for one in choices if one})},
                "flipped": sum(lens.flip[position] == "flipped" for position in at),
            }
        )
    return rows


def _mark(value: float | None) -> str | None:
    return None if value is None or value != value else f"{value:g}"


def _plain(found: Any) -> dict[str, Any]:
    values = {"kappa": found.estimate, "low": found.low, "high": found.high}
    return {key: None if value != value else value for key, value in values.items()} | {
        "note": found.note,
        "n": found.n,
    }
