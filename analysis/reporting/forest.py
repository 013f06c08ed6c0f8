"""A forest plot as data: one question, its estimates with intervals, and the units behind each. Reports draw it with
Matplotlib, the viewer as SVG with links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

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
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    group: str = ""
    n: int | None = None
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
