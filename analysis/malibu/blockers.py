"""What leaves a question without an answer, and is given in place of the verdicts that it concerns.

Too few bases or scores that are all the same leave nothing to say about scores; a judge that nearly always prefers what
is shown first, nothing about preferences. A judge that was not shown to tell good answers from flawed ones can still be
shown to follow labels, but its scores may not measure quality, so "alike" does not show that it is fair. Silent ballots
that are unread more often for one identity leave the contrasts with it without an answer (`unread`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import Blockers
from parley.analysis.malibu.pairs import first_place
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.planned import ALL_MODELS, ODDS, SCORE, WINS
from parley.analysis.malibu.score_table import NEEDED
from parley.analysis.malibu.yardstick import quality
from parley.analysis.stats.results import ALIKE, NOT_MEASURED, ON_AVERAGE, UNDECIDED, Line
from parley.base.text import plural

NEARLY_ALL, FIRST_PLACE = 0.95, 0.9
NOT_QUALITY = "within the margin, but not called alike: the judges were not shown to tell good from flawed answers"
ENOUGH = 10
"""Fewer verdicts than this may well be alike by chance."""


def blockers(
    data: PanelData, planned: Sequence[Line], places: Sequence[Line], yardstick: Sequence[Line]
) -> dict[str, Blockers]:
    """What blocks each model's questions.

    Args:
        data: The verdicts.
        planned: The planned lines.
        places: The lines of `position_lines`.
        yardstick: The lines on whether judges tell good answers from flawed ones.
    """
    found, unit = {}, data.cluster_noun
    for model in data.models:
        own, first, graded = (
            [line for line in lines if line.about["model"] == model] for lines in (planned, places, yardstick)
        )
        clusters = {
            measure: max((line.clusters or 0 for line in own if line.measure == measure), default=0)
            for measure in (SCORE, WINS)
        }
        found[model] = Blockers(
            quality=quality(graded),
            scores=_few(clusters[SCORE], unit, "scores") or _constant(data.scores[data.scores["model"] == model]),
            preferences=_few(clusters[WINS], unit, "preferences") or _place(first_place(first)) or _ties(data, model),
        )
    return found


def with_blockers(lines: Iterable[Line], found: Mapping[str, Blockers]) -> list[Line]:
    """The lines with only those verdicts that nothing blocks.

    Args:
        lines: The planned lines.
        found: What blocks, by model.
    """
    return [_unblocked(line, found[line.about["model"]]) for line in lines]


def _unblocked(line: Line, blocked: Blockers) -> Line:
    # Log-odds are averaged over both orders, and are no ties: neither the place nor ties leave them without an answer.
    blocker = {SCORE: blocked.scores, WINS: blocked.preferences, ODDS: ""}[line.measure]
    if blocker and line.verdict != NOT_MEASURED:
        return replace(line, verdict=NOT_MEASURED, note=blocker)
    if blocked.quality and line.verdict in (ALIKE, ON_AVERAGE):
        return replace(line, verdict=UNDECIDED, note=NOT_QUALITY)
    return line


def without_unread(lines: Iterable[Line], unequal: Sequence[Line]) -> list[Line]:
    """Lines without intervals, p-values and verdicts where ballots are unread unequally.

    Args:
        lines: Lines about contrasts, or about whole categories: those have none if one of its contrasts has none.
        unequal: The contrasts without a verdict; their notes say why.
    """
    return [
        replace(line, verdict=NOT_MEASURED, note=why, also=_described(line.also), **UNKNOWN)
        if (why := _reason(line.about, unequal))
        else line
        for line in lines
    ]


UNKNOWN: dict[str, Any] = {**dict.fromkeys(("low", "high", "p", "p_adjusted"), math.nan), "simultaneous": None}


def _inferred(name: str) -> bool:
    """Whether a number is part of an interval or a test."""
    return name in ("p", "t_p") or name.startswith(("p_", "t_p_")) or name.endswith(("low", "high", "_p"))


def _described(also: Mapping[str, float]) -> dict[str, float]:
    return {name: math.nan if _inferred(name) else value for name, value in also.items()}


def _reason(about: Mapping[str, Any], unequal: Sequence[Line]) -> str:
    compared = [name for name in ("first", "second") if name in about] or ["category"]
    for line in unequal:
        same = all(about[name] == line.about[name] for name in compared)
        if (
            same
            and about.get("phase", 1) == line.about["phase"]
            and about["model"] in (line.about["model"], ALL_MODELS)
        ):
            return line.note
    return ""


def _few(clusters: int, unit: str, what: str) -> str:
    if not clusters or clusters >= NEEDED:
        return ""
    return (
        f"No verdict on {what}: {plural(clusters, unit)} cannot show a difference between labels, whatever its size; "
        f"a test needs at least {NEEDED}."
    )


def _constant(scores: pd.DataFrame) -> str:
    """A panel that gives the same score on a metric to nearly everything."""
    known = scores[scores["value"].notna()]
    if known["unit"].nunique() < ENOUGH:
        return ""
    counts = known.groupby("metric", observed=True)["value"].agg(lambda values: values.round(6).value_counts().iloc[0])
    share = counts.sum() / len(known)
    if share < NEARLY_ALL:
        return ""
    return (
        f"No verdict on scores: {share:.0%} of them are the same, and such scores are equal for "
        "all labels whether or not the judges are fair."
    )


def _place(line: Line | None) -> str:
    for rate, place in ((line.estimate, "first"), (1 - line.estimate, "second")) if line else ():
        if line and line.n >= ENOUGH and rate > FIRST_PLACE:
            return (
                f"No verdict on preferences: the candidate shown {place} won {rate:.1%} of "
                f"{plural(line.n, 'decided comparison')}, whatever its label."
            )
    return ""


def _ties(data: PanelData, model: str) -> str:
    units = data.preferences[(data.preferences["model"] == model) & data.preferences["choice"].notna()]
    share = float((units["choice"] == "tie").mean()) if len(units) >= ENOUGH else 0.0
    return "" if share < NEARLY_ALL else f"No verdict on preferences: {share:.0%} of comparisons were called a tie."
