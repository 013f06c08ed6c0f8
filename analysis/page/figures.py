"""Shared by all figures: a palette for colour-blind readers (Okabe and Ito's), dots with intervals, a caption, and
files in three formats."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:  # matplotlib is loaded by what draws: most reports are read in a terminal
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FORMATS = ("svg", "pdf", "png")
LINE = 0.24
"""Inches per line of labels."""


def colours(categories: Sequence[str]) -> dict[str, str]:
    """A colour of the palette for each category, in order of appearance."""
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(dict.fromkeys(categories))}


def sheet(
    width: float, height: float, columns: int = 1, rows: int = 1, *, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, np.ndarray]:
    """A figure with its axes. It is not registered with pyplot, so that it is freed when nothing refers to it.

    Args:
        width: Inches.
        height: Inches.
        columns: Columns of axes.
        rows: Rows of axes.
        sharex: Axes share their x scale.
        sharey: Axes share their y scale.
    """
    from matplotlib.figure import Figure

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
    """One dot per line with its interval; a value without an interval is drawn hollow.

    An interval that is not bounded is drawn as an arrow to the edge.

    Args:
        axis: Where to draw.
        labels: One per line, from the top.
        values: Where the dots are.
        low: Lower ends of the intervals, NaN where there is none, -inf where it is not bounded.
        high: Upper ends of the intervals, inf where it is not bounded.
        tints: Colours of the dots.
        shift: Vertical offset in lines, for several series on the same lines.
        marker: Matplotlib's marker.
        label: Name of the series in the legend.
    """
    for y, (value, lower, upper, tint) in enumerate(zip(values, low, high, tints, strict=True)):
        bounded = not (np.isnan(value) or np.isnan(lower) or np.isnan(upper))
        if bounded:
            _interval(axis, y + shift, (value, lower, upper), tint)
        axis.plot(
            value,
            y + shift,
            marker,
            color=tint,
            markersize=5,
            markerfacecolor=tint if bounded else "white",
            label=label if y == 0 else None,
        )
    axis.set_yticks(range(len(labels)), [plain_text(label) for label in labels])
    axis.set_ylim(len(labels) - 0.4, -0.6)
    tidy(axis)


def _interval(axis: Axes, y: float, ends: tuple[float, float, float], tint: str) -> None:
    """A line from the lower to the upper end, as an arrow to the edge where an end is infinite."""
    value, *limits = ends
    finite = [end if np.isfinite(end) else value for end in limits]
    axis.plot(finite, [y, y], color=tint, linewidth=1.6)
    for end, edge in zip(limits, (0.0, 1.0), strict=True):
        if not np.isfinite(end):
            arrow = axis.annotate(
                "",
                xy=(edge, y),
                xycoords=axis.get_yaxis_transform(),
                xytext=(value, y),
                textcoords="data",
                arrowprops={"arrowstyle": "->", "color": tint, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0},
            )
            arrow.set_in_layout(False)


def tidy(axis: Axes, grid: str = "x") -> None:
    """A light grid along one axis, and no frame at the top and right."""
    axis.grid(axis=grid, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def plain_text(text: str) -> str:
    """The text with dollar signs escaped, which Matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


def caption(figure: Figure, title: str, note: str) -> None:
    """Set the title of a figure and the small print below it."""
    figure.suptitle(plain_text(title), fontsize=11)
    width = int(15 * figure.get_figwidth())  # characters of the small print per line
    small_print = "\n".join(textwrap.wrap(plain_text(note), width))
    figure.supxlabel(small_print, fontsize=7, color="#444444", x=0.01, ha="left")


def legend_beside(figure: Figure, axes: Iterable[Axes], title: str | None = None) -> None:
    """One legend for all axes, outside of them and below the title's line, so that it covers neither.

    Args:
        figure: The figure.
        axes: The axes whose labelled marks it explains.
        title: Its title.
    """
    handles = {label: mark for axis in axes for mark, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if handles:
        place: dict[str, Any] = {"loc": "outside right center", "fontsize": 7, "title_fontsize": 7, "frameon": False}
        figure.legend(list(handles.values()), list(handles), title=title, **place)


def save(figure: Figure, path: Path, formats: Sequence[str] = FORMATS, stamp: str = "") -> list[Path]:
    """Write a figure in several formats. The same figure always gives the same bytes.

    Args:
        figure: What to write.
        path: Where; the suffix is replaced by the format's.
        formats: File types that Matplotlib can write.
        stamp: A word in the corner that must not be lost when the figure is used elsewhere, such as "SIMULATED".

    Returns:
        The paths that were written, in the order of `formats`.
    """
    _lay_out(figure, stamp)
    paths = []
    for kind in formats:
        target = path.with_suffix(f".{kind}")
        target.write_bytes(_drawn(figure, kind))
        paths.append(target)
    return paths


def as_svg(figure: Figure, stamp: str = "") -> bytes:
    """A figure as an SVG file in memory; `stamp` as in `save`."""
    _lay_out(figure, stamp)
    return _drawn(figure, "svg")


def _lay_out(figure: Figure, stamp: str) -> None:
    """Lay the figure out once, not once per format."""
    if figure.get_layout_engine() is not None:
        with _same_ids():
            figure.draw_without_rendering()
        figure.set_layout_engine("none")
    if stamp:
        edge = 0.03 / figure.get_figheight()
        y, side = (edge, "bottom") if figure.legends else (1 - edge, "top")  # a long title reaches above the legend
        figure.text(0.995, y, stamp, ha="right", va=side, fontsize=8, weight="bold", color=PALETTE[1])


def _same_ids() -> AbstractContextManager[None]:
    """Ids of an SVG file's elements that are the same each time it is written."""
    import matplotlib as mpl

    return mpl.rc_context({"svg.hashsalt": "parley"})


def _drawn(figure: Figure, kind: str) -> bytes:
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    picture = io.BytesIO()
    with _same_ids():
        figure.savefig(picture, format=kind, dpi=150, metadata=dates)
    data = picture.getvalue()
    if kind == "svg":  # Matplotlib repeats every text in a comment, and untrusted text may end a comment
        data = re.sub(rb"<!--.*?-->\n?", b"", data, flags=re.DOTALL)
    return data
