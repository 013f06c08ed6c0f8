"""The effect of identity base by base: where it differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.clusters import has_wordings
from parley.analysis.reporting.figures import caption, plain_text, sheet
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.results import ALPHA, Line
from parley.base.text import p_text, plural
from parley.judging.malibu.conclusions import SCORE, SPREAD, Blockers
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.scores import pairs_of

ABOUT = ("model", "category", "first", "second")
MAX_BASES = 60
"""Rows of the figure by base; the table has all of them."""


def by_base_section(
    data: PanelData,
    planned: Sequence[Line],
    blocked: Mapping[str, Blockers],
    context: ReportContext,
    margin: float,
) -> Section:
    """The differences by base, as a table and a figure, and where they vary.

    Args:
        data: The verdicts.
        planned: The planned lines.
        blocked: What leaves questions without an answer, by model.
        context: What the report is given.
        margin: The margin of the lines.
    """
    unit, counts, pairs = data.cluster_noun, data.counts(data.labelled_verdicts), pairs_of(planned, SCORE)
    by_base = pd.DataFrame(
        {**{name: line.about[name] for name in ABOUT}, "base": base, "difference": value}
        for line in pairs
        for base, value in line.values.items()
    )
    table = Table(
        name="by_base",
        title=f"Phase 1: differences by {unit}",
        frame=by_base,
        note="First minus second, all metrics together.",
    )
    figure = Figure(
        name="by-base",
        caption=f"Differences by {unit}, all metrics together ({counts}).",
        table="by_base",
        draw=lambda: by_base_figure(by_base, pairs, context.title, f"{counts}. First minus second.", data.points),
    )
    words = (
        f"{data.prefix(model)}{text}"
        for model in data.models
        if not blocked[model].scores
        and (text := _varying([line for line in pairs if line.about["model"] == model], data, margin))
    )
    return Section(tables=(table,), figures=(figure,), words=tuple(words))


def _varying(pairs: Sequence[Line], data: PanelData, margin: float) -> str:
    """Says in how many pairs the difference varies from base to base, and where most."""
    tested = [line for line in pairs if not math.isnan(line.p)]
    # Silent ballots have hardly any noise: bases always differ a little, so only large differences are news.
    varying = [
        line
        for line in tested
        if line.also["p_bases_adjusted"] <= ALPHA
        and (line.also["base_sd_high"] >= SPREAD * margin or not data.read_silently(line.about["model"]))
    ]
    if not varying:
        return ""
    most = max(varying, key=lambda line: line.also["base_sd"])
    # Each base has label wordings of its own, or shares them with few others: either may be what varies.
    worded = has_wordings(data.verdicts)
    where, each = (
        ("with the base or its label wording", "base and wording") if worded else ("from base to base", "base")
    )
    return (
        f"In {len(varying)} of {plural(len(tested), 'pair')} the difference varies {where}"
        f"{', most' if len(varying) > 1 else ':'} between '{most.about['first']}' and '{most.about['second']}' (SD of "
        f"{most.also['base_sd']:.2f} points, p {p_text(most.also['p_bases_adjusted'])} after Holm's correction). The "
        f"mean does not describe every {each}."
    )


def by_base_figure(by_base: pd.DataFrame, lines: Sequence[Line], title: str, note: str, points: str) -> Drawing:
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
        found = {
            (line.about["first"], line.about["second"])
            for line in lines
            if line.about["model"] == model and line.also.get("p_bases_adjusted", math.nan) <= ALPHA
        }
        varies = [tuple(pair) in found for pair in pairs]
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
    caption(figure, title, f"{note} *: differs between rows (p ≤ 0.05 after Holm correction).{more}")
    return figure
