"""What all figures share: a palette that people with colour-blindness can tell apart too (Okabe and Ito's), dots with
intervals, a caption, and files in three formats."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FORMATS = ("svg", "pdf", "png")
LINE = 0.24
"""Inches a line of labels takes."""


def colours(categories: Sequence[str]) -> dict[str, str]:
    return {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(dict.fromkeys(categories))}


def sheet(
    width: float, height: float, columns: int = 1, rows: int = 1, *, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, np.ndarray]:
    """A figure and its axes, outside pyplot's memory: whoever holds it may let it go."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)


def dots(
    axis: Axes,
    labels: Sequence[str],
    values: pd.Series,
    low: pd.Series,
    high: pd.Series,
    tints: Sequence[str],
    *,
    shift: float = 0.0,
    marker: str = "o",
    label: str | None = None,
) -> None:
    """One dot a line with its interval; a value without an interval is drawn hollow."""
    for y, (value, lower, upper, tint) in enumerate(zip(values, low, high, tints, strict=True)):
        known = bool(np.isfinite(lower) and np.isfinite(upper))
        if known:
            axis.plot([lower, upper], [y + shift, y + shift], color=tint, linewidth=1.6)
        axis.plot(
            value,
            y + shift,
            marker,
            color=tint,
            markersize=5,
            markerfacecolor=tint if known else "white",
            label=label if y == 0 else None,
        )
    axis.set_yticks(range(len(labels)), [plain_text(label) for label in labels])
    axis.set_ylim(len(labels) - 0.4, -0.6)
    tidy(axis)


def tidy(axis: Axes, grid: str = "x") -> None:
    axis.grid(axis=grid, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def bounded(
    axis: Axes, along: Literal["x", "y"], low: float = 0.0, high: float = 100.0, *, whole: bool = False
) -> None:
    """Limits of a scale that ends at both sides, `whole` or about what is drawn: never much beyond an end, where no
    tick stands, and never a hair's breadth (all values equal) made wide."""
    first, last = (low, high) if whole else axis.get_xlim() if along == "x" else axis.get_ylim()
    spare = 0.03 * (last - first) if whole else max(0.0, 0.02 * (high - low) - (last - first)) / 2
    room = 0.03 * (last - first + 2 * spare)
    limits = max(first - spare, low - room), min(last + spare, high + room)
    axis.set(**{f"{along}lim": limits})
    ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(*limits)
    ruler = axis.xaxis if along == "x" else axis.yaxis
    ruler.set_ticks([tick for tick in ticks if max(low, limits[0]) <= tick <= min(high, limits[1])])


def plain_text(text: str) -> str:
    """A label as it stands: dollar signs are not mathematics."""
    return text.replace("$", r"\$")


def caption(figure: Figure, title: str, note: str) -> None:
    figure.suptitle(plain_text(title), fontsize=11)
    wide = int(15 * figure.get_figwidth())
    small_print = "\n".join(textwrap.wrap(plain_text(note), wide))
    figure.supxlabel(small_print, fontsize=7, color="#444444", x=0.01, ha="left")


def save(figure: Figure, path: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The figure beside `path`, once a format. Nothing in the files changes from one time to the next."""
    made = []
    with mpl.rc_context({"svg.hashsalt": "parley"}):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, not once a format
    for kind in formats:
        target = path.with_suffix(f".{kind}")
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        picture = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "parley"}):
            figure.savefig(picture, format=kind, dpi=150, metadata=stamp)
        data = picture.getvalue()
        if kind == "svg":  # every text stands there as a comment too, and foreign text may end a comment
            data = re.sub(rb"<!--.*?-->\n?", b"", data, flags=re.DOTALL)
        target.write_bytes(data)
        made.append(target)
    return made
