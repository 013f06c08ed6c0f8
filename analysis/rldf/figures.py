"""RLDF's figures: bias by round and role, one setting varied, and biases admitted by framing."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import PALETTE, caption, dots, legend_beside, plain_text, sheet, tidy
from parley.analysis.rldf.forests import JUDGES
from parley.analysis.rldf.framing import LABELS

MARKERS = "os^Dv"


def rounds_figure(rounds: pd.DataFrame, title: str, note: str, threshold: float = 3.0) -> Figure:
    """Mean bias by round: all roles and the blind referee on the left, each role on the right, with 95% intervals over
    topics."""
    figure, axes = sheet(8.6, 3.6, 2, sharey=True)
    left, right = axes.flat
    judges = list(dict.fromkeys(rounds["judge"]))
    for n, judge in enumerate(judges):
        rows = rounds[(rounds["role"] == "all") & (rounds["judge"] == judge)]
        _line(left, rows, n, JUDGES[judge], 0.06 * (n - (len(judges) - 1) / 2))
    if len(judges) == 1:
        note += " No blind referee scored these debates."
    roles = list(dict.fromkeys(rounds.loc[rounds["role"] != "all", "role"]))
    for n, role in enumerate(roles):
        _line(right, rounds[rounds["role"] == role], n + len(judges), str(role), 0.06 * (n - (len(roles) - 1) / 2))
    for axis, heading in ((left, "all roles"), (right, "by role")):
        axis.axhline(threshold, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
        axis.set(xlabel="round", ylim=(-0.2, 10.2), xticks=sorted(set(rounds["round"])))
        axis.set_title(heading, fontsize=9)
        tidy(axis, "both")
    left.set_ylabel("referee's bias score (0 to 10)")
    legend_beside(figure, (left, right))
    caption(figure, title, f"{note} Dotted: the threshold ({threshold:g}) between low and high bias.")
    return figure


def ablation_figure(setting: str, table: pd.DataFrame, title: str, note: str) -> Figure:
    """Bias of the last round by the setting that was varied."""
    figure, axes = sheet(5.4, 1.5 + 0.3 * len(table))
    axis = axes.flat[0]
    names = [f"{setting} {value}" for value in table[setting]]
    dots(axis, names, table["estimate"], table["low"], table["high"], [PALETTE[0]] * len(table))
    axis.set(xlabel="bias score of the last round (0 to 10)")
    note = f"On {table['shared_topics'].iloc[0]} topics and the roles that all runs have. {note}"
    caption(figure, title, note)
    return figure


def framing_figure(frames: pd.DataFrame, title: str, note: str) -> Figure:
    """Biases admitted by framing (the paper's figure 1)."""
    counted = frames[frames["metric"] == "biases"]
    figure, axes = sheet(5.4, 2.6)
    axis = axes.flat[0]
    names = [LABELS[frame] for frame in counted["frame"]]
    dots(axis, names, counted["estimate"], counted["low"], counted["high"], [PALETTE[0]] * len(counted))
    axis.set(xlabel="biases admitted per answer")
    caption(figure, title, note)
    return figure


def _line(axis: Axes, rows: pd.DataFrame, nth: int, label: str, shift: float) -> None:
    tint, x = PALETTE[nth % len(PALETTE)], rows["round"] + shift
    axis.vlines(x, rows["low"], rows["high"], color=tint, linewidth=1.4)
    marker = MARKERS[(nth - 1) % len(MARKERS)]
    axis.plot(x, rows["estimate"], marker + "-", color=tint, markersize=5, linewidth=1.2, label=plain_text(label))
