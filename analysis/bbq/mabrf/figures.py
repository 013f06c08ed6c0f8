"""MABRF's figures: the change in relevancy by model, with and without search (the paper's 4); bias by passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import (
    LINE,
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
    """Left: the distribution of changes in relevancy; right: the mean change of every system with its interval."""
    tall = max(3.4, 1.8 + 2 * LINE * len(means))
    figure, axes = sheet(10.5, tall, 2)
    spread, mean = axes[0]
    tints = colours(list(means["system"]))
    known = items[items["relevancy_change"].notna()]
    changes = known["relevancy_change"].round()
    for system, tint in tints.items():
        changes_of_system = changes[known["system"] == system]
        if len(changes_of_system):
            every = np.arange(changes.min(), changes.max() + 1)
            share = 100 * changes_of_system.value_counts(normalize=True).reindex(every, fill_value=0)
            spread.plot(every, share.to_numpy(), "o-", color=tint, markersize=4, label=plain_text(system))
    spread.set_xlabel("change in relevancy (final minus first)")
    spread.set_ylabel("% of items")
    tidy(spread, "both")
    if len(known):
        spread.set_xlim(changes.min() - 1, changes.max() + 1)
        spread.locator_params(axis="x", integer=True)
        bounded(spread, "y", whole=True)
        legend_beside(figure, [spread])
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
