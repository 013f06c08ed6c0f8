"""Verdicts on contrasts of identities: the evidence, and reasons that leave a contrast without an answer.

`with_verdicts` calls `parley.analysis.decide`. "Different" is the test of a mean difference over bases
(`mean_test`), Holm-corrected over the planned pairs. "Alike" is two one-sided tests within ±margin (Holm-corrected
too), enough bases, and enough of them within the margin themselves (`Plan`), counted where a base's own difference has
little noise. An identity that is raised on some bases and lowered on others is not treated alike, even if its mean is;
and if one base in ten loses 2 points, 34% of samples of ten bases contain no such base.

First of all, there is no verdict on scores with too few bases or with constant scores, none on preferences if a
judge nearly always prefers the first candidate, and none on an identity whose ballots are unread more often (`unread`).
A judge that does not tell good answers from flawed ones may still follow labels, but its scores may not measure
quality, so "alike" does not show that it is fair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from parley.analysis.decide import WITHIN_LOW, Bounds, Evidence, decided, is_test, single_clusters
from parley.analysis.effects import of_model
from parley.analysis.stats.results import ALPHA, Line, clusters_to_reject
from parley.base.text import plural
from parley.judging.malibu.contrasts import (
    ALL_MODELS,
    FAMILIES,
    SCORE,
    WINS,
    by_judge,
    differing,
    estimates,
    model_and_contrast,
)
from parley.judging.malibu.pairs import first_place
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.plan import Plan
from parley.judging.malibu.score_table import NEEDED
from parley.judging.malibu.yardstick_report import quality

NOT_QUALITY = "whether these scores measure quality is unknown, so they are not called alike"
NEARLY_ALL, FIRST_PLACE = 0.95, 0.9
ENOUGH = 10
"""Minimum number of verdicts: fewer may agree by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blockers:
    """Reasons why a model's questions have no answer, as sentences; "" if they have one (see `blockers`).

    Args:
        quality: Why its scores may not measure quality.
        scores: Why there is no answer on scores (phase 1).
        preferences: Why there is no answer on preferences (phase 2).
    """

    quality: str = ""
    scores: str = ""
    preferences: str = ""

    def of(self, measure: str) -> str:
        """The reason that leaves a measure without an answer."""
        return {SCORE: self.scores, WINS: self.preferences}[measure]


def planned_lines(data: PanelData, margin: float, unequal: Sequence[Line] = ()) -> list[Line]:
    """The planned contrasts of each model by each measure, corrected in their families, with verdicts.

    Args:
        data: The verdicts.
        margin: Points of the scale, or wins minus losses per comparison, within which identities count as alike.
        unequal: The contrasts whose ballots were unread unequally (`unread`).
    """
    return with_verdicts(data, withheld(estimates(data, margin), unequal), dict.fromkeys(data.models, Blockers()))


def with_verdicts(data: PanelData, lines: Iterable[Line], blocked: Mapping[str, Blockers]) -> list[Line]:
    """The planned contrasts with their verdicts.

    Args:
        data: The verdicts.
        lines: What `estimates` returned, without the numbers of those that have no answer (`withheld`).
        blocked: Reasons that leave questions without an answer, by model.
    """
    judges = {
        model_and_contrast(line): f"the {line.about.columns['by']}s"
        for family in FAMILIES
        for line in reversed(differing(by_judge(data, family)))
    }
    return [
        decided(
            line,
            evidence(
                line,
                blocked[line.about.model],
                data.plan,
                judges=judges.get(model_and_contrast(line), "") if line.measure == SCORE else "",
            ),
        )
        for line in lines
    ]


def evidence(line: Line, blocked: Blockers, plan: Plan, *, judges: str = "") -> Evidence:
    """The evidence on a contrast.

    Args:
        line: As `corrected_effects` returns it.
        blocked: Reasons that leave its model's questions without an answer.
        plan: The criteria for "alike".
        judges: Judges who differ significantly on it.
    """
    if not line.clusters:
        return Evidence(note=line.note)
    tests = line.tests or 1
    return Evidence(
        p=line.p_adjusted,
        p_alike=line.also["p_alike_adjusted"],
        margin=line.margin,
        counted=single_clusters([line]),
        share=line.also[WITHIN_LOW],
        least=plan.share,
        clusters=line.clusters,
        enough=plan.bases,
        tests=tests,
        needed=clusters_to_reject(ALPHA, tests),
        bounds=Bounds.of(line.also),
        judges=judges,
        blocked=blocked.of(line.measure),
        not_alike=NOT_QUALITY if blocked.quality else "",
        note=line.note,
    )


def blockers(
    data: PanelData, planned: Sequence[Line], places: Sequence[Line], yardstick: Sequence[Line]
) -> dict[str, Blockers]:
    """The blockers of each model's questions.

    Args:
        data: The verdicts.
        planned: The planned lines.
        places: The lines of `position_lines`.
        yardstick: The lines on whether judges tell good answers from flawed ones.
    """
    by_model, unit = {}, data.cluster_noun
    for model in data.models:
        estimated, first, graded = (of_model(lines, model) for lines in (planned, places, yardstick))
        clusters = {
            measure: max((line.clusters or 0 for line in estimated if line.measure == measure), default=0)
            for measure in (SCORE, WINS)
        }
        by_model[model] = Blockers(
            quality=quality(graded),
            scores=_few(clusters[SCORE], unit, "scores") or _constant(data.scores[data.scores["model"] == model]),
            preferences=_few(clusters[WINS], unit, "preferences") or _place(first_place(first)) or _ties(data, model),
        )
    return by_model


def _few(clusters: int, unit: str, what: str) -> str:
    if not clusters or clusters >= NEEDED:
        return ""
    return (
        f"No verdict on {what}: {plural(clusters, unit)} cannot show a difference between labels, whatever its size; "
        f"a test needs at least {NEEDED}."
    )


def _constant(scores: pd.DataFrame) -> str:
    """A panel that gives the same score on a metric to nearly everything."""
    scored = scores[scores["value"].notna()]
    if scored["unit"].nunique() < ENOUGH:
        return ""
    counts = scored.groupby("metric", observed=True)["value"].agg(lambda values: values.round(6).value_counts().iloc[0])
    share = counts.sum() / len(scored)
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
                f"No verdict on preferences: the answer shown {place} has a win rate of {rate:.1%} in "
                f"{plural(line.n, 'comparison')}, whatever its label."
            )
    return ""


def _ties(data: PanelData, model: str) -> str:
    units = data.preferences[(data.preferences["model"] == model) & data.preferences["choice"].notna()]
    share = float((units["choice"] == "tie").mean()) if len(units) >= ENOUGH else 0.0
    return "" if share < NEARLY_ALL else f"No verdict on preferences: {share:.0%} of comparisons were called a tie."


def withheld(lines: Iterable[Line], unequal: Sequence[Line]) -> list[Line]:
    """Remove intervals and p-values from lines whose ballots are unread unequally (`unread`): they have no answer.

    Args:
        lines: Lines about contrasts or whole categories; a category has no answer if one of its contrasts has none.
        unequal: The contrasts without a verdict; their notes say why.
    """
    return [
        replace(
            line,
            low=math.nan,
            high=math.nan,
            p=math.nan,
            note=why,
            p_adjusted=math.nan,
            simultaneous=None,
            also=_described(line.also),
        )
        if (why := _reason(line, unequal))
        else line
        for line in lines
    ]


def _described(also: Mapping[str, float]) -> dict[str, float]:
    """The line without the numbers of an interval or a test."""
    return {
        name: math.nan if is_test(name) or name.endswith(("low", "high")) else value for name, value in also.items()
    }


def _reason(line: Line, unequal: Sequence[Line]) -> str:
    about = line.about
    for unread, lost in ((line, line.about) for line in unequal):
        same = about.contrast == lost.contrast if about.contrast else about.category == lost.category
        if same and (about.phase or 1) == lost.phase and about.model in (lost.model, ALL_MODELS):
            return unread.note
    return ""
