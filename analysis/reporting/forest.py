"""A forest plot as data: one question, its estimates with intervals, and the units behind each. Reports draw it with
Matplotlib, the viewer as SVG with links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from parley.base.text import signed

LEVEL = 0.05
WIDE = 20.0
"""Values as large as this are shown with one decimal."""
Scale = Literal["points", "share"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One line of a forest plot.

    Args:
        label: What was estimated, in words: "female − male".
        value: The estimate.
        low: Lower end of the interval; None without an interval.
        high: Upper end.
        p: The p-value, adjusted where the plot's family is; None without a test.
        group: A heading that lines share, such as an identity category or a model.
        n: How many units or rows are behind it.
        units: The facets of the units behind it, and their values, as the viewer filters them:
            {"identity": ("female", "male")}.
        secondary: Whether it only stands beside the others, and is never the finding.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    group: str = ""
    n: int | None = None
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secondary: bool = False


@dataclass(frozen=True, slots=True)
class Forest:
    """The estimates that answer one question.

    Args:
        name: File name without suffix.
        question: The question in words; the plot's title.
        axis: The label of the axis, with the unit: "difference in score (points of 10)".
        estimates: The lines, in order.
        reference: The value that means "no difference"; None without one.
        scale: "share" for values from 0 to 1 that are shown as percentages.
        table: Name of the report's table with the same numbers.
        note: How the intervals and p-values were made.
    """

    name: str
    question: str
    axis: str
    estimates: tuple[Estimate, ...]
    reference: float | None = 0.0
    scale: Scale = "points"
    table: str = ""
    note: str = ""


def estimates(
    rows: pd.DataFrame,
    label: Callable[[Any], str],
    *,
    value: str = "difference",
    ends: tuple[str, str] = ("low", "high"),
    p: str | None = None,
    n: str | None = "n",
    group: Callable[[Any], str] = lambda row: "",
    units: Callable[[Any], Mapping[str, tuple[str, ...]]] = lambda row: {},
) -> tuple[Estimate, ...]:
    """The rows of a table as lines of a forest plot. Rows without a value are left out.

    Args:
        rows: The rows.
        label: What a row's line is called.
        value: Column of the estimates.
        ends: Columns of the intervals' ends. A line whose interval is not bounded has none.
        p: Column of p-values.
        n: Column of counts.
        group: The heading that a row stands under.
        units: The facets of the units behind a row.
    """
    lines = []
    for row in rows.itertuples():
        if not math.isfinite(getattr(row, value)):
            continue
        low, high = (float(getattr(row, end)) for end in ends)
        bounded = math.isfinite(low) and math.isfinite(high)
        lines.append(
            Estimate(
                label=label(row),
                value=float(getattr(row, value)),
                low=low if bounded else None,
                high=high if bounded else None,
                p=_known(getattr(row, p)) if p else None,
                group=group(row),
                n=int(getattr(row, n)) if n else None,
                units=units(row),
            )
        )
    return tuple(lines)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def filled(forests: Iterable[Forest]) -> tuple[Forest, ...]:
    """The forest plots that have a line."""
    return tuple(forest for forest in forests if forest.estimates)


def in_numbers(line: Estimate, forest: Forest) -> str:
    """An estimate with its interval: "+0.73 (+0.41 to +1.05)", "62% (18% to 93%)"; never "-0.00".

    Args:
        line: The estimate.
        forest: The plot that it is in, which says how numbers are shown.
    """
    difference = forest.reference == 0
    factor, unit = (100, "%") if forest.scale == "share" else (1, "")
    largest = max(abs(factor * end) for each in forest.estimates for end in (each.value, each.low or 0, each.high or 0))
    digits = (0 if not difference else 1) if unit else 1 if largest >= WIDE else 2

    def shown(value: float) -> str:
        text = signed(factor * value, digits).replace("-", "−")
        return (text if difference else text.removeprefix("+")) + unit

    if line.low is None or line.high is None:
        return f"{shown(line.value)} (no interval)"
    return f"{shown(line.value)} ({shown(line.low)} to {shown(line.high)})"


def finding(forest: Forest) -> str:
    """What the plot shows in one line: the largest effect that was shown, or that none was.

    An estimate without an interval is never named: it shows nothing yet.

    Args:
        forest: The plot.
    """
    lines = [line for line in forest.estimates if line.low is not None and line.high is not None]
    lines = [line for line in lines if not line.secondary] or lines
    if not lines:
        return f"{forest.question} Not known yet: the data are too few for an interval."
    if forest.reference is None:
        first = lines[0]
        return f"{forest.question} {_place(first)} {in_numbers(first, forest)}."
    shown = [line for line in lines if _is_shown(line, forest.reference)]
    if not shown:
        reference = f"{100 * forest.reference:g}%" if forest.scale == "share" else f"{forest.reference:g}"
        if tests := sum(line.p is not None for line in lines):
            none = "the test is not significant" if tests == 1 else f"none of {tests} tests is significant"
        else:
            none = f"{'the' if len(lines) == 1 else 'every'} interval includes {reference}"
        return f"{forest.question} Not shown: {none}."
    largest = max(shown, key=lambda line: abs(line.value - float(forest.reference or 0)))
    others = f", the largest of {len(shown)} shown" if len(shown) > 1 else ""
    return f"{forest.question} {_place(largest)} {in_numbers(largest, forest)}{others}."


def _place(line: Estimate) -> str:
    return f"{line.group}: {line.label}" if line.group else f"{line.label}:"


def _is_shown(line: Estimate, reference: float) -> bool:
    if line.p is not None:
        return line.p <= LEVEL
    return not float(line.low or 0.0) <= reference <= float(line.high or 0.0)
