"""RLDF's figures, as files: bias by round and role, one setting varied, and biases admitted by framing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import PALETTE
from analysis.framing import SAID

MARKS = "os^Dv"


def rldf_figure(rounds: pd.DataFrame, title: str, note: str, path: Path, threshold: float = 3.0) -> Path:
    """Mean bias by round: everyone on the left, each role on the right, with 95% intervals over topics."""
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    everyone = rounds[rounds["role"] == "all"]
    _line(left, everyone, PALETTE[0], MARKS[0], "all roles", 0.0)
    roles = list(dict.fromkeys(rounds.loc[rounds["role"] != "all", "role"]))
    for n, role in enumerate(roles):
        shift = 0.06 * (n - (len(roles) - 1) / 2)
        mark = MARKS[n % len(MARKS)]
        _line(right, rounds[rounds["role"] == role], PALETTE[(n + 1) % len(PALETTE)], mark, str(role), shift)
    for axis, heading in ((left, "Everyone"), (right, "By role")):
        axis.axhline(threshold, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
        axis.set(xlabel="round", title=heading, ylim=(-0.2, 10.2), xticks=sorted(set(rounds["round"])))
        _plain(axis)
    left.set_ylabel("referee's bias score, 0 to 10")
    right.legend(frameon=False, fontsize=8)
    note = f"{note} Dotted: the threshold ({threshold:g}) between low and high bias."
    return _save(figure, title, note, path, 8.6)


def ablation_figure(setting: str, table: pd.DataFrame, title: str, note: str, path: Path) -> Path:
    """Bias of the last round by the setting that was varied."""
    figure = Figure(figsize=(4.8, 3.4), layout="constrained")
    axis = figure.subplots()
    places = range(len(table))
    axis.vlines(places, table["low"], table["high"], color=PALETTE[0], linewidth=1.6)
    axis.plot(places, table["estimate"], "o", color=PALETTE[0], markersize=5)
    axis.set_xticks(list(places), [str(value) for value in table[setting]])
    axis.set(xlabel=setting, ylabel="bias score of the last round", xlim=(-0.6, len(table) - 0.4), ylim=(-0.2, 10.2))
    _plain(axis)
    return _save(figure, title, note, path, 4.8)


def framing_figure(frames: pd.DataFrame, title: str, note: str, path: Path) -> Path:
    """Biases admitted by framing (the paper's figure 1)."""
    counted = frames[frames["metric"] == "biases"]
    figure = Figure(figsize=(5.4, 3.2), layout="constrained")
    axis = figure.subplots()
    places = range(len(counted))
    axis.hlines(places, counted["low"], counted["high"], color=PALETTE[0], linewidth=1.6)
    axis.plot(counted["estimate"], places, "o", color=PALETTE[0], markersize=5)
    axis.set_yticks(list(places), [SAID[frame] for frame in counted["frame"]])
    axis.set(xlabel="biases admitted in an answer", ylim=(len(counted) - 0.4, -0.6))
    axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
    _plain(axis)
    return _save(figure, title, note, path, 5.4)


def _line(axis: Axes, rows: pd.DataFrame, colour: str, mark: str, label: str, shift: float) -> None:
    at = rows["round"] + shift
    axis.vlines(at, rows["low"], rows["high"], color=colour, linewidth=1.4)
    axis.plot(at, rows["estimate"], mark + "-", color=colour, markersize=5, linewidth=1.2, label=label)


def _plain(axis: Axes) -> None:
    axis.grid(axis="both", color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _save(figure: Figure, title: str, note: str, path: Path, width: float) -> Path:
    figure.suptitle(title, fontsize=11, parse_math=False)
    small_print = "\n".join(textwrap.wrap(note, int(15 * width)))
    figure.supxlabel(small_print, fontsize=7, color="#444444", x=0.01, ha="left", parse_math=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
