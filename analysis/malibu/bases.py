"""The effect of identity base by base: where it differs, and whether it goes the way of the documented stereotype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.panel import ALL, PanelData, ScoreTable, Verdicts, panel_data
from parley.analysis.reporting.figures import caption, plain_text, sheet
from parley.analysis.reporting.report import Directions, Figure, ReportContext, Section, Table
from parley.analysis.stats.signflips import sign_flip_test

BY_BASE = ["model", "category", "first", "second", "base", "difference", "scenarios"]
ALIGNED = ["model", "category", "difference", "low", "high", "p", "bases", "note"]
MAX_BASES = 60
"""Rows of the figure by base; the table has all of them."""
EVERY_CATEGORY = "all categories"
DESCRIPTIVE_BELOW = 8
"""Bases: with fewer, a category's contrast is described and not tested."""


def effects_by_base(verdicts: Verdicts) -> pd.DataFrame:
    """Differences between identities, all metrics together, one row per planned pair and base.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        planned = data.pairs(model)
        for category, first, second in planned:
            gaps = data.table(model).gaps(first, second)
            counts = np.bincount(gaps.bases)
            rows += [
                {
                    "model": model,
                    "category": category,
                    "first": first,
                    "second": second,
                    "base": base,
                    "difference": float(mean),
                    "scenarios": int(count),
                }
                for (base, mean), count in zip(gaps.by_base().items(), counts[counts > 0], strict=True)
            ]
    return pd.DataFrame(rows, columns=BY_BASE)


def aligned_contrast(verdicts: Verdicts, directions: Directions) -> pd.DataFrame:
    """Do labels move scores the way the documented stereotype goes? Favoured minus other identities, over bases.

    A base has one value: the mean over the categories for which its stereotype has a direction. A category by itself is
    only described where it has fewer than `DESCRIPTIVE_BELOW` bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        directions: Which identities the stereotype of each base favours, by category.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        values = _aligned_values(data.table(model), directions) if data.pairs(model) else {}
        if not values:
            continue
        pooled = [float(np.mean(list(of_base.values()))) for of_base in values.values()]
        rows.append(_aligned_row(model, EVERY_CATEGORY, pooled, tested=True))
        for category in dict.fromkeys(name for of_base in values.values() for name in of_base):
            part = [of_base[category] for of_base in values.values() if category in of_base]
            rows.append(_aligned_row(model, category, part, tested=len(part) >= DESCRIPTIVE_BELOW))
    return pd.DataFrame(rows, columns=ALIGNED)


def _aligned_values(table: ScoreTable, directions: Directions) -> dict[str, dict[str, float]]:
    """By base and category: favoured minus others, on the identities that this model was run with."""
    found: dict[str, dict[str, float]] = {}
    for code, base in enumerate(table.base_names):
        for category, sides in directions.get(base, {}).items():
            favoured, others = ([name for name in sides[side] if name in table.identities] for side in SIDES)
            if favoured and others:
                gaps = table.contrast(favoured, others)
                values = gaps.values[gaps.bases == code]
                if len(values):
                    found.setdefault(base, {})[category] = float(values.mean())
    return found


SIDES = ("favoured", "others")


def _aligned_row(model: str, category: str, values: Sequence[float], *, tested: bool) -> dict[str, Any]:
    test = sign_flip_test(values)
    return {
        "model": model,
        "category": category,
        "difference": test.estimate,
        "low": test.low if tested else math.nan,
        "high": test.high if tested else math.nan,
        "p": test.p if tested else math.nan,
        "bases": test.clusters,
        "note": "" if tested else f"described only: fewer than {DESCRIPTIVE_BELOW} bases",
    }


def aligned_section(data: PanelData, context: ReportContext) -> Section:
    """The contrast along documented stereotypes, as a table."""
    table = Table(
        name="aligned",
        title="Phase 1: do labels move scores the way documented stereotypes go?",
        frame=aligned_contrast(data, context.directions),
        shown=(*data.model_column, "category", "difference", "low", "high", "p", "bases", "note"),
        note="Mean score of the identities that the stereotype of a base favours, minus that of the others; one "
        "value per base. Directions are coded from the source that the suite cites for the base. Most favour "
        "the same identities, so a difference that is the same on every base shows here too: see differences.",
    )
    return Section(tables=(table,))


def by_base_section(data: PanelData, gaps: pd.DataFrame, context: ReportContext) -> Section:
    """The differences by base, as a table and a figure.

    Args:
        data: The verdicts.
        gaps: The table of `differences`.
        context: What the report is given.
    """
    by_base, unit = effects_by_base(data), data.cluster_noun
    table = Table(
        name="by_base",
        title=f"Phase 1: differences by {unit}",
        frame=by_base,
        note="First minus second, all metrics together.",
    )
    figure = Figure(
        name="by-base",
        caption=f"Differences by {unit}, all metrics together ({data.counts}).",
        table="by_base",
        draw=lambda: by_base_figure(by_base, gaps, context.title, f"{data.counts}. First minus second.", data.points),
    )
    return Section(tables=(table,), figures=(figure,))


def by_base_figure(by_base: pd.DataFrame, gaps: pd.DataFrame, title: str, note: str, points: str) -> Drawing:
    """The difference of every planned pair (columns) on every base (rows), one panel per model."""
    models = list(pd.unique(by_base["model"]))
    bases = sorted(pd.unique(by_base["base"]))[:MAX_BASES]
    pairs = list(by_base[["first", "second"]].drop_duplicates().itertuples(index=False))
    figure, axes = sheet(
        (1.6 + 0.42 * len(pairs)) * len(models) + 1.6, 2.6 + 0.2 * len(bases), len(models), sharey=True
    )
    widest = max(0.05, float(by_base["difference"].abs().max()))
    image = None
    for axis, model in zip(axes.flat, models, strict=True):
        own = by_base[by_base["model"] == model].set_index(["base", "first", "second"])["difference"]
        table = [[own.get((base, first, second), np.nan) for first, second in pairs] for base in bases]
        image = axis.imshow(table, cmap="PuOr_r", vmin=-widest, vmax=widest, aspect="auto")
        tested = gaps[(gaps["model"] == model) & (gaps["metric"] == ALL)].set_index(["first", "second"])
        varies = [bool(tested["p_bases_adjusted"].get(pair, np.nan) <= 0.05) for pair in map(tuple, pairs)]
        names = [
            plain_text(f"{first} − {second}") + (" *" if star else "")
            for (first, second), star in zip(pairs, varies, strict=True)
        ]
        axis.set_xticks(range(len(pairs)), names, rotation=60, ha="right", fontsize=7)
        axis.set_yticks(range(len(bases)), [plain_text(str(base)) for base in bases], fontsize=7)
        axis.set_title(plain_text(str(model)) if len(models) > 1 else "", fontsize=9)
        for spine in axis.spines.values():
            spine.set_visible(False)
    if image is not None:
        figure.colorbar(image, ax=list(axes.flat), shrink=0.7, label=points)
    more = f" The first {MAX_BASES} are shown." if by_base["base"].nunique() > MAX_BASES else ""
    caption(figure, title, f"{note} *: differs between bases (p ≤ 0.05 after Holm correction).{more}")
    return figure
