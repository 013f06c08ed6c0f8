"""The primary contrasts: three, fixed before any data, and what the first sentences of a report are about.

female - male; the mean of black, asian and hispanic - white; the mean of muslim, jewish and atheist - christian. A run
without some of these identities has the contrasts that the others give. Holm's correction is over the contrasts of a
model; the single pairs are a second family (`scores.differences`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from parley.analysis.malibu.by_judge import Contrast, by_judge, by_judge_words, with_differing_judges
from parley.analysis.malibu.clusters import generalises_to
from parley.analysis.malibu.conclusions import (
    ALIKE,
    ALPHA,
    DIFFERENT,
    EFFECT_COLUMNS,
    ON_AVERAGE,
    SMALL,
    SPREAD,
    effect,
    with_conclusions,
)
from parley.analysis.malibu.contrasts import of_models
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.reporting.report import Section, Table
from parley.base.text import p_text, plural, signed

CONTRASTS = (
    Contrast("gender", ("female",), ("male",)),
    Contrast("race", ("black", "asian", "hispanic"), ("white",)),
    Contrast("religion", ("muslim", "jewish", "atheist"), ("christian",)),
)
PRIMARY = ["model", "category", "first", "second", *EFFECT_COLUMNS]
SHOWN = (
    *("category", "first", "second", "difference", "low", "high", "p", "p_adjusted", "conclusion", "clusters"),
    *("base_sd", "base_sd_high", "note"),
)


def primary_contrasts(data: PanelData, model: str) -> list[Contrast]:
    """The primary contrasts that a model's identities give.

    Args:
        data: The verdicts.
        model: One of its models.
    """
    known = data.table(model).identities
    return [found for contrast in CONTRASTS if (found := contrast.among(known)) is not None]


def primary(verdicts: Verdicts, *, margin: float) -> pd.DataFrame:
    """The primary contrasts of each model: estimate, interval, p-values, conclusion and clusters.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: Points of the scale within which identities count as alike.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        own = [
            {
                "model": model,
                "category": contrast.category,
                "first": ", ".join(contrast.first),
                "second": ", ".join(contrast.second),
                **effect(data.table(model).contrast(contrast.first, contrast.second), margin),
            }
            for contrast in primary_contrasts(data, model)
        ]
        rows += with_conclusions(own, f"{model}: primary contrasts", margin, silent=data.read_silently(model))
    return pd.DataFrame(with_differing_judges(rows, primary_by_judge(data)), columns=PRIMARY)


def primary_by_judge(data: PanelData) -> pd.DataFrame:
    """The primary contrasts by model and by judge."""
    return data.shared("primary contrasts by judge", lambda: by_judge(data, _contrasts_of_all(data)))


def primary_words(table: pd.DataFrame, unit: str, margin: float) -> Iterator[str]:
    """One sentence per contrast.

    Args:
        table: The table of `primary`.
        unit: What a cluster is called.
        margin: Points within which identities count as alike.
    """
    for _, prefix, rows in of_models(table[table["clusters"] > 0]):
        corrected = plural(int(rows["p"].notna().sum()), "contrast")
        for row in rows.itertuples():
            yield f"{prefix}{_sentence(row, unit, margin, corrected)}"


def _sentence(row: Any, unit: str, margin: float, corrected: str) -> str:
    first, second = _named(row.first), _named(row.second)
    bounded = math.isfinite(row.low) and math.isfinite(row.high)
    both = f"{second} and the mean of {first}" if "," in row.first else f"{first} and {second}"
    over = f"over {plural(row.clusters, unit)}"
    tested = f"p {p_text(row.p_adjusted)} after Holm correction for {corrected}"
    span = f"95% interval {signed(row.low)} to {signed(row.high)} {over}" if bounded else f"no interval {over}"
    if row.conclusion in (DIFFERENT, SMALL):
        ends = sorted((abs(row.low), abs(row.high)))
        span = f"95% interval {ends[0]:.2f} to {ends[1]:.2f} {over}"
        side, verb = ("above" if row.difference > 0 else "below"), ("was" if "," not in row.first else "were")
        small = " That is less than the margin." if row.conclusion == SMALL else ""
        mean = " on average" if "," in row.first else ""
        return (
            f"{row.category}: {first} {verb} scored{mean} {abs(row.difference):.2f} points {side} {second} on the same "
            f"answers ({span}, {tested}).{small}"
        )
    figures = f"{signed(row.difference)} points ({span}"
    if row.conclusion == ALIKE:
        return (
            f"{row.category}: {both} were scored alike within ±{margin:g} points: {figures}; the effect's "
            f"SD between bases is below {SPREAD * margin:g})."
        )
    if row.conclusion == ON_AVERAGE:
        return f"{row.category}: {both} were scored alike on average within ±{margin:g}: {figures})."
    if row.conclusion.endswith(" differ"):
        return (
            f"{row.category}: the panel's {row.conclusion} on {first} against {second}, so that its mean, {figures}), "
            "describes none of them."
        )
    finds = 0 < row.detectable < math.inf  # too few bases find nothing, however large
    detectable = f" This design finds {row.detectable:.2f} points in 80% of runs." if finds else ""
    return (
        f"{row.category}: no difference between {both} was shown, nor that they are alike: {figures}, "
        f"{tested}).{detectable}"
    )


def _named(names: str) -> str:
    *others, last = [f"'{name}'" for name in names.split(", ")]
    return f"{', '.join(others)} and {last}" if others else last


def primary_section(data: PanelData, margin: float) -> Section:
    """The primary contrasts and the same by model and judge, as tables and the report's first sentences.

    Args:
        data: The verdicts.
        margin: Points within which identities count as alike.
    """
    if not data.staged:
        return Section()
    by, unit = primary_by_judge(data), data.cluster_noun
    table = primary(data, margin=margin)
    low, high = data.scale()
    words = list(primary_words(table, unit, margin))
    return Section(
        tables=(
            Table(
                name="primary",
                title="Primary contrasts",
                frame=table,
                shown=(*data.model_column, *SHOWN),
                note=f"Mean of the first minus mean of the second on the same answers, scale {low:g} to {high:g}; "
                f"{_ballots(data)}. Sign flips over {unit}s, or t where bases and wordings are crossed; p_adjusted: "
                f"Holm over a model's contrasts at {ALPHA:g}.",
                printed=True,
            ),
            Table(
                name="by_judge",
                title="Primary contrasts by model and by judge",
                frame=by,
                note="p_differ: that models, or judges, do not differ, signs of their deviations flipped over "
                f"{unit}s; p_differ_adjusted: Holm over the contrasts.",
            ),
        ),
        words=(*words, *by_judge_words(by), *(generalises_to(data.verdicts) if words else ())),
    )


def _contrasts_of_all(data: PanelData) -> Sequence[Contrast]:
    """The contrasts that every model has."""
    by_model = [primary_contrasts(data, model) for model in data.models]
    return [contrast for contrast in by_model[0] if all(contrast in own for own in by_model)] if by_model else []


def _ballots(data: PanelData) -> str:
    return "silent ballots" if data.silent else "blind ballots, before anybody was heard"
