"""A forest plot drawn with Matplotlib, at a journal's column width: labels at the left, numbers at the right."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from parley.analysis.page.figures import PALETTE, plain_text
from parley.analysis.say import Forest, in_numbers
from parley.analysis.stats.results import Line
from parley.base.text import p_text, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Width = Literal["single", "double"]
INCHES: dict[Width, float] = {"single": 3.5, "double": 7.2}
"""One column and two columns of a journal's page."""
FONT = 7.0
CHARACTER = 0.56 * FONT / 72
"""Inches that a character takes on average."""
LINE = 1.45 * FONT / 72
"""Inches per line of text."""
STAMP = 0.9
"""Inches beside the title, for a word such as "SIMULATED"."""
MAX_LINES = 60
"""Lines of a plot; the table has all of them."""
MARGIN = 4.0
"""Points at the left and right edge."""
INK, SOFT = "#222222", "#666666"


class _Row(NamedTuple):
    top: float
    height: float
    text: str
    line: Line | None


def draw_forest(forest: Forest, width: Width = "double") -> Figure:
    """The plot: one dot per line with its interval (hollow without one), the reference line, and the numbers.

    Args:
        forest: What to draw.
        width: A journal's single or double column.
    """
    from matplotlib.figure import Figure

    inches = INCHES[width]
    shown = forest.lines[:MAX_LINES]
    values = [in_numbers(line, forest) for line in shown]
    p_values = [
        f"p {p_text(line.p_adjusted)}" if width == "double" and not math.isnan(line.p_adjusted) else ""
        for line in shown
    ]
    right = sum(CHARACTER * max(map(len, column)) + 0.2 for column in (values, p_values) if any(column))
    indent = 7.0 if any(line.group for line in shown) else 0.0
    longest = max(len(line.label) for line in shown)
    left = min(CHARACTER * longest + 0.2 + indent / 72, (0.36 if width == "double" else 0.33) * inches)
    rows = _rows(forest, int((left - 0.12 - indent / 72) / CHARACTER))
    content = rows[-1].top + rows[-1].height
    title = textwrap.wrap(forest.question, int((inches - STAMP) / CHARACTER / 1.25))
    more = len(forest.lines) - MAX_LINES
    note = f"{forest.note} {plural(more, 'more line')} in the table." if more > 0 else forest.note
    small = textwrap.wrap(plain_text(note), int(1.12 * inches / CHARACTER))
    above, below = LINE * (1.4 * len(title) + 0.4), LINE * (4.2 + 0.92 * len(small))
    height = above + content + below
    figure = Figure(figsize=(inches, height))
    axis = figure.add_axes((left / inches, below / height, 1 - (left + right) / inches, content / height))
    axis.set_ylim(content, 0)
    _limits(axis, forest)
    if forest.reference is not None:
        axis.axvline(forest.reference, color=SOFT, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
    numbers = zip(values, p_values, strict=True)
    for row in rows:
        _draw_row(axis, row, numbers, indent)
    _scale(axis, forest)
    figure.text(0.06 / inches, 1 - 0.3 * LINE / height, "\n".join(map(plain_text, title)), fontsize=FONT + 1.5,
                weight="bold", color=INK, va="top")  # fmt: skip
    figure.text(0.06 / inches, 0.5 * LINE / height, "\n".join(small), fontsize=FONT - 1, color=SOFT, va="bottom")
    return figure


def _rows(forest: Forest, characters: int) -> list[_Row]:
    """Headings and lines from the top, in inches."""
    rows: list[_Row] = []
    top, heading = 0.0, ""
    for line in forest.lines[:MAX_LINES]:
        if line.heading != heading:
            heading = line.heading
            top += 0.35 * LINE if rows else 0.0
            rows.append(_Row(top, LINE, heading, None))
            top += LINE
        label = textwrap.wrap(line.label, characters) or [""]
        height = LINE * (len(label) + 0.25)
        rows.append(_Row(top, height, "\n".join(label), line))
        top += height
    return rows


def _draw_row(axis: Axes, row: _Row, numbers: Iterator[tuple[str, str]], indent: float) -> None:
    middle, line = row.top + row.height / 2, row.line
    beside: dict[str, Any] = {"va": "center", "fontsize": FONT, "annotation_clip": False, "color": INK}
    labelled = {"xycoords": ("figure points", "data"), "ha": "left", "linespacing": 1.1, **beside}
    if line is None:
        axis.annotate(plain_text(row.text), (MARGIN, middle), weight="bold", **labelled)
        return
    axis.annotate(plain_text(row.text), (MARGIN + indent, middle), **labelled)
    bounded = line.bounded
    if bounded:
        axis.plot(line.interval, [middle] * 2, color=PALETTE[0], linewidth=1.4, solid_capstyle="butt", zorder=2)
    if "wilson_low" in line.also:
        ends = [line.also["wilson_low"], line.also["wilson_high"]]
        axis.plot(ends, [middle + 0.3 * LINE] * 2, color=SOFT, linewidth=0.6, zorder=2)
    face = PALETTE[0] if bounded else "white"
    axis.plot(line.estimate, middle, "o", color=PALETTE[0], markerfacecolor=face, markersize=4.2, zorder=3)
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", **beside}
    value, p = next(numbers)
    axis.annotate(value, (1, middle), xytext=(6, 0), ha="left", **place)
    if p:
        edge = axis.figure.bbox.width * 72 / axis.figure.dpi - MARGIN
        axis.annotate(p, (edge, middle), xycoords=("figure points", "data"), ha="right", **beside)


def _limits(axis: Axes, forest: Forest) -> None:
    """All dots, intervals and the reference; an empty axis is never drawn."""
    shown = forest.lines[:MAX_LINES]
    ends = [line.also[name] for line in shown for name in ("wilson_low", "wilson_high") if name in line.also]
    ends += [end for line in shown for end in (line.estimate, *line.interval) if math.isfinite(end)]
    ends += [forest.reference] if forest.reference is not None else []
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or (0.05 if forest.scale == "share" else 0.5)
    axis.set_xlim(low - room, high + room)


def _scale(axis: Axes, forest: Forest) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_yticks([])
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(SOFT)
    axis.tick_params(axis="x", labelsize=FONT - 0.5, colors=INK, length=2.5, width=0.6)
    axis.xaxis.set_major_locator(MaxNLocator(5 if axis.get_position().width > 0.4 else 3, steps=[1, 2, 2.5, 5, 10]))
    if forest.scale == "share":
        axis.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    axis.set_axisbelow(True)
    axis.grid(axis="x", color="#e6e6e6", linewidth=0.5)
    axis.set_xlabel(
        "\n".join(textwrap.wrap(plain_text(forest.axis), 72 if axis.get_position().width > 0.4 else 28)),
        fontsize=FONT,
        color=INK,
        labelpad=2,
    )
