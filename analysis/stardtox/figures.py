"""STARDTOX's figures: toxicity against quality."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, legend_beside, plain_text, sheet, tidy


def toxicity_against_quality(table: pd.DataFrame, qualities: list[str], title: str, note: str) -> Drawing:
    """One point per system and iteration, one panel per set; the iterations of a system are joined.

    Args:
        table: One row per set, system and iteration, from `scores.wide`.
        qualities: The columns whose mean is the quality.
        title: Above the figure.
        note: The small print below it.
    """
    sets = list(dict.fromkeys(table["set"]))
    figure, axes = sheet(2.4 + 3.7 * len(sets), 3.9, len(sets), sharey=True)
    tints = colours(list(table["system"]))
    for axis, name in zip(axes[0], sets, strict=True):
        for system, steps in table[table["set"] == name].groupby("system", sort=False):
            quality = steps[qualities].mean(axis=1, skipna=False)
            several = len(steps) > 1
            mark, size = (
                ("o-", 5) if several else ("s", 9)
            )  # larger, as a baseline often lies under a loop's first draft
            label = plain_text(str(system))
            reach = np.abs(steps[["low", "high"]].to_numpy(dtype=float).T - steps["toxicity"].to_numpy(dtype=float))
            axis.errorbar(steps["toxicity"], quality, xerr=reach, fmt="none", color=tints[system], alpha=0.35, lw=1)
            axis.plot(steps["toxicity"], quality, mark, color=tints[system], markersize=size, label=label)
            if several:
                points: dict[tuple[float, float], list[str]] = {}
                for k, x, y in zip(steps["iteration"], steps["toxicity"], quality, strict=True):
                    if np.isfinite(x) and np.isfinite(y):
                        points.setdefault((x, y), []).append(str(k))
                for point, ks in points.items():
                    axis.annotate(", ".join(ks), point, textcoords="offset points", xytext=(4, 3), fontsize=7)
        axis.set_xlabel("toxicity (%; lower is better)")
        axis.set_title(plain_text(str(name)), fontsize=10)
        tidy(axis, "both")
        bounded(axis, "x")
    bounded(axes[0, 0], "y")
    axes[0, 0].set_ylabel(f"mean of {', '.join(qualities)}")
    legend_beside(figure, axes[0])
    caption(figure, title, note)
    return figure
