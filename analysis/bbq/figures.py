"""BBQ's figure: accuracy against bias, one point a system, one panel a context."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, plain_text, sheet, tidy

TITLES = {"ambig": "ambiguous", "disambig": "disambiguated"}


def accuracy_against_bias(leaderboard: pd.DataFrame, title: str, note: str) -> Drawing:
    """`leaderboard` as `parley.analysis.bbq.leaderboard.leaderboard` gives it. A system without a bias has no point."""
    contexts = [context for context in TITLES if context in set(leaderboard["context"])]
    figure, axes = sheet(2.2 + 3.8 * len(contexts), 3.9, len(contexts), sharey=True)
    tints = colours(list(leaderboard["system"]))
    for axis, context in zip(axes[0], contexts, strict=True):
        here = leaderboard[leaderboard["context"] == context]
        for row in here.itertuples():
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
        axis.set_xlabel("bias (−100 to 100; 0 is none)")
        axis.set_title(TITLES[context], fontsize=10)
        tidy(axis, "both")
        bounded(axis, "x", -100, 100)
    axes[0, 0].set_ylabel("accuracy, %")
    bounded(axes[0, 0], "y")
    shown = {label: mark for axis in axes[0] for mark, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(list(shown.values()), list(shown), loc="outside right upper", fontsize=7, frameon=False)
    caption(figure, title, note)
    return figure
