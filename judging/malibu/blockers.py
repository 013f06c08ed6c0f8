"""What leaves a question without an answer: it is known before any verdict, and given in its place.

Too few bases or scores that are all the same leave nothing to say about scores; a judge that nearly always prefers what
is shown first, nothing about preferences. A judge that was not shown to tell good answers from flawed ones can still be
shown to follow labels, but its scores may not measure quality, so "alike" does not show that it is fair.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from parley.analysis.stats.results import Line
from parley.base.text import plural
from parley.judging.malibu.conclusions import SCORE, WINS, Blockers
from parley.judging.malibu.pairs import first_place
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.score_table import NEEDED
from parley.judging.malibu.yardstick_report import quality

NEARLY_ALL, FIRST_PLACE = 0.95, 0.9
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
