"""Results of several seeds as one table: means over seeds, with their standard deviations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = ("seed", "n", "topics", "clusters", "unparsed", "unreadable", "answers", "empty", "p", "p_adjusted")
"""Columns without a standard deviation: counts, p-values, and ends of intervals, which end on low or high."""


def mean_over_seeds(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """One row per combination of the keys: every number's mean over its seeds, and its standard deviation, `…_sd`.

    Ends of intervals are averaged too: an interval over items says how well a seed's number is known, the standard
    deviation how much training with another seed changes it. p-values are left out. Booleans become counts.

    Args:
        rows: Of all seeds.
        keys: The columns that say what a row is about.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return [{**dict(zip(keys, group, strict=True)), **_summary(members)} for group, members in groups.items()]


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"seeds": len(rows)}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if all(isinstance(value, bool) for value in values):
            summary[name] = sum(map(bool, values))
            continue
        numbers = [float(value) for value in values if value is not None and _is_number(value)]
        if not numbers or name in ("seed", "p", "p_adjusted"):
            continue
        summary[name] = statistics.fmean(numbers)
        if name not in COUNTS and not name.endswith(("low", "high")):
            summary[f"{name}_sd"] = statistics.stdev(numbers) if len(numbers) > 1 else None
    return summary


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
