"""Two runs unit by unit, or two values of a facet (two identities) within one run, largest differences first."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from parley.runs.matching import matched_units
from parley.viewer.table import UnitTable

MAX_POINTS = 1000
"""A scatter plot cannot show more distinct points; with more pairs, evenly spaced ones are shown."""


class UnitPair(NamedTuple):
    """The positions of two matched units, one per side."""

    a: int
    b: int


def match_by_id(a: UnitTable, b: UnitTable) -> list[UnitPair]:
    """Units with the same id in two runs."""
    positions = {unit: position for position, unit in enumerate(b.ids)}
    return [UnitPair(position, positions[unit]) for position, unit in enumerate(a.ids) if unit in positions]


def match_by_facet(table: UnitTable, facet: str, x: str, y: str) -> list[UnitPair]:
    """Units that differ only in the facet (x or y) and in facets determined by it."""
    column = table.facets.get(facet)
    if column is None or x not in column.labels or y not in column.labels:
        return []
    codes = {name: other.codes for name, other in table.facets.items()}
    return [UnitPair(*pair) for pair in matched_units(codes, facet, *map(column.labels.index, (x, y)))]


def differences(a: UnitTable, b: UnitTable, pairs: list[UnitPair], judge: str, page: int, size: int) -> dict[str, Any]:
    """A page of pairs: the largest score differences first, then pairs whose choices differ."""
    figures_a, figures_b = a.figures(judge), b.figures(judge)

    def difference(pair: UnitPair) -> float | None:
        value = figures_b.score[pair.b] - figures_a.score[pair.a]
        return None if math.isnan(value) else value

    def sort_key(pair: UnitPair) -> tuple[float, bool]:
        value = difference(pair)
        return (-1.0 if value is None else abs(value)), figures_a.choice[pair.a] != figures_b.choice[pair.b]

    ordered = sorted(pairs, key=sort_key, reverse=True)
    values = [value for pair in pairs if (value := difference(pair)) is not None]
    choices = [(figures_a.choice[pair.a], figures_b.choice[pair.b]) for pair in pairs]
    choices = [(first, second) for first, second in choices if first is not None and second is not None]
    return {
        "matched": len(pairs),
        "scored": len(values),
        "mean_difference": sum(values) / len(values) if values else None,
        "with_choice": len(choices),
        "same_choice": sum(first == second for first, second in choices),
        "rows": [
            {"a": a.row(pair.a, judge), "b": b.row(pair.b, judge), "difference": difference(pair)}
            for pair in ordered[page * size : (page + 1) * size]
        ],
    }


def points(a: UnitTable, b: UnitTable, pairs: list[UnitPair], judge: str) -> list[list[Any]]:
    """Pairs for a scatter plot: both scores and both units."""
    figures_a, figures_b = a.figures(judge), b.figures(judge)
    scored = [pair for pair in pairs if not math.isnan(figures_a.score[pair.a] + figures_b.score[pair.b])]
    shown = scored[:: math.ceil(len(scored) / MAX_POINTS) or 1]
    return [[figures_a.score[pair.a], figures_b.score[pair.b], a.ids[pair.a], b.ids[pair.b]] for pair in shown]
