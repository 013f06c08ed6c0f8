"""Which texts of a run people label, and in which order.

A random draw records the probability of every text, so that its labels stand for the whole. The probability may rise
where the judges disagree, since a label tells more there, but a floor keeps every text possible. Every rater has a
random order: a rater who stops early has rated a random part of the draw. A sorted queue is for reading what looks odd
first; its labels have no probability.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlencode

from pydantic import BaseModel, ValidationError

from parley.agents import ConfigError, seed_from
from parley.base.text import plural
from parley.reports.labels.items import PREFERRED, LabelItem, LabelItems, label_item
from parley.runs import RunFile
from parley.runs.notes import DrawKind, Item, NotesFile
from parley.runs.reading import parse_facets

CHOICES = (PREFERRED, "answer")
"""The metrics whose verdicts are choices, which raters make too."""


class DrawSettings(BaseModel, frozen=True):
    """How items are drawn.

    Args:
        count: How many texts, at most.
        seed: The seed.
        kind: "random", or "sorted" for a queue that begins where the judges disagree most.
        floor: The smallest probability of a text, as a share of what it would be in an even draw. 1 draws evenly; below
            1, the rest of the probability goes to texts in proportion to the judges' disagreement.
        scores: Whether raters also score each answer of a pair; otherwise they only choose, which takes one key.
        filters: The facets of the units to draw from, as on the viewer's pages: {"f.phase": ["2"]}.
    """

    count: int = 50
    seed: int = 0
    kind: DrawKind = "random"
    floor: float = 1.0
    scores: bool = False
    filters: Mapping[str, Sequence[str]] = {}

    @classmethod
    def of(cls, draw: Mapping[str, Any]) -> DrawSettings:
        """The settings of a stored draw."""
        try:
            stored = {name: draw["settings"][name] for name in ("floor", "scores", "filters")}
            return cls(count=draw["settings"]["asked"], seed=draw["seed"], kind=draw["kind"], **stored)
        except (KeyError, TypeError, ValidationError):
            raise ConfigError(f"draw {draw['id']} of the notes file is damaged") from None

    def recipe(self) -> str:
        """The settings as one line; the same line on the same units gives the same draw."""
        plain = {"kind": self.kind, "items": self.count, "seed": self.seed, "floor": self.floor}
        return urlencode({**plain, "scores": int(self.scores), **self.filters}, doseq=True)

    @classmethod
    def from_recipe(cls, recipe: str) -> DrawSettings:
        """The settings that `recipe` wrote."""
        try:
            values = parse_qs(recipe, strict_parsing=True, keep_blank_values=True)
            filters = {name: found for name, found in values.items() if name.startswith("f.")}
            single: dict[str, Any] = {name: values[name][0] for name in ("seed", "kind", "floor", "scores")}
            return cls(count=int(values["items"][0]), filters=filters, **single)
        except (KeyError, ValueError):  # pydantic's error is a ValueError
            raise ConfigError(f"'{recipe}' does not describe a draw") from None


def draw_items(file: RunFile, notes: NotesFile, settings: DrawSettings) -> int:
    """Draw texts to label from the finished units, store the draw and return its id.

    Args:
        file: The run.
        notes: Where the draw is stored.
        settings: How many, and how.
    """
    for draw in notes.draws():
        if DrawSettings.of(draw).recipe() == settings.recipe():
            raise ConfigError(f"draw {draw['id']} was made with the same settings and seed: choose another seed")
    items = drawn_items(file, settings)
    stored = {**stored_settings(settings, items), "corrects": what_they_correct(file, settings, items)}
    return notes.add_draw(settings.kind, settings.seed, items, stored)


def what_they_correct(file: RunFile, settings: DrawSettings, items: Sequence[Item]) -> list[str]:
    """What labels of all drawn items would correct, in sentences; none where pandas is not installed."""
    if settings.kind != "random":
        return ["These labels correct nothing: they are of the most disputed texts, not of a random draw."]
    try:
        import pandas as pd

        from parley.reports.labelled import what_labels_correct
        from parley.runs.frames import DRAWN_COLUMNS
    except ModuleNotFoundError:
        return []
    drawn = pd.DataFrame([(0, *item) for item in items], columns=list(DRAWN_COLUMNS))
    shown = (asked_item(file, item.unit, settings) for item in items if item.position is not None)
    return what_labels_correct(file.path, drawn, {question[:2] for item in shown for question in item.questions()})


def drawn_items(file: RunFile, settings: DrawSettings) -> list[Item]:
    """All units that could be drawn, and which of them are; the same for the same units and settings."""
    if not 0 < settings.floor <= 1:
        raise ConfigError(f"floor must be above 0 and at most 1, got {settings.floor:g}")
    units_of: dict[str, list[str]] = {}
    items = LabelItems(file)
    for unit in matching_units(file, settings.filters):
        item = items.of(unit)
        if item.texts or item.choice:
            units_of.setdefault(text_id(item), []).append(unit)
    if not units_of:
        raise ConfigError("no finished unit to label: remove some filters, or wait until units are done")
    even = settings.kind == "random" and settings.floor == 1
    spread = dict.fromkeys(units_of, 0.0) if even else disagreement(file, units_of)
    generator = random.Random(settings.seed)
    texts = list(units_of)
    generator.shuffle(texts)
    probability: dict[str, float | None] = dict.fromkeys(texts)
    if settings.kind == "random":
        chances = probabilities([spread[text] for text in texts], settings.count, settings.floor)
        probability = dict(zip(texts, chances, strict=True))
        order = [texts[n] for n in systematic(chances, generator.random())]
        generator.shuffle(order)
    else:
        order = sorted(texts, key=lambda text: -spread[text])[: settings.count]
    shown = {generator.choice(units_of[text]): position for position, text in enumerate(order)}
    return [Item(unit, text, probability[text], shown.get(unit)) for text, units in units_of.items() for unit in units]


def stored_settings(settings: DrawSettings, items: Sequence[Item]) -> dict[str, Any]:
    """What is stored about a draw in addition to its items."""
    return {
        "asked": settings.count,
        "drawn": sum(item.position is not None for item in items),
        "texts": len({item.text_id for item in items}),
        "units": len(items),
        "floor": settings.floor,
        "scores": settings.scores,
        "filters": dict(settings.filters),
    }


def matching_units(file: RunFile, filters: Mapping[str, Sequence[str]], *, finished: bool = True) -> list[str]:
    """The units that have one of the given values of every given facet, in the plan's order."""
    if unknown := [name for name in filters if not name.startswith("f.")]:
        raise ConfigError(f"units are chosen by facets (f.phase=2), not by '{unknown[0]}'")
    _, rows = file.rows("SELECT id, facets FROM units WHERE status = 'done' OR NOT ? ORDER BY position", (finished,))
    return [
        unit
        for unit, text in rows
        if not filters
        or all(parse_facets(text).get(name.removeprefix("f.")) in values for name, values in filters.items())
    ]


def asked_item(file: RunFile, unit: str, settings: DrawSettings) -> LabelItem:
    """What raters of a draw see of a unit, and what they are asked."""
    item = label_item(file, unit)
    return replace(item, metrics=()) if item.is_pair and not settings.scores else item


def why_fewer(settings: Mapping[str, Any]) -> str:
    """Why a draw has fewer items than were asked for; "" if it does not."""
    asked, drawn, units = (settings.get(name) for name in ("asked", "drawn", "units"))
    if not (isinstance(asked, int) and isinstance(drawn, int) and isinstance(units, int)) or drawn >= asked:
        return ""
    if units == drawn:
        return f"{asked} were asked for, but only {plural(drawn, 'finished unit')} can be labelled"
    return (
        f"{asked} were asked for, but the {plural(units, 'unit')} show only {plural(drawn, 'different text')}: "
        "units that differ only in their label, judge or repetition are one item"
    )


def text_id(item: LabelItem) -> str:
    """The digest of what a rater sees of a unit."""
    content = [item.task, [text.text for text in item.texts]]
    return hashlib.sha256(json.dumps(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def probabilities(spread: Sequence[float], count: int, floor: float) -> list[float]:
    """The probability of each text; they sum to `count`, and none is below `floor` * `count` / the number of texts.

    Args:
        spread: The judges' disagreement on each text, 0 or more.
        count: How many texts are drawn.
        floor: The share of the probability that is the same for all.
    """
    size, total = len(spread), math.fsum(spread)
    if count >= size:
        return [1.0] * size
    if total <= 0:
        return [count / size] * size
    share = [floor / size + (1 - floor) * value / total for value in spread]
    certain: set[int] = set()
    while True:  # a text above 1 is certain, and the others share the rest, which only raises them
        rest = math.fsum(value for n, value in enumerate(share) if n not in certain)
        scale = (count - len(certain)) / rest
        above = {n for n, value in enumerate(share) if n not in certain and value * scale >= 1}
        if not above:
            return [1.0 if n in certain else value * scale for n, value in enumerate(share)]
        certain |= above


def systematic(chances: Sequence[float], start: float) -> list[int]:
    """A sample with exactly these probabilities: every point start, start + 1, … on their cumulative sum draws one.

    With the texts in random order beforehand (Hartley and Rao 1962), equal probabilities give a simple random sample.

    Args:
        chances: The probability of each text; their sum is a whole number.
        start: A random number from 0 to 1.
    """
    drawn: list[int] = []
    upper = 0.0
    size = round(math.fsum(chances))
    for n, chance in enumerate(chances):
        upper += chance
        if len(drawn) < size and upper > start + len(drawn):
            drawn.append(n)
    # Rounding may leave the last point just above the sum.
    return drawn if len(drawn) == size else [*drawn, max(set(range(len(chances))) - set(drawn))]


def disagreement(file: RunFile, units_of: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How much the final verdicts on a text differ, over judges and over the units that show it.

    For scores it is the standard deviation, in units of the metric's own over all texts; for choices, the chance that
    two judges choose differently. It is averaged over a text's metrics.
    """
    scores: dict[tuple[str, str, str], list[float]] = {}
    choices: dict[tuple[str, str], list[str]] = {}
    for text, units in units_of.items():
        for unit in units:
            for metric, subject, value, word in final_verdicts(file, unit):
                if metric in CHOICES and word is not None:
                    choices.setdefault((text, metric), []).append(word)
                elif metric not in CHOICES and value is not None:
                    scores.setdefault((text, metric, subject), []).append(value)
    by_metric: dict[str, list[float]] = {}
    for (_, metric, _), values in scores.items():
        by_metric.setdefault(metric, []).extend(values)
    scale = {metric: statistics.pstdev(values) for metric, values in by_metric.items()}
    parts: dict[str, list[float]] = {text: [] for text in units_of}
    for (text, metric, _), values in scores.items():
        if scale[metric] > 0:
            parts[text].append(statistics.pstdev(values) / scale[metric])
    for (text, _), words in choices.items():
        parts[text].append(1 - sum((words.count(word) / len(words)) ** 2 for word in set(words)))
    return {text: statistics.fmean(values) if values else 0.0 for text, values in parts.items()}


def final_verdicts(
    file: RunFile, unit: str, *, round: int | None = None
) -> list[tuple[str, str, float | None, str | None]]:
    """A unit's verdicts as (metric, subject, value, text): of each metric's last round, and the chair's where it spoke.

    Args:
        file: The run.
        unit: The unit.
        round: This round of the scores instead of the last.
    """
    _, rows = file.rows(
        "SELECT metric, subject, role, round, value, text FROM verdicts WHERE unit = ? ORDER BY nth", (unit,)
    )
    by_metric: dict[str, list[Any]] = {}
    for row in rows:
        by_metric.setdefault(row[0], []).append(row)
    final: list[tuple[str, str, float | None, str | None]] = []
    for metric, all_rounds in by_metric.items():
        wanted = max(row[3] for row in all_rounds) if round is None or metric in CHOICES else round
        said = [row for row in all_rounds if row[3] == wanted]
        said = [row for row in said if row[2] == "chair"] or said
        final += [(metric, subject, value, text) for _, subject, _, _, value, text in said]
    return final


def majority(votes: Iterable[str | None]) -> str | None:
    """The most frequent vote; "tie" if two are equally frequent; None without a readable vote."""
    readable = [vote for vote in votes if vote is not None]
    if not readable:
        return None
    top = Counter(readable).most_common(2)
    return "tie" if len(top) == 2 and top[0][1] == top[1][1] else top[0][0]


def find_draw(notes: NotesFile, draw_id: int) -> dict[str, Any]:
    """A stored draw by its id."""
    for draw in notes.draws():
        if draw["id"] == draw_id:
            return draw
    raise ConfigError(f"there is no draw {draw_id}")


def rater_order(settings: DrawSettings, items: Iterable[Item], rater: str) -> list[str]:
    """The units of a draw in the order in which a rater sees them; a sorted queue keeps its own."""
    drawn = sorted((item.position, item.unit) for item in items if item.position is not None)
    order = [unit for _, unit in drawn]
    if settings.kind == "random":
        random.Random(seed_from(settings.seed, rater)).shuffle(order)
    return order
