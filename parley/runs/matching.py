"""Matches units that differ in one facet: the same answer under two labels, a question by two methods."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parley.analysis.stats.results import Line


def compared_values(line: Line) -> tuple[str, list[tuple[str, str]]] | None:
    """The facet whose values a line compares, and which with which; None if it compares none.

    "muslim, jewish − christian" is two comparisons.

    Args:
        line: The line.
    """
    arms = (line.contrast.first, line.contrast.second) if line.contrast else ((), ())
    for name, values in line.units.items():
        sides = [[value for value in values if value in side] for side in arms]
        first, second = sides if all(sides) else (values[:1], values[1:] if len(values) == 2 else ())
        if len(values) > 1 and second:
            return name, [(x, y) for x in first for y in second]
    return None


def matched_units(
    columns: Mapping[str, Sequence[Hashable]], facet: str, x: Hashable, y: Hashable
) -> list[tuple[int, int]]:
    """The places of units that have x and y in the facet, and the same in all others.

    Facets that the facet determines may differ, as the category of an identity does.

    Args:
        columns: The values of every facet, by unit.
        facet: The facet in which they differ.
        x: Its value on one side.
        y: Its value on the other side.
    """
    others = [values for name, values in columns.items() if name != facet and not _determines(columns[facet], values)]
    keys = list(zip(*others, strict=True)) if others else [()] * len(columns[facet])
    sides = [
        {keys[place]: place for place in compress(range(len(keys)), (each == value for each in columns[facet]))}
        for value in (x, y)
    ]
    return [(place, sides[1][key]) for key, place in sides[0].items() if key in sides[1]]


def _determines(values: Sequence[Hashable], others: Sequence[Hashable]) -> bool:
    """Whether each value always comes with the same value of another facet; None and -1 stand for no value."""
    seen: dict[Hashable, Hashable] = {}
    pairs = zip(values, others, strict=True)
    return all(seen.setdefault(value, other) == other for value, other in pairs if value not in (None, -1))
