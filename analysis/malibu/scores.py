"""Phase 1: mean scores by identity, and differences between identities on the same scenarios."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from parley.analysis.malibu.by_judge import Contrast, by_judge, with_differing_judges
from parley.analysis.malibu.conclusions import (
    MARGIN,
    SPREAD,
    effect,
    effects_frame,
    estimate,
    with_conclusions,
)
from parley.analysis.malibu.panel import ALL, POINTS, PanelData, Verdicts, by_metric, panel_data, values_in_order
from parley.analysis.reporting.figures import LINE, caption, colours, dots, plain_text, sheet
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import benjamini_hochberg
from parley.analysis.stats.results import ALPHA, DIFFERENT, SMALL, Line
from parley.base.text import signed

NO_LABEL = "(no label)"
MARKERS = "osD^v"
SENSITIVITY = (
    "scenario_low, scenario_high, scenario_p: sensitivity analysis that takes scenarios of one base as independent."
)
EFFECT = (
    *("difference", "low", "high", "p", "p_adjusted", "verdict", "base_sd", "base_sd_high"),
    *("scenario_low", "scenario_high", "scenario_p"),
)
"""The `EFFECT_COLUMNS` that tables of pairs show."""
MEANS = ["model", "category", "identity", "metric", "mean", "low", "high", "n", "clusters"]
DIFFERENCES = ("model", "category", "first", "second", "metric", "within")


def mean_scores(verdicts: Verdicts) -> pd.DataFrame:
    """Mean score by model, identity and metric (the paper's figure 9), with intervals over bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    groups = data.scores.groupby(["model", "category", "identity"], sort=False, observed=True)
    rows: list[dict[str, Any]] = []
    for (model, category, identity), group in groups:
        for metric, part in by_metric(group):
            mean = cluster_mean(part["value"], part["cluster"], scale=data.scale(str(model)))
            rows.append(
                {
                    "model": str(model),
                    "category": str(category),
                    "identity": str(identity) or NO_LABEL,
                    "metric": metric,
                    "mean": mean.estimate,
                    "low": mean.low,
                    "high": mean.high,
                    "n": mean.n,
                    "clusters": mean.clusters,
                }
            )
    return pd.DataFrame(rows, columns=MEANS)


def differences(verdicts: Verdicts, *, margin: float = MARGIN) -> pd.DataFrame:
    """First minus second on the same scenarios, for every two identities (the paper's figure 4).

    The planned comparisons, within a category and on all metrics together, are Holm-corrected over the model and have
    a conclusion. By single metric the correction is Benjamini and Hochberg's, as those tests are exploratory.
    Differences between categories are estimated but not tested: they answer no question of the study.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: Points of the scale within which two identities count as alike.
    """
    data = panel_data(verdicts)
    lines: list[Line] = []
    for model in data.models:
        planned = data.pairs(model)
        if planned:
            lines += [*_planned(data, model, planned, margin), *_unplanned(data, model, planned)]
            lines += _by_metric(data, model, planned)
    return effects_frame(lines, DIFFERENCES)


def _planned(data: PanelData, model: str, planned: list[tuple[str, str, str]], margin: float) -> list[Line]:
    gaps = [data.table(model).gaps(first, second) for _, first, second in planned]
    own = [effect(found, margin, **_subject(data, model, *pair)) for found, pair in zip(gaps, planned, strict=True)]
    lines = with_conclusions(own, gaps, silent=data.read_silently(model))
    if not data.staged:
        return lines
    pairs = [Contrast(category, (first,), (second,)) for category, first, second in planned]
    return with_differing_judges(lines, data.shared(f"pairs of {model} by judge", lambda: by_judge(data, pairs)))


def _unplanned(data: PanelData, model: str, planned: list[tuple[str, str, str]]) -> list[Line]:
    """Pairs of different categories, or that differ in several parts: an estimate with its interval, and no test."""
    table = data.table(model)
    known = {(first, second) for _, first, second in planned}
    labels = [name for name in values_in_order(data.labelled_scores, "identity") if name in table.identities]
    lines = [
        replace(estimate(table.gaps(*pair)), p=math.nan, **_subject(data, model, "", *pair))
        for pair in combinations(labels, 2)
        if pair not in known
    ]
    # Categories with label wordings of their own share no cell, so that there is nothing to estimate.
    return [line for line in lines if line.clusters or not data.staged]


def _by_metric(data: PanelData, model: str, planned: list[tuple[str, str, str]]) -> list[Line]:
    metrics = values_in_order(data.labelled_scores, "metric")
    lines = [
        replace(estimate(data.table(model).gaps(*pair[1:], metric)), **_subject(data, model, *pair, metric))
        for metric in (metrics if len(metrics) > 1 or not data.staged else ())
        for pair in planned
    ]
    adjusted = benjamini_hochberg([line.p for line in lines])
    tests = sum(not math.isnan(p) for p in adjusted)
    return [replace(line, p_adjusted=p, tests=tests) for line, p in zip(lines, adjusted, strict=True)]


def _subject(data: PanelData, model: str, category: str, first: str, second: str, metric: str = ALL) -> dict[str, Any]:
    subject = Contrast(category, (first,), (second,)).subject(data, model)
    return subject | {"about": subject["about"] | {"metric": metric, "within": bool(category)}}


def different_pairs(gaps: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Model and identities of every pair that was found to differ.

    Args:
        gaps: The table of `differences`.
    """
    found = gaps[gaps["verdict"].isin([DIFFERENT, SMALL])]
    return [(row.model, row.first, row.second) for row in found.itertuples()]


def means_section(data: PanelData, context: ReportContext) -> Section:
    """The mean scores, as a table and the paper's figure 9."""
    means, counts = mean_scores(data), data.counts(data.final_scores)
    table = Table(
        name="means",
        title="Phase 1: mean scores",
        frame=means,
        shown=(*data.model_column, "identity", "metric", "mean", "low", "high", "n", "clusters"),
        note=data.intervals,
        printed=True,
    )
    figure = Figure(
        name="scores",
        caption=f"Mean scores by identity ({counts}).",
        table="means",
        draw=lambda: scores_figure(means, context.title, f"{counts}. {data.intervals}", data.scale()),
    )
    return Section(tables=(table,), figures=(figure,))


def differences_section(data: PanelData, gaps: pd.DataFrame, context: ReportContext, margin: float) -> Section:
    """The differences between identities, as a table and the paper's figure 4.

    Args:
        data: The verdicts.
        gaps: The table of `differences`, which other sections need too.
        context: What the report is given.
        margin: The margin that `gaps` was made with.
    """
    unit, counts = data.cluster_noun, data.counts(data.labelled_verdicts)
    table = Table(
        name="differences",
        title="Phase 1: differences between identities on the same scenarios",
        frame=gaps,
        shown=(*data.model_column, "category", "first", "second", "metric", *EFFECT, "clusters", "note"),
        note=conclusions_note(unit, margin),
    )
    figure = Figure(
        name="matrix",
        caption=f"Row minus column, all metrics together ({counts}). Framed: planned comparison; starred: "
        "p ≤ 0.05 after Holm correction.",
        table="differences",
        draw=lambda: matrix_figure(
            gaps,
            context.title,
            f"{counts}. Framed: planned comparison. *: p ≤ 0.05, sign flips over {unit}s, Holm-corrected.",
            data.points,
        ),
    )
    return Section(tables=(table,), figures=(figure,))


def conclusions_note(unit: str, margin: float) -> str:
    """How the columns of `EFFECT` are to be read.

    Args:
        unit: What a cluster is: "base" or "scenario".
        margin: The difference that still counts as none.
    """
    return (
        f"First minus second. Sign flips over {unit}s; the interval covers all pairs of a model at once. p_adjusted: "
        "the larger one of sign flips and Student's t, Holm over the model's pairs. verdict: alike needs a mean within "
        f"±{margin:g} (p_alike) and an SD between {unit}s shown to be below {SPREAD * margin:g} "
        f"(base_sd_high). {SENSITIVITY}"
    )


def scores_figure(means: pd.DataFrame, title: str, note: str, scale: tuple[float, float] = POINTS) -> Drawing:
    """One panel per metric, identities down the side, one marker per model."""
    metrics = [ALL, *[metric for metric in pd.unique(means["metric"]) if metric != ALL]]
    models = list(pd.unique(means["model"]))
    identities = means.drop_duplicates("identity")
    columns = min(3, len(metrics))
    rows = math.ceil(len(metrics) / columns)
    height = 1.6 + rows * (0.7 + LINE * len(identities) * max(1.0, 0.6 * len(models)))
    figure, axes = sheet(3.3 * columns + 0.6, height, columns, rows, sharey=True, sharex=True)
    tints = colours(list(identities["category"]))
    for place, axis in enumerate(axes.flat[len(metrics) :], len(metrics)):
        axis.set_visible(False)
        axes.flat[place - columns].tick_params(labelbottom=True)  # now the lowest of its column, so it shows the scale
    for axis, metric in zip(axes.flat, metrics, strict=False):
        for nth, model in enumerate(models):
            part = means[(means["metric"] == metric) & (means["model"] == model)].set_index("identity")
            part = part.reindex(identities["identity"])
            dots(
                axis,
                list(identities["identity"]),
                part["mean"],
                part["low"],
                part["high"],
                [tints[category] for category in identities["category"]],
                shift=(nth - (len(models) - 1) / 2) * 0.7 / max(len(models), 1),
                marker=MARKERS[nth % len(MARKERS)],
                label=str(model),
            )
        axis.set_title("all metrics" if metric == ALL else plain_text(metric), fontsize=9)
        axis.tick_params(labelsize=8)
    if len(models) > 1:
        _legend(figure, models)
    axes.flat[0].set_xlim(*_within(axes.flat[0].get_xlim(), *scale))
    caption(figure, title, note)
    return figure


def _legend(figure: Drawing, models: list[str]) -> None:
    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[nth % len(MARKERS)], color="#444444", label=plain_text(str(model)))
        for nth, model in enumerate(models)
    ]
    figure.legend(handles=handles, loc="outside lower right", fontsize=7, frameon=False)


def _within(limits: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    room = 0.02 * (high - low)
    return max(limits[0], low - room), min(limits[1], high + room)


def matrix_figure(gaps: pd.DataFrame, title: str, note: str, points: str) -> Drawing:
    """Row minus column, all metrics together, one matrix per model. Framed: within a category; starred: significant."""
    models = list(pd.unique(gaps["model"]))
    gaps = gaps[gaps["metric"] == ALL]
    # Planned pairs come first, category by category, so pair after pair gives the order of the identity list.
    labels = list(dict.fromkeys(gaps[["first", "second"]].to_numpy().ravel()))
    side = 1.2 + 0.46 * len(labels)
    figure, axes = sheet(side * len(models) + 0.8, side + 1.3, len(models))
    widest = max(0.05, float(gaps["difference"].abs().max()))  # 0.05 where no difference is known
    image = None
    for axis, model in zip(axes.flat, models, strict=True):
        table = np.full((len(labels), len(labels)), np.nan)
        for row in gaps[gaps["model"] == model].itertuples():
            i, j = labels.index(row.first), labels.index(row.second)
            table[i, j], table[j, i] = row.difference, -row.difference
            star = "*" if row.p_adjusted <= ALPHA else ""
            for y, x, value in ((i, j, row.difference), (j, i, -row.difference)):
                if not math.isfinite(value):
                    continue
                strong = abs(value) > 0.6 * widest
                colour, weight = "white" if strong else "black", "bold" if star else "normal"
                text = f"{signed(value).replace('-', '−')}{star}"
                axis.text(x, y, text, ha="center", va="center", fontsize=6.5, color=colour, fontweight=weight)
                if row.within:
                    axis.add_patch(_frame(x, y))
        image = axis.imshow(table, cmap="PuOr_r", vmin=-widest, vmax=widest)
        names = [plain_text(label) for label in labels]
        axis.set_xticks(range(len(labels)), names, rotation=45, ha="right", fontsize=8)
        axis.set_yticks(range(len(labels)), names, fontsize=8)
        axis.set_title(plain_text(str(model)) if len(models) > 1 else "", fontsize=9)
        for spine in axis.spines.values():
            spine.set_visible(False)
    if image is not None:
        figure.colorbar(image, ax=list(axes.flat), shrink=0.7, label=f"row minus column ({points})")
    caption(figure, title, note)
    return figure


def _frame(x: int, y: int) -> Rectangle:
    return Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, fill=False, edgecolor="black", linewidth=1.1)
