"""A forest plot as data: one question, its estimates with intervals, and the units behind each. Reports draw it with
Matplotlib, the viewer as SVG with links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

from parley.analysis.stats.results import Line
from parley.base.text import signed

WIDE = 20.0
"""Values as large as this are shown with one decimal."""
Scale = Literal["points", "share"]


@dataclass(frozen=True, slots=True)
class Forest:
    """The lines that answer one question.

    Args:
        name: File name without suffix.
        question: The question in words; the plot's title.
        axis: The label of the axis, with the unit: "difference in score (points of 10)".
        lines: The lines, in order.
        reference: The value that means "no difference"; None without one.
        scale: "share" for values from 0 to 1 that are shown as percentages.
        table: Name of the report's table with the same numbers.
        note: How the intervals and p-values were made.
        constant: The headline if no line has an interval because nothing varies; "" otherwise.
        says: Puts the estimate of a line in words, for readers who know no statistics; None: the headline has numbers.
    """

    name: str
    question: str
    axis: str
    lines: tuple[Line, ...]
    reference: float | None = 0.0
    scale: Scale = "points"
    table: str = ""
    note: str = ""
    constant: str = ""
    says: Callable[[Line], str] | None = None

    def data(self) -> dict[str, Any]:
        """The fields by name, lines as their own data, with the intervals that are drawn."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "says"}
        return {**given, "lines": [line.data() for line in drawn(self.lines)]}


def drawn(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines with the intervals that plots and sentences give: where one holds for all planned lines, that one."""
    return tuple(
        line.with_result(low=line.simultaneous[0], high=line.simultaneous[1]) if line.simultaneous else line
        for line in lines
    )


def decimals(largest: float) -> int:
    """The decimals of a plot's points, from the largest absolute value."""
    return 1 if largest >= WIDE else 2


def number_format(forest: Forest) -> Callable[[float], str]:
    """The format of a plot's numbers: "+0.73" if they are differences, "62%" if they are shares, never "-0.00"."""
    difference = forest.reference == 0
    factor, unit = (100, "%") if forest.scale == "share" else (1, "")
    ends = (end for each in forest.lines for end in (each.estimate, each.low, each.high) if math.isfinite(end))
    largest = max((abs(factor * end) for end in ends), default=0.0)
    digits = (0 if not difference else 1) if unit else decimals(largest)

    def written(value: float) -> str:
        text = signed(factor * value, digits).replace("-", "−")
        return (text if difference else text.removeprefix("+")) + unit

    return written


def in_numbers(line: Line, forest: Forest, *, simultaneous: bool = False) -> str:
    """An estimate with its interval: "+0.73 (+0.41 to +1.05)", "62% (18% to 93%)".

    Args:
        line: The estimate.
        forest: The plot that it is in, which says how numbers are shown.
        simultaneous: Whether to give the interval that covers all primary lines at once, where there is one.
    """
    written = number_format(forest)
    both = line.simultaneous if simultaneous else None
    if not (both or line.bounded):
        return f"{written(line.estimate)} (no interval)"
    ends = interval(*(both or (line.low, line.high)), written, forest.reference, excluded=line.shown)
    return f"{written(line.estimate)} ({'simultaneous 95% interval ' if both else ''}{ends})"


def interval(
    low: float, high: float, written: Callable[[float], str], reference: float | None = 0.0, *, excluded: bool = False
) -> str:
    """An interval in words: "+0.41 to +1.05"; where it excludes an end that is written as 0, "above 0, up to 0.06".

    Args:
        low: Lower end.
        high: Upper end.
        written: How a number is written.
        reference: The value that means "no difference"; None without one.
        excluded: Whether a test excludes the reference: a simultaneous interval may then end at it.
    """
    if reference is not None:
        none = written(reference)
        name = none if reference else "0"
        if written(low) == none and (low > reference or (excluded and low == reference)):
            return f"above {name}, up to {written(high).removeprefix('+')}"
        if written(high) == none and (high < reference or (excluded and high == reference)):
            return f"below {name}, down to {written(low)}"
    return f"{written(low)} to {written(high)}"
