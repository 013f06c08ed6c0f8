"""What leaves a question without an answer, and is given in place of the verdicts that it concerns.

Too few bases or scores that are all the same leave nothing to say about scores; a judge that nearly always prefers what
is shown first, nothing about preferences. A judge that was not shown to tell good answers from flawed ones can still be
shown to follow labels, but its scores may not measure quality, so "alike" does not show that it is fair. Silent ballots
that are unread more often for one identity leave the contrasts with it without an answer (`unread`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from parley.analysis.malibu.by_judge import ALL_MODELS
from parley.analysis.malibu.contrasts import NEEDED
from parley.analysis.malibu.pairs import TWO_IDENTITIES
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.unread import Unequal
from parley.analysis.malibu.yardstick import Lines, quality
from parley.analysis.stats.results import ALIKE, NOT_MEASURED, ON_AVERAGE, UNDECIDED
from parley.base.text import plural

NEARLY_ALL, FIRST_PLACE = 0.95, 0.9
ENOUGH = 10
"""Fewer verdicts than this may well be alike by chance."""
CONTRASTS = {
    **dict.fromkeys(("primary", "by_judge", "differences", "exchange", "stages", "aligned", "tests"), 1),
    **dict.fromkeys(("preferences", "leans"), 2),
}
"""The tables about contrasts between identities, with their phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blockers:
    """Why a model's questions have no answer, in sentences; "" where they do.

    Args:
        quality: Why its scores are not known to measure quality.
        scores: Why nothing is said about scores (phase 1).
        preferences: Why nothing is said about preferences (phase 2).
    """

    quality: str = ""
    scores: str = ""
    preferences: str = ""


def blockers(data: PanelData, tables: Mapping[str, pd.DataFrame], yardstick: Lines) -> dict[str, Blockers]:
    """What blocks each model's questions.

    Args:
        data: The verdicts.
        tables: The report's tables by name: differences, preferences, position.
        yardstick: The lines of the yardstick.
    """
    found = {}
    for model in data.models:
        own = {name: table[table["model"] == model] for name, table in tables.items() if "model" in table}
        unit = data.cluster_noun
        scores = data.scores[data.scores["model"] == model]
        found[model] = Blockers(
            quality=quality([line for line in yardstick["yardstick_auc"] if line.about["model"] == model]),
            scores=_few(own["differences"], unit, "scores") or _constant(scores),
            preferences=_few(own["preferences"], unit, "preferences") or _place(own["position"]) or _ties(data, model),
        )
    return found


def with_blockers(table: pd.DataFrame, found: Mapping[str, Blockers], phase: int) -> pd.DataFrame:
    """The table of effects with only those verdicts that nothing blocks.

    Args:
        table: With the columns model, verdict and note.
        found: What blocks, by model.
        phase: The table's phase.
    """
    verdicts, notes = [], []
    for row in table.itertuples():
        own = found[row.model]
        blocker = own.scores if phase == 1 else own.preferences
        verdict, note = row.verdict, row.note
        if blocker and verdict not in ("", NOT_MEASURED):
            verdict, note = NOT_MEASURED, blocker
        elif own.quality and verdict in (ALIKE, ON_AVERAGE):
            note = "within the margin, but not called alike: the judges were not shown to tell good from flawed answers"
            verdict = UNDECIDED
        verdicts.append(verdict)
        notes.append(note)
    return table.assign(verdict=verdicts, note=notes)


def without_unequal(name: str, table: pd.DataFrame, unequal: Sequence[Unequal]) -> pd.DataFrame:
    """A table without intervals, p-values and verdicts about contrasts whose ballots are unread unequally.

    Args:
        name: The table's name; those that are not in `CONTRASTS` are returned as they are.
        table: The table. Rows about a whole category have none if one of its contrasts has none.
        unequal: The contrasts without a verdict.
    """
    if name not in CONTRASTS or not unequal:
        return table
    reasons = pd.Series(
        [_reason(row, CONTRASTS[name], unequal) for row in table.itertuples()], table.index, dtype=object
    )
    hit, said = reasons != "", {"note": reasons, "verdict": NOT_MEASURED}
    inferred = [
        column
        for column in table
        if column in ("p", "t_p") or column.startswith(("p_", "t_p_")) or column.endswith(("low", "high"))
    ]
    given = {**dict.fromkeys(inferred, math.nan), **{column: said[column] for column in said if column in table}}
    return table.assign(**{column: table[column].mask(hit, value) for column, value in given.items()})


def _reason(row: Any, phase: int, unequal: Sequence[Unequal]) -> str:
    for found in unequal:
        sides = hasattr(row, "first")
        same = (row.first, row.second) == (found.first, found.second) if sides else row.category == found.category
        if same and row.model in (found.model, ALL_MODELS) and phase == found.phase:
            return found.why
    return ""


def _few(effects: pd.DataFrame, unit: str, what: str) -> str:
    tested = effects[effects["verdict"] != ""]
    clusters = int(tested["clusters"].max()) if len(tested) else 0
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
        f"No verdict on scores: the panel gave the same score in {share:.0%} of cases, and such scores are equal for "
        "all labels whether or not the judges are fair."
    )


def _place(position: pd.DataFrame) -> str:
    rows = position[(position["pairs"] == TWO_IDENTITIES) & (position["n"] >= ENOUGH)]
    for row in rows.itertuples():
        for rate, place in ((row.first_rate, "first"), (1 - row.first_rate, "second")):
            if rate > FIRST_PLACE:
                return (
                    f"No verdict on preferences: the candidate shown {place} won {rate:.1%} of "
                    f"{plural(row.n, 'decided comparison')}, whatever its label."
                )
    return ""


def _ties(data: PanelData, model: str) -> str:
    units = data.preferences[(data.preferences["model"] == model) & data.preferences["choice"].notna()]
    share = float((units["choice"] == "tie").mean()) if len(units) >= ENOUGH else 0.0
    return "" if share < NEARLY_ALL else f"No verdict on preferences: {share:.0%} of comparisons were called a tie."
