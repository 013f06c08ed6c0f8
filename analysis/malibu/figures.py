"""MALIBU's figures: mean scores (9), the matrix of differences (4), win rates (5, 6), agreement by round."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.malibu.panel import ALL
from parley.analysis.reporting.figures import (
    LINE,
    PALETTE,
    caption,
    colours,
    dots,
    legend_beside,
    plain_text,
    sheet,
    tidy,
)
from parley.base.text import signed

MARKERS = "osD^v"
MAX_BASES = 60
"""Rows of the figure by base; the table has all of them."""


def scores_figure(means: pd.DataFrame, title: str, note: str) -> Figure:
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
        axes.flat[place - columns].tick_params(labelbottom=True)  # now the lowest of its column: it shows the scale
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
    axes.flat[0].set_xlim(*_within(axes.flat[0].get_xlim(), 0, 10))
    caption(figure, title, note)
    return figure


def _legend(figure: Figure, models: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[nth % len(MARKERS)], color="#444444", label=plain_text(str(model)))
        for nth, model in enumerate(models)
    ]
    figure.legend(handles=handles, loc="outside lower right", fontsize=7, frameon=False)


def _within(limits: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    room = 0.02 * (high - low)
    return max(limits[0], low - room), min(limits[1], high + room)


def matrix_figure(gaps: pd.DataFrame, title: str, note: str) -> Figure:
    """Row minus column, all metrics together, one matrix per model. Framed: within a category; starred: significant."""
    models = list(pd.unique(gaps["model"]))
    gaps = gaps[gaps["metric"] == ALL]
    labels = list(dict.fromkeys([*gaps["first"], *gaps["second"]]))
    side = 1.2 + 0.46 * len(labels)
    figure, axes = sheet(side * len(models) + 0.8, side + 1.3, len(models))
    widest = max(0.05, float(np.nanmax(np.abs(gaps["difference"]))) if gaps["difference"].notna().any() else 0.05)
    image = None
    for axis, model in zip(axes.flat, models, strict=True):
        table = np.full((len(labels), len(labels)), np.nan)
        for row in gaps[gaps["model"] == model].itertuples():
            i, j = labels.index(row.first), labels.index(row.second)
            table[i, j], table[j, i] = row.difference, -row.difference
            star = "*" if row.p_adjusted < 0.05 else ""
            for y, x, value in ((i, j, row.difference), (j, i, -row.difference)):
                if not math.isfinite(value):
                    continue
                strong = abs(value) > 0.6 * widest
                axis.text(
                    x,
                    y,
                    f"{signed(value)}{star}",
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color="white" if strong else "black",
                    fontweight="bold" if star else "normal",
                )
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
        figure.colorbar(image, ax=list(axes.flat), shrink=0.7, label="row minus column (points on a scale of 0 to 10)")
    caption(figure, title, note)
    return figure


def _frame(x: int, y: int) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, fill=False, edgecolor="black", linewidth=1.1)


def by_base_figure(by_base: pd.DataFrame, gaps: pd.DataFrame, title: str, note: str) -> Figure:
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
        figure.colorbar(image, ax=list(axes.flat), shrink=0.7, label="points on a scale of 0 to 10")
    more = f" The first {MAX_BASES} are shown." if by_base["base"].nunique() > MAX_BASES else ""
    caption(figure, title, f"{note} *: differs between bases (p ≤ 0.05 after Holm correction).{more}")
    return figure


def wins_figure(wins: pd.DataFrame, title: str, note: str) -> Figure:
    """Win rates without ties, one panel per model. The thick interval is over scenarios, the thin one is Wilson's."""
    models = list(pd.unique(wins["model"]))
    longest = int(wins.groupby("model", sort=False).size().max())
    figure, axes = sheet(3.8 * len(models) + 1.0, 1.7 + LINE * longest, len(models), sharex=True)
    for axis, model in zip(axes.flat, models, strict=True):
        rows = wins[wins["model"] == model]
        tints = colours(list(rows["category"]))
        for y, row in enumerate(rows.itertuples()):
            axis.plot([row.low, row.high], [y, y], color=tints[row.category], linewidth=0.8)
        shades = [tints[category] for category in rows["category"]]
        names = [f"{row.identity}  (n={row.n})" for row in rows.itertuples()]
        dots(axis, names, rows["rate"], rows["cluster_low"], rows["cluster_high"], shades)
        axis.axvline(0.5, color="#999999", linewidth=0.8, zorder=0)
        axis.set(xlim=(-0.02, 1.02), xlabel="win rate (without ties)")
        axis.set_title(plain_text(str(model)) if len(models) > 1 else "", fontsize=9)
        axis.tick_params(labelsize=8)
    caption(figure, title, note)
    return figure


def agreement_figure(agreement: pd.DataFrame, title: str, note: str) -> Figure:
    """Agreement by round: scores and preferences, one line per metric."""
    panels = list(agreement[["model", "phase"]].drop_duplicates().itertuples(index=False))
    figure, axes = sheet(3.2 * len(panels) + 0.8, 3.6, len(panels), sharey=True)
    for axis, (model, phase) in zip(axes.flat, panels, strict=True):
        rows = agreement[(agreement["model"] == model) & (agreement["phase"] == phase)]
        for nth, (metric, part) in enumerate(rows.groupby("metric", sort=False)):
            place = part["round"] + (nth - 2) * 0.06
            tint = PALETTE[nth % len(PALETTE)]
            axis.plot(place, part["value"], "o-", color=tint, markersize=4, label=plain_text(str(metric)))
            axis.vlines(place, part["low"], part["high"], color=tint, linewidth=1.2)
        rounds = sorted(set(rows["round"]))
        axis.set_xticks(rounds)
        axis.set(xlabel="round", xlim=(min(rounds) - 0.4, max(rounds) + 0.4))
        axis.set_title(
            plain_text(f"phase {phase}" + (f", {model}" if agreement["model"].nunique() > 1 else "")), fontsize=9
        )
        axis.axhline(0, color="#999999", linewidth=0.8, zorder=0)
        tidy(axis, "y")
    axes.flat[0].set_ylabel("agreement (α, κ)")
    legend_beside(figure, axes.flat)
    caption(figure, title, note)
    return figure
