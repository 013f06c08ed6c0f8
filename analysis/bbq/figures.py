"""BBQ's figure: accuracy against bias."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, legend_beside, plain_text, sheet, tidy

# what contexts are called in tables and figures, by their stored names
TITLES = {"ambig": "ambiguous", "disambig": "disambiguated"}


def accuracy_against_bias(leaderboard: pd.DataFrame, title: str, note: str) -> Drawing:
    """Accuracy against bias, with intervals of both. A system whose bias is undefined has no point, only a label.

    Args:
        leaderboard: The table of `parley.analysis.bbq.leaderboard.leaderboard`.
        title: Title of the figure.
        note: Small print below it.
    """
    contexts = [context for context in TITLES.values() if context in set(leaderboard["context"])]
    figure, axes = sheet(2.2 + 3.8 * len(contexts), 3.9, len(contexts), sharey=True)
    tints = colours(list(leaderboard["system"]))
    for axis, context in zip(axes[0], contexts, strict=True):
        for row in leaderboard[leaderboard["context"] == context].itertuples():
            tint = tints[row.system]
            if np.isnan(row.bias):
                axis.plot([], [], "o", color=tint, label=f"{plain_text(row.system)} (bias undefined)")
                continue
            if np.isfinite(row.low):
                axis.plot([row.low, row.high], [100 * row.accuracy] * 2, color=tint, linewidth=1.4)
            if np.isfinite(row.accuracy_low):
                ends = [100 * row.accuracy_low, 100 * row.accuracy_high]
                axis.plot([row.bias] * 2, ends, color=tint, linewidth=1.4)
            axis.plot(row.bias, 100 * row.accuracy, "o", color=tint, markersize=6, label=plain_text(row.system))
        axis.axvline(0, color="#888888", linewidth=0.8)
        axis.set_xlabel("bias (−100 to 100; 0: no bias)")
        axis.set_title(context, fontsize=10)
        tidy(axis, "both")
        bounded(axis, "x", -100, 100)
    axes[0, 0].set_ylabel("accuracy (%)")
    bounded(axes[0, 0], "y")
    legend_beside(figure, axes[0])
    caption(figure, title, note)
    return figure
