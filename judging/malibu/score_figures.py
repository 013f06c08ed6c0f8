"""The paper's figures of scores: means by identity (figure 9), and the matrix of differences (figure 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from parley.analysis.reporting.figures import LINE, caption, colours, dots, plain_text, sheet
from parley.analysis.stats.results import Line
from parley.base.text import signed
from parley.judging.malibu.ballots import POINTS
from parley.judging.malibu.score_table import ALL

MARKERS = "osD^v"


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


def matrix_figure(lines: Sequence[Line], title: str, note: str, points: str) -> Drawing:
    """Row minus column, all metrics together, one matrix per model. Framed: within a category; starred: significant."""
    models = list(dict.fromkeys(line.about["model"] for line in lines))
    # Planned pairs come first, category by category, so pair after pair gives the order of the identity list.
    labels = list(dict.fromkeys(line.about[side] for line in lines for side in ("first", "second")))
    side = 1.2 + 0.46 * len(labels)
    figure, axes = sheet(side * len(models) + 0.8, side + 1.3, len(models))
    widest = max(0.05, *(abs(line.estimate) for line in lines if math.isfinite(line.estimate)), 0.0)
    image = None
    for axis, model in zip(axes.flat, models, strict=True):
        table = np.full((len(labels), len(labels)), np.nan)
        for line in (line for line in lines if line.about["model"] == model):
            i, j = (labels.index(line.about[side]) for side in ("first", "second"))
            table[i, j], table[j, i] = line.estimate, -line.estimate
            star = "*" if line.shown else ""
            for y, x, value in ((i, j, line.estimate), (j, i, -line.estimate)):
                if not math.isfinite(value):
                    continue
                strong = abs(value) > 0.6 * widest
                colour, weight = "white" if strong else "black", "bold" if star else "normal"
                text = f"{signed(value).replace('-', '−')}{star}"
                axis.text(x, y, text, ha="center", va="center", fontsize=6.5, color=colour, fontweight=weight)
                if line.about["within"]:
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
