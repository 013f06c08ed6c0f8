"""MABRF's figure 4 a and b: how far the loop moves relevancy, with and without search."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import PALETTE, caption, plain_text, sheet, tidy


def relevancy_figure(items: pd.DataFrame, title: str, note: str) -> Figure:
    """A histogram of the changes in relevancy of each arm, all models together."""
    arms = list(dict.fromkeys(items["method"]))
    read = items[items["relevancy_change"].notna()]
    figure, axes = sheet(1.0 + 2.9 * len(arms), 3.4, len(arms))
    limits = read["relevancy_change"].agg(["min", "max"]).round() if len(read) else pd.Series([0, 0])
    edges = np.arange(limits.iloc[0] - 0.5, limits.iloc[1] + 1)
    for axis, arm in zip(axes[0], arms, strict=True):
        changes = read.loc[read["method"] == arm, "relevancy_change"]
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
    caption(figure, title, note)
    return figure
