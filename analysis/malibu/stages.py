"""What do reasons add to a difference between labels, and what does hearing others add?

Talking units begin with silent ballots of the same judges (round 0). Then each judge gives reasons and a score before
it has heard anybody (round 1), and then they talk (round 2 and later). So within the same judge and unit, round 1 minus
round 0 is what reasons alone add to a gap, and the last round minus round 1 is what hearing others adds.

Units whose judges heard ballots on another label, as a control, are left out of what hearing others adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from parley.analysis.malibu.by_judge import Contrast
from parley.analysis.malibu.contrasts import tested, with_holm
from parley.analysis.malibu.panel import BLIND, NOT_SCORES, PanelData, ScenarioGaps, ScoreTable
from parley.analysis.malibu.primary import primary_contrasts
from parley.analysis.malibu.rounds import heard_own
from parley.analysis.reporting.report import Section, Table

REASONS, HEARING = "reasons alone", "hearing others"
STAGES = [
    *("model", "category", "first", "second", "step", "before", "after", "difference", "low", "high", "p"),
    *("p_adjusted", "clusters", "note"),
]


def stages(data: PanelData) -> pd.DataFrame:
    """Every primary contrast of the talking units, before and after each step, and what the step added.

    Steps are taken within judge, unit and metric. Sign flips over clusters; Holm over the contrasts and steps of a
    model.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model, contrast, step, (before, after, added) in steps(data):
        ends = {"before": tested(before)["difference"], "after": tested(after)["difference"]}
        facets = {"model": model, "category": contrast.category, **contrast.sides, "step": step}
        rows.append(facets | ends | tested(added))
    return with_holm(pd.DataFrame(rows, columns=STAGES), ["model"])


def steps(data: PanelData) -> Iterator[tuple[str, Contrast, str, Sequence[ScenarioGaps]]]:
    """By model, primary contrast and step: the gaps before the step, after it, and what it added.

    Args:
        data: The verdicts.
    """
    for model, judged in _by_round(data):
        for contrast in primary_contrasts(data, model):
            for step, (before, after) in {REASONS: ("silent", "blind"), HEARING: ("blind", "last")}.items():
                known = judged[judged[[before, after]].notna().all(axis=1)]
                known = known[heard_own(known)] if step == HEARING else known
                if known.empty:
                    continue
                values = known[before], known[after], known[after] - known[before]
                gaps = [found for value in values if (found := _gaps(known, value, contrast, step)) is not None]
                if len(gaps) == len(values):
                    yield model, contrast, step, gaps


def _by_round(data: PanelData) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each model's scores of talking units, one row per unit, judge and metric: silent, blind, and last."""
    talk = data.talk[(data.talk["phase"] == 1) & ~data.talk["metric"].isin(NOT_SCORES)]
    for model in data.models:
        own = talk[talk["model"] == model].astype({"unit": str, "judge": str, "metric": str})
        if own.empty:
            continue
        keys = ["unit", "judge", "metric"]
        last = own["round"].max()
        rounds = {"silent": 0, "blind": BLIND} | ({"last": last} if last > BLIND else {})
        values = {name: own[own["round"] == round].set_index(keys)["value"] for name, round in rounds.items()}
        judged = own.drop_duplicates(keys).set_index(keys).assign(last=math.nan).assign(**values)
        yield model, judged.reset_index()


def _gaps(scores: pd.DataFrame, values: pd.Series, contrast: Contrast, step: str) -> ScenarioGaps | None:
    table = ScoreTable.of(scores.assign(value=values))
    if not {*contrast.first, *contrast.second} <= {*table.identities}:
        return None
    # Controls are left out label by label: few texts have all four labels, but most have one of each side.
    return table.contrast(contrast.first, contrast.second, complete=step != HEARING)


def stages_section(data: PanelData) -> Section:
    """What reasons and hearing others add, as a table; nothing in a run without talking units."""
    if not len(data.talk):
        return Section()
    table = Table(
        name="stages",
        title="What reasons alone, and what hearing others, add to each primary contrast",
        frame=stages(data),
        note="reasons alone: round 1 minus the silent ballot; hearing others: last round minus round 1; within judge "
        f"and unit. Sign flips over {data.cluster_noun}s; Holm over contrasts and steps.",
    )
    return Section(tables=(table,))
