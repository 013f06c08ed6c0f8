"""A forest plot in the terminal: one line per estimate, its interval as a bar, in Unicode or plain ASCII."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from parley.analysis.say import Forest, in_numbers
from parley.analysis.stats.results import Line
from parley.base.text import plural, visible

BAR_WIDTHS = 12, 44
"""The narrowest and the widest plot, in characters."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters of a plot."""

    bar: str
    point: str
    reference: str
    cut: str


BLOCKS = Marks(bar="━", point="█", reference="│", cut="…")
ASCII = Marks(bar="-", point="#", reference="|", cut="~")


def marks_for(console: Console) -> Marks:
    """Unicode marks in a terminal that supports them, else ASCII."""
    plain = console.no_color or not console.is_terminal or not (console.encoding or "").lower().startswith("utf")
    return ASCII if plain else BLOCKS


def forest_lines(forest: Forest, width: int, marks: Marks, rows: int) -> list[Text]:
    """The plot: a line per estimate, and the axis.

    Args:
        forest: The plot.
        width: Width of the terminal, in characters.
        marks: Its characters.
        rows: Maximum number of estimates, primary ones first; if there are more, significant ones, the largest first.
    """
    far = forest.reference is not None and len(forest.lines) > rows

    def place(line: Line) -> tuple[bool, bool, float]:
        distance = abs(line.estimate - (forest.reference or 0)) if far and math.isfinite(line.estimate) else 0.0
        return line.secondary, far and not line.shown, -distance

    chosen = sorted(forest.lines, key=place)[:rows]
    narrowest, widest = BAR_WIDTHS
    numbers = [visible(in_numbers(line, forest)) for line in chosen]
    after = max(map(len, numbers))
    labels = [_cut(visible(label), marks, width - narrowest - after - 5) for label in _labels(chosen)]
    before = max(map(len, labels))
    axis = Axis.around(chosen, forest.reference, max(narrowest, min(widest, width - before - after - 5)))
    lines = [
        Text.assemble(f"  {label:<{before}} ", (axis.bar(line, marks), _style(line)), f"  {number}")
        for line, label, number in zip(chosen, labels, numbers, strict=True)
    ]
    left_out = len(forest.lines) - len(chosen)
    more = f"; {plural(left_out, 'more line')} on the page" if left_out else ""
    # The marks are explained where there is room: a reader may never have seen such a plot.
    none = "" if forest.reference is None else f"{marks.reference} no difference, "
    together = "simultaneous " if any(line.simultaneous for line in chosen) else ""
    interval = f", with {together}95% intervals" if len(chosen) > 1 else ", with its 95% interval"
    legend = f"{none}{marks.point} {forest.axis}{interval if any(line.bounded for line in chosen) else ''}"
    room = max(narrowest, width - 2 - len(more))
    name = legend if len(legend) <= room else _cut(visible(forest.axis), marks, room)
    return [*lines, Text(f"  {visible(name)}{more}", style="dim")]


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of a plot's values, and its width in characters."""

    low: float
    high: float
    reference: float | None
    width: int

    @classmethod
    def around(cls, lines: Sequence[Line], reference: float | None, width: int) -> Axis:
        """An axis with room for all intervals and for the value of "no difference"."""
        values = [end for line in lines for end in (line.estimate, *line.interval) if math.isfinite(end)]
        values += [] if reference is None else [reference]
        low, high = min(values), max(values)
        return cls(low, high if high > low else low + 1.0, reference, width)

    def place(self, value: float) -> int:
        """The column of a value."""
        return round((value - self.low) / (self.high - self.low) * (self.width - 1))

    def bar(self, line: Line, marks: Marks) -> str:
        """An estimate with its interval, if any."""
        cells = [" "] * self.width
        if line.bounded:
            low, high = map(self.place, line.interval)
            for column in range(low, high + 1):
                cells[column] = marks.bar
        if self.reference is not None:
            cells[self.place(self.reference)] = marks.reference
        cells[self.place(line.estimate)] = marks.point
        return "".join(cells)


def _labels(lines: Sequence[Line]) -> list[str]:
    """Names of lines; equal ones get the differing parts of their headings."""
    if len({line.label for line in lines}) == len(lines):
        return [line.label for line in lines]
    same = set.intersection(*(set(line.group) for line in lines))
    shown = [" · ".join(part for part in line.group if part not in same) for line in lines]
    return [f"{heading}: {line.label}" if heading else line.label for heading, line in zip(shown, lines, strict=True)]


def _cut(text: str, marks: Marks, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + marks.cut


def _style(line: Line) -> str:
    """Green for a significant effect, dim for secondary lines."""
    if line.secondary:
        return "dim"
    return "bold green" if line.shown else "cyan"
