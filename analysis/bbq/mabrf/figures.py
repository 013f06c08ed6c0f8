"""MABRF's figures: the change in relevancy by model, with and without search (the paper's 4); bias by passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import (
    LINE,
    PALETTE,
    bounded,
    caption,
    colours,
    dots,
    legend_beside,
    plain_text,
    sheet,
    tidy,
)


def relevancy_figure(items: pd.DataFrame, means: pd.DataFrame, title: str, note: str) -> Figure:
    """Left: a histogram of the changes in relevancy of each arm, all models together; right: each system's mean change
    with its interval."""
    arms = list(dict.fromkeys(items["method"]))
    known = items[items["relevancy_change"].notna()]
    figure, axes = sheet(5.0 + 2.9 * len(arms), max(3.4, 1.8 + 2 * LINE * len(means)), len(arms) + 1)
    *spreads, mean = axes[0]
    limits = known["relevancy_change"].agg(["min", "max"]).round() if len(known) else pd.Series([0, 0])
    edges = np.arange(limits.iloc[0] - 0.5, limits.iloc[1] + 1)
    for axis, arm in zip(spreads, arms, strict=True):
        changes = known.loc[known["method"] == arm, "relevancy_change"]
        axis.hist(changes, bins=edges, color=PALETTE[0], edgecolor="white", linewidth=0.6)
        if len(changes):
            axis.axvline(changes.mean(), color=PALETTE[1], linewidth=1.2, linestyle="--")
        axis.set_title(
            f"{plain_text(arm)}, mean {changes.mean():+.2f}" if len(changes) else plain_text(arm), fontsize=9
        )
        axis.set_xlabel("final minus first relevancy")
        axis.set_ylabel("items")
        axis.locator_params(axis="both", integer=True)
        tidy(axis, "y")
    tints = colours(list(means["system"]))
    of_systems = [tints[system] for system in means["system"]]
    dots(mean, list(means["system"]), means["estimate"], means["low"], means["high"], of_systems)
    mean.axvline(0, color="#888888", linewidth=0.8)
    mean.set_xlabel("mean change in relevancy")
    bounded(mean, "x", -9, 9)
    caption(figure, title, note)
    return figure


def passes_figure(table: pd.DataFrame, title: str, note: str) -> Figure:
    """Mean bias of the selected chain by passes: as scored in the loop (filled), and judged again (hollow)."""
    figure, axes = sheet(7.5, 4.2)
    axis = axes[0, 0]
    tints = colours(list(table["system"]))
    for nth, (system, tint) in enumerate(tints.items()):
        rows = table[table["system"] == system]
        shift = (nth - (len(tints) - 1) / 2) * 0.12
        sizes = 12 + 120 * rows["items"] / table["items"].max()
        axis.scatter(rows["passes"] + shift, rows["bias1"], s=sizes, color=tint, label=plain_text(system))
        axis.scatter(rows["passes"] + shift, rows["bias_again"], s=sizes, facecolors="none", edgecolors=tint)
    axis.set_xticks(np.arange(0, int(table["passes"].max()) + 1))
    axis.set_xlim(-0.5, int(table["passes"].max()) + 0.5)
    axis.set_ylim(0.5, 10.5)
    axis.set_xlabel("passes")
    axis.set_ylabel("bias (1 to 10)")
    tidy(axis, "both")
    legend_beside(figure, [axis])
    caption(figure, title, note)
    return figure
