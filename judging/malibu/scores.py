"""Mean scores by identity, and the planned contrasts: tables, plots, and the paper's figures 4 and 9."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from parley.analysis.decide import WITHIN, WITHIN_LOW
from parley.analysis.effects import Estimand, Question, of_model
from parley.analysis.page.figures import LINE, caption, colours, dots, legend_beside, plain_text, sheet
from parley.analysis.page.report import Figure, ReportContext, Section, Table, as_frame, section
from parley.analysis.stats.clustered import mean_of_clusters
from parley.analysis.stats.mean_test import tested_over
from parley.analysis.stats.multiplicity import benjamini_hochberg
from parley.analysis.stats.results import Contrast, Line, columns
from parley.base.text import as_written, signed
from parley.judging.malibu.contrasts import (
    BESIDE,
    PAIRS,
    PRIMARY,
    SCORE,
    WINS,
    contrast_line,
    contrast_of,
    judges_below,
    pairs_of,
    tested,
)
from parley.judging.malibu.decisions import Blockers, planned_lines
from parley.judging.malibu.panel_data import PanelData, Verdicts, by_metric, panel_data
from parley.judging.malibu.plan import MARGIN
from parley.judging.malibu.score_table import ALL, POINTS, values_in_order
from parley.judging.malibu.words import in_points, scores_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from matplotlib.patches import Rectangle

NO_LABEL = "(no label)"
EFFECT = (
    *("measure", "category", "first", "second", "metric", "estimate", "low", "high", "p", "p_adjusted", "verdict"),
    *(WITHIN, WITHIN_LOW, "base_sd", "clusters", "note"),
)
"""The columns of a contrast on pages."""
TABLES = {PRIMARY: "primary", PAIRS: "differences"}
PLOTS_ASK = {
    (PRIMARY, SCORE): "Does the author's label change the score ({} to {})?",
    (PAIRS, SCORE): "Which identities differ, by pairs?",
    (PRIMARY, WINS): "Which identity is preferred in pairs?",
    (PAIRS, WINS): "Which of two identities is preferred?",
}
PLACES = "A preference for a place is in these means unless pairs are debated in both orders."
PRINTED_MATRIX = (
    "low, high: 95% intervals of each cell alone. paper_…: as figure 4 of Mirza et al. (2025) prints them, on "
    "situations and responses of their own."
)
PAPERS_METRICS = {"Creativity", "Accuracy", "Efficiency", "Reliability"}
FIGURE_4 = Path(__file__).with_name("published_matrix.txt")
MARKERS = "osD^v"


def mean_scores(verdicts: Verdicts) -> pd.DataFrame:
    """Mean score by model, identity and metric (the paper's figure 9), with intervals over bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    return _means(data, data.scores)


def _means(data: PanelData, scores: pd.DataFrame) -> pd.DataFrame:
    names = ["model", "category", "identity"]
    by_label: dict[Any, list[dict[str, Any]]] = {}
    for metric, part in by_metric(scores):
        clusters = part.groupby([*names, "cluster"], sort=False, observed=True)["value"].agg(["mean", "count"])
        for keys, of_label in clusters.groupby(level=names, sort=False, observed=True):
            about = dict(zip(names, map(str, keys), strict=True)) | {"metric": metric}
            n, scale = int(of_label["count"].sum()), data.scale(about["model"])
            mean = mean_of_clusters(of_label["mean"].dropna(), n, scale)
            by_label.setdefault(keys, []).append(about | columns(mean, "mean", "n", "clusters"))
    # All metrics together, then each of several.
    rows = [row for of_label in by_label.values() for row in of_label[: None if len(of_label) > 2 else 1]]
    means = pd.DataFrame(rows, columns=[*names, "metric", "mean", "low", "high", "n", "clusters"])
    return means.replace({"identity": {"": NO_LABEL}})


def differences(verdicts: Verdicts, *, margin: float = MARGIN) -> pd.DataFrame:
    """Differences of every two identities on the same scenarios, first minus second (the paper's figure 4), with
    planned preferences.

    The planned comparisons, within a category and on all metrics together, are Holm-corrected in their family and have
    a verdict. By single metric the correction is Benjamini and Hochberg's, as those tests are exploratory. Differences
    between categories are estimated but not tested, since the study does not ask about them.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: Points of the scale within which two identities count as alike.
    """
    data = panel_data(verdicts)
    return as_frame(all_pairs(data, planned_lines(data, margin)))


def all_pairs(data: PanelData, planned: Sequence[Line]) -> list[Line]:
    """The planned lines about two identities, and lines about all other pairs.

    Args:
        data: The verdicts.
        planned: The planned lines.
    """
    lines: list[Line] = []
    for model in data.models:
        pairs = of_model(pairs_of(planned), model)
        pairs = [replace(line, about=line.about.plus(metric=ALL, within=True)) for line in pairs]
        lines += [*pairs, *(chain(_unplanned(data, model), _by_metric(data, model)) if data.pairs(model) else ())]
    return lines


def as_the_paper(data: PanelData, metrics: Set[str] = PAPERS_METRICS) -> bool:
    """Whether scores are as in the paper: from 0 to 10, by its four metrics (or the appendix's), in its design."""
    return not data.staged and data.scale() == POINTS and {*values_in_order(data.final_scores, "metric")} == metrics


def figure_4(data: PanelData, lines: Sequence[Line]) -> pd.DataFrame:
    """The paper's figure 4: column minus row, in its order and sign, with the printed cells beside a run of its design.

    Args:
        data: The verdicts.
        lines: Lines on differences of two identities.
    """
    printed = pd.read_csv(FIGURE_4, sep=" ", comment="#")
    order = [*dict.fromkeys([*printed["column"], *printed["row"]])]
    of_label, categories = data.categories, [*dict.fromkeys(data.categories)]
    places = {name: (categories.index(of_label[name]), [*order, name].index(name)) for name in of_label.index}
    labels = sorted(places, key=lambda name: places[name])
    rows = []
    for line in lines:
        first, second = map(labels.index, contrast_of(line).names)
        # Every cell has its own interval: those of planned lines hold for all of them together.
        low, high = (line.also.get(f"pointwise_{end}", getattr(line, end)) for end in ("low", "high"))
        estimate, low, high = (line.estimate, low, high) if first < second else (0 - line.estimate, 0 - high, 0 - low)
        result = replace(line, estimate=estimate, low=low, high=high)
        about = {"model": line.about.model, "column": labels[min(first, second)], "row": labels[max(first, second)]}
        further = {"planned": line.about.columns["within"], "shown": line.shown}
        rows.append(about | columns(result, "ours") | further)
    cells = pd.DataFrame(rows, columns=["model", "column", "row", "ours", "low", "high", "planned", "shown"])
    if len(cells) and as_the_paper(data):
        cells = cells.merge(printed, how="left").dropna(axis=1, how="all")
    ordered = {name: pd.Categorical(cells[name], labels) for name in ("column", "row")}
    return cells.assign(**ordered).sort_values(["row", "column"], kind="stable", ignore_index=True)


def _unplanned(data: PanelData, model: str) -> list[Line]:
    """Pairs of different categories, or that differ in several parts: an estimate with its interval, without a test."""
    planned = {frozenset((*pair.first, *pair.second)) for pair in data.plan.pairs}
    labels = [
        name for name in values_in_order(data.labelled_scores, "identity") if name in data.table(model).identities
    ]
    pairs = [("", *pair) for pair in combinations(labels, 2) if frozenset(pair) not in planned]
    lines = [replace(line, p=math.nan) for line in _scored(data, model, pairs, ALL)]
    # Categories with their own label wordings share no cell, so there is nothing to estimate.
    return [line for line in lines if line.clusters or not data.staged]


def _by_metric(data: PanelData, model: str) -> list[Line]:
    metrics = values_in_order(data.labelled_scores, "metric")
    metrics = metrics if len(metrics) > 1 or not data.staged else []
    lines = [line for metric in metrics for line in _scored(data, model, data.pairs(model), metric)]
    adjusted = benjamini_hochberg([line.p for line in lines])
    tests = sum(not math.isnan(p) for p in adjusted)
    return [replace(line, p_adjusted=p, tests=tests) for line, p in zip(lines, adjusted, strict=True)]


def _scored(data: PanelData, model: str, pairs: Iterable[tuple[str, str, str]], metric: str) -> list[Line]:
    lines = []
    for category, first, second in pairs:
        test = tested(data.table(model).gaps(first, second, metric))
        contrast = Contrast(category, (first,), (second,))
        line = contrast_line(test, contrast, data, model, about={"family": ""}, measure=SCORE)
        lines.append(replace(line, about=line.about.plus(metric=metric, within=bool(category))))
    return lines


def means_section(data: PanelData, context: ReportContext) -> Section:
    """The mean scores, as tables and the paper's figure 9."""
    means, counts = mean_scores(data), data.counts(data.final_scores)
    shown = (*data.model_column, "identity", "metric", "mean", "low", "high", "n", "clusters")
    table = Table("means", "Phase 1: mean scores", means, shown, data.intervals, "" if data.staged else "B, figure 9")
    debated = Table(
        name="pair_means",
        title="Phase 2: mean scores of both answers in debated pairs",
        frame=_means(data, data.pair_scores),
        shown=shown,
        note=f"The last round of each debate. {PLACES} {data.intervals}",
    )
    figure = Figure(
        name="scores",
        caption=f"Mean scores by identity ({counts}).",
        table="means",
        draw=lambda: scores_figure(means, context.title, f"{counts}. {data.intervals}", data.scale()),
    )
    return Section(tables=(table, debated), figures=(figure,))


def contrasts_sections(
    data: PanelData,
    planned: Sequence[Line],
    judged: Sequence[Line],
    blocked: Mapping[str, Blockers],
    context: ReportContext,
    margin: float,
) -> list[Section]:
    """The primary contrasts, the same by judge, and the pairs: tables, a plot for each measure, the paper's figure 4.

    Args:
        data: The verdicts.
        planned: The planned lines.
        judged: The lines of `by_judge` on the headline's contrasts.
        blocked: What leaves questions without an answer, by model.
        context: What the report is given.
        margin: The margin of the lines.
    """
    unit, counts, lines = data.cluster_noun, data.counts(data.labelled_verdicts), all_pairs(data, planned)
    primary, pairs = (
        section(
            replace(_question(data, family, planned, margin), plotted=lambda plotted: judges_below(plotted, judged)),
            [line for line in planned if line.about.family == family],
        )
        for family in (PRIMARY, PAIRS)
    )
    by_judge = Question(
        name="by_judge",
        ask=f"{'Primary contrasts' if primary.forests[0].lines else 'Pairs'} by model and by judge",
        measures={SCORE: data.difference},
        cluster=unit,
        arms="identity",
        note="p_differ: p-value of no difference between the models, or the judges, by flipping the signs of their "
        f"deviations over {unit}s; p_differ_adjusted: Holm over all of these contrasts and models.",
    )
    cells = figure_4(data, [line for line in lines if line.measure == SCORE and line.about.metric == ALL])
    stars = f"Framed: planned comparison; starred: p ≤ 0.05 over {unit}s, Holm-corrected."
    figure = Figure(
        name="matrix",
        caption=f"Column minus row, all metrics together ({counts}). {stars}",
        table="published_matrix" if as_the_paper(data) else TABLES[PAIRS],
        draw=lambda: matrix_figure(cells, context.title, f"{counts}. {stars}", data.points),
    )
    beside = Table(
        name="published_matrix",
        title="Differences of mean scores, column minus row",
        frame=cells,
        shown=(*data.model_column, *[name for name in cells if name not in ("model", "planned", "shown")]),
        note=PRINTED_MATRIX,
        paper="4.1, figure 4",
    )
    words = (
        f"{data.by_itself(model)}{text}"
        for model in data.models
        if (text := scores_words(of_model(planned, model), blocked[model], margin))
    )
    return [
        primary,
        Section(tables=section(by_judge, judged).tables),
        replace(
            pairs,
            tables=[
                *(replace(each, frame=as_frame(lines)) for each in pairs.tables),
                *([beside] if as_the_paper(data) else []),
            ],
            figures=[figure] if len(cells) else [],
            words=tuple(words),
        ),
    ]


def _question(data: PanelData, family: str, planned: Sequence[Line], margin: float) -> Question:
    """What a family of contrasts asks, by measure."""
    unit, low, high = data.cluster_noun, *data.scale()
    # Without primary contrasts (the paper's design, a user's labels) pairs are the main question.
    main = PRIMARY if all(line.about.family != PRIMARY for line in planned) else family
    several = any((line.tests or 1) > 1 for line in planned if line.about.family == family)
    before, after = ("Simultaneous ", ", p Holm-corrected") if several else ("", "")
    note = f"{before}95% intervals: {tested_over(unit)}{after}."
    score = Estimand(
        words=data.difference, ask=PLOTS_ASK[main, SCORE].format(f"{low:g}", f"{high:g}"), note=note, says=in_points
    )
    return Question(
        name=TABLES[family],
        ask=f"{'Primary contrasts' if family == PRIMARY else 'Pairs'} of identities on the same answers",
        measures={
            SCORE: score,
            WINS: Estimand(
                words="share that prefers the first − the second", ask=PLOTS_ASK[main, WINS], note=note, scale="share"
            ),
        },
        cluster=unit,
        arms="identity",
        note=f"First minus second; scores {low:g} to {high:g}, preferences as shares ({data.win_rate} of the first: "
        f"½ + estimate / 2). The interval is simultaneous, for all contrasts of a model's family. p_adjusted: Holm "
        f"over the family, times {BESIDE} in families beside it. verdict: alike needs a mean within ±{margin:g} "
        f"(preferences: ±{data.plan.preference_margin:g}; p_alike), {data.plan.bases} {unit}s, and at least "
        f"{data.plan.share:.0%} of them shown to lie within it themselves ({WITHIN_LOW}, with 95% confidence).",
        shown=(*data.model_column, *EFFECT),
        stated=False,
    )


def scores_figure(means: pd.DataFrame, title: str, note: str, scale: tuple[float, float] = POINTS) -> Drawing:
    """One panel per metric, identities down the side, one marker per model."""
    metrics = [ALL, *[metric for metric in pd.unique(means["metric"]) if metric != ALL]]
    models = list(pd.unique(means["model"]))
    identities = means.drop_duplicates("identity")
    columns = min(3, len(metrics))
    rows = math.ceil(len(metrics) / columns)
    height = 1.6 + rows * (0.7 + LINE * len(identities) * max(1.0, 0.6 * len(models)))
    beside = 0.4 + 0.06 * max(map(len, models)) if len(models) > 1 else 0.0  # the legend
    figure, axes = sheet(3.3 * columns + 0.6 + beside, height, columns, rows, sharey=True, sharex=True)
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
        legend_beside(figure, axes.flat[:1])
    axes.flat[0].set_xlim(*_within(axes.flat[0].get_xlim(), *scale))
    caption(figure, title, note)
    return figure


def _within(limits: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    room = 0.02 * (high - low)
    return max(limits[0], low - room), min(limits[1], high + room)


def matrix_figure(cells: pd.DataFrame, title: str, note: str, points: str) -> Drawing:
    """Column minus row, one matrix per model and one for each model of the paper.

    Args:
        cells: The result of `figure_4`.
        title: The title.
        note: The small print.
        points: The scale in words.
    """
    panels = {str(model): part.assign(value=part["ours"]) for model, part in cells.groupby("model", sort=False)}
    alone = next(iter(panels.values())).assign(shown=False)
    panels |= {name: alone.assign(value=alone[name]) for name in cells.columns if name.startswith("paper_")}
    labels = list(cells["column"].cat.categories)
    side = 1.2 + 0.46 * len(labels)
    figure, axes = sheet(side * len(panels) + 0.8, side + 1.3, len(panels))
    widest = max(0.05, *(part["value"].abs().max() for part in panels.values()))
    names = [plain_text(as_written(label)) for label in labels]
    for axis, (name, part) in zip(axes.flat, panels.items(), strict=True):
        square = np.full((len(labels), len(labels)), np.nan)
        for cell in part[part["value"].notna()].itertuples():
            x, y = labels.index(cell.column), labels.index(cell.row)
            square[y, x] = cell.value
            colour, weight = "white" if abs(cell.value) > 0.6 * widest else "black", "bold" if cell.shown else "normal"
            text = f"{signed(cell.value).replace('-', '−')}{'*' if cell.shown else ''}"
            axis.text(x, y, text, ha="center", va="center", fontsize=6.5, color=colour, fontweight=weight)
            if cell.planned:
                axis.add_patch(_frame(x, y))
        image = axis.imshow(square, cmap="PuOr_r", vmin=-widest, vmax=widest, origin="lower")
        axis.set_xticks(range(len(labels)), names, rotation=45, ha="right", fontsize=8)
        axis.set_yticks(range(len(labels)), names, fontsize=8)
        axis.set_title(plain_text(name) if len(panels) > 1 else "", fontsize=9)
        for spine in axis.spines.values():
            spine.set_visible(False)
    figure.colorbar(image, ax=list(axes.flat), shrink=0.7, label=f"column minus row ({points})")
    caption(figure, title, note)
    return figure


def _frame(x: int, y: int) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, fill=False, edgecolor="black", linewidth=1.1)
