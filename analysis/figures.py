"""Figures, as files. Colours are told apart by people with colour-blindness too (Okabe and Ito's palette)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def malibu_figure(scores: pd.DataFrame, wins: pd.DataFrame, title: str, note: str, path: Path) -> Path:
    """Mean scores (phase 1) and win rates (phase 2) by identity, with 95% intervals."""
    overall = scores[scores["metric"] == "all"] if len(scores) else scores
    panels = [rows for rows in (overall, wins) if len(rows)]
    rows = max((len(panel) for panel in panels), default=1)
    size = (4.6 * max(len(panels), 1), 1.9 + 0.3 * rows)
    figure, axes = plt.subplots(1, max(len(panels), 1), figsize=size, squeeze=False, layout="constrained")
    places = iter(axes[0])
    if len(overall):
        axis = next(places)
        _dots(axis, overall)
        low, high = axis.get_xlim()
        axis.set(xlabel="mean score, 0 to 10", title="Phase 1: alone", xlim=(max(low, -0.2), min(high, 10.2)))
    if len(wins):
        axis = next(places)
        _dots(axis, wins)
        axis.axvline(0.5, color="#999999", linewidth=0.8, zorder=0)
        axis.set(xlabel="win rate, ties left out", xlim=(-0.02, 1.02), title="Phase 2: in pairs")
    figure.suptitle(title, fontsize=11, parse_math=False)
    small_print = "\n".join(textwrap.wrap(note, int(15 * size[0])))
    figure.supxlabel(small_print, fontsize=7, color="#444444", x=0.01, ha="left", parse_math=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _dots(axis: Axes, rows: pd.DataFrame) -> None:
    categories = list(dict.fromkeys(rows["category"]))
    for y, row in enumerate(rows.itertuples()):
        colour = PALETTE[categories.index(row.category) % len(PALETTE)]
        axis.plot([row.low, row.high], [y, y], color=colour, linewidth=1.6)
        axis.plot(row.estimate, y, "o", color=colour, markersize=5)
    axis.set_yticks(range(len(rows)), list(rows["identity"]))
    axis.set_ylim(-0.6, len(rows) - 0.4)
    axis.invert_yaxis()
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
