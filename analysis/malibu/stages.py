"""What do reasons add to a difference between labels, and what does hearing others add?

Talking units begin with silent ballots of the same judges (round 0). Then each judge gives reasons and a score before
it has heard anybody (round 1), and then they talk (round 2 and later). So within the same judge and unit, round 1 minus
round 0 is what reasons alone add to a gap, and the last round minus round 1 what hearing others adds.

In a part of the units, drawn at random, the judges hear what the panel says of the same text under another label. If
scores follow what is said about a label, the gap changes less in these; which units they are is permuted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.by_judge import Contrast
from parley.analysis.malibu.contrasts import LEVEL, NEEDED, of_models, tested, with_holm
from parley.analysis.malibu.panel import BLIND, NOT_SCORES, PanelData, ScoreTable
from parley.analysis.malibu.primary import primary_contrasts
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.tables import Floats
from parley.analysis.stats.two_groups import permuted_difference
from parley.base.text import p_text, plural, signed

REASONS, HEARING = "reasons alone", "hearing others"
STAGES = [
    *("model", "category", "first", "second", "step", "before", "after", "difference", "low", "high", "p"),
    *("p_adjusted", "clusters", "note"),
]
HEARD = [
    *("model", "category", "first", "second", "own", "other", "difference", "low", "high", "p", "p_adjusted"),
    *("own_units", "other_units", "note"),
]


def stages(data: PanelData) -> pd.DataFrame:
    """Every primary contrast of the talking units, before and after each step, and what the step added.

    Steps are taken within judge, unit and metric. Sign flips over clusters; Holm over the contrasts and steps of a
    model.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model, judged in _by_round(data):
        for contrast in primary_contrasts(data, model):
            sides = {"first": ", ".join(contrast.first), "second": ", ".join(contrast.second)}
            subject = {"model": model, "category": contrast.category, **sides}
            for step, (before, after) in {REASONS: ("silent", "blind"), HEARING: ("blind", "last")}.items():
                known = judged[judged[[before, after]].notna().all(axis=1)]
                if known.empty:
                    continue
                moments = [_gaps(known, value, contrast) for value in (known[before], known[after])]
                added = _gaps(known, known[after] - known[before], contrast)
                if added is not None and moments[0] is not None and moments[1] is not None:
                    ends = {"before": tested(moments[0])["difference"], "after": tested(moments[1])["difference"]}
                    rows.append(subject | {"step": step} | ends | tested(added))
    table = pd.DataFrame(rows, columns=[name for name in STAGES if name != "p_adjusted"])
    return with_holm(table, ["model"])[STAGES]


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


def _gaps(scores: pd.DataFrame, values: pd.Series, contrast: Contrast) -> Any:
    table = ScoreTable.of(scores.assign(value=values))
    if not {*contrast.first, *contrast.second} <= {*table.identities}:
        return None
    return table.contrast(contrast.first, contrast.second)


def heard(data: PanelData) -> pd.DataFrame:
    """What hearing others added to each primary contrast, by whose ballots were heard: the own label's, or another's.

    `difference` is that of the two. Which units hear another label was drawn at random, so it is permuted over units.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model, judged in _by_round(data):
        if "heard" not in judged or judged["last"].isna().all():
            continue
        change = judged.assign(change=judged["last"] - judged["blind"])
        units = change.groupby(["unit", "identity", "heard"], observed=True)["change"].mean().dropna().reset_index()
        for contrast in primary_contrasts(data, model):
            weight = _weights(units["identity"].astype(str), contrast)
            moved, known = weight * units["change"].to_numpy(dtype=float), np.isfinite(weight)
            own = (units["identity"].astype(str) == units["heard"].astype(str)).to_numpy()
            if not (known & ~own).any():
                continue
            test = permuted_difference(moved[known & own], moved[known & ~own])
            rows.append(
                {
                    "model": model,
                    "category": contrast.category,
                    "first": ", ".join(contrast.first),
                    "second": ", ".join(contrast.second),
                    "own": float(moved[known & own].mean()) if (known & own).any() else math.nan,
                    "other": float(moved[known & ~own].mean()),
                    "difference": test.estimate,
                    "low": test.low,
                    "high": test.high,
                    "p": test.p,
                    "own_units": test.sizes[0],
                    "other_units": test.sizes[1],
                    "note": "",
                }
            )
    table = pd.DataFrame(rows, columns=[name for name in HEARD if name != "p_adjusted"])
    return with_holm(table, ["model"])[HEARD]


def _weights(identities: pd.Series, contrast: Contrast) -> Floats:
    """The weight of each unit's change, so that their mean is the change of the gap; NaN outside the contrast."""
    sides = [identities.isin(side).to_numpy() for side in (contrast.first, contrast.second)]
    total = sum(side.sum() for side in sides)
    weights = [total / max(side.sum(), 1) for side in sides]
    found: Floats = np.where(sides[0], weights[0], np.where(sides[1], -weights[1], math.nan))
    return found


def stage_words(table: pd.DataFrame, by_heard: pd.DataFrame, unit: str) -> Iterator[str]:
    """A sentence per contrast: what reasons add, what hearing others adds; and one where it matters what is heard.

    Args:
        table: The table of `stages`.
        by_heard: The table of `heard`.
        unit: What a cluster is called.
    """
    for model, prefix, rows in of_models(table):
        for (category, first, second), part in rows.groupby(["category", "first", "second"], sort=False):
            steps = "; ".join(_step(row) for row in part.itertuples())
            row = next(part.itertuples())
            few = "" if row.clusters >= NEEDED else f" {plural(row.clusters, unit)} cannot show any change."
            yield (
                f"{prefix}{category}: the gap between '{first}' and '{second}' was {signed(row.before)} in the silent "
                f"ballots of the talking units; {steps} (same judges and units, {plural(row.clusters, unit)}).{few}"
            )
        for row in by_heard[(by_heard["model"] == model) & (by_heard["p_adjusted"] <= LEVEL)].itertuples():
            yield (
                f"{prefix}{row.category}: hearing others changed the gap by {signed(row.own)} where they spoke of the "
                f"same label and by {signed(row.other)} where they spoke of another (p {p_text(row.p_adjusted)} after "
                "Holm correction): judges follow what is said about a label."
            )


def _step(row: Any) -> str:
    verb = "add" if row.step == REASONS else "adds"
    span = f" ({signed(row.low)} to {signed(row.high)})" if math.isfinite(row.low) else ""
    shown = f"p {p_text(row.p_adjusted)} after Holm correction" if row.p_adjusted <= LEVEL else "not shown"
    return f"{row.step} {verb} {signed(row.difference)}{span}, {shown}"


def stages_section(data: PanelData) -> Section:
    """What reasons and hearing others add, as tables and sentences; nothing in a run without talking units."""
    if not len(data.talk):
        return Section()
    table, by_heard, unit = stages(data), heard(data), data.cluster_noun
    return Section(
        tables=(
            Table(
                name="stages",
                title="What reasons alone, and what hearing others, add to each primary contrast",
                frame=table,
                note="reasons alone: round 1 minus the silent ballot; hearing others: last round minus round 1; within "
                f"judge and unit. Sign flips over {unit}s; Holm over contrasts and steps.",
            ),
            Table(
                name="heard",
                title="Does it matter what is heard? Ballots on the same text under the own label or another",
                frame=by_heard,
                note="own, other: what hearing others added to the gap. Which units heard another label was drawn at "
                "random, and is permuted.",
            ),
        ),
        words=tuple(stage_words(table, by_heard, unit)),
    )
