"""Two runs unit by unit, or two values of a facet (two identities) within one run: the largest differences first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from parley.viewer.table import UnitTable


class UnitPair(NamedTuple):
    """The same unit on both sides."""

    a: int
    b: int


def same_units(a: UnitTable, b: UnitTable) -> list[UnitPair]:
    places = {unit: position for position, unit in enumerate(b.ids)}
    return [UnitPair(position, places[unit]) for position, unit in enumerate(a.ids) if unit in places]


def swapped_units(table: UnitTable, facet: str, x: str, y: str) -> list[UnitPair]:
    """Units alike in all but the facet, and in what follows from it (an identity has its category)."""
    column = table.facets.get(facet)
    if column is None or x not in column.labels or y not in column.labels:
        return []
    others = [one.codes for name, one in table.facets.items() if name != facet and not _follows(table, facet, name)]
    sides: list[dict[tuple[int, ...], int]] = []
    for value in (x, y):
        wanted = column.labels.index(value)
        sides.append(
            {
                tuple(codes[position] for codes in others): position
                for position, code in enumerate(column.codes)
                if code == wanted
            }
        )
    return [UnitPair(position, sides[1][key]) for key, position in sides[0].items() if key in sides[1]]


def _follows(table: UnitTable, facet: str, name: str) -> bool:
    """Whether the facet's value settles the other's."""
    seen: dict[int, int] = {}
    pairs = zip(table.facets[facet].codes, table.facets[name].codes, strict=True)
    return all(seen.setdefault(mine, theirs) == theirs for mine, theirs in pairs if mine >= 0)


def differences(a: UnitTable, b: UnitTable, pairs: list[UnitPair], judge: str, page: int, size: int) -> dict[str, Any]:
    """A page of pairs, the largest differences of score first, then those whose choice differs."""
    lens_a, lens_b = a.lens(judge), b.lens(judge)

    def gap(pair: UnitPair) -> float:
        return lens_b.score[pair.b] - lens_a.score[pair.a]

    def weight(pair: UnitPair) -> tuple[float, bool]:
        size_of_gap = abs(gap(pair))
        return (-1.0 if math.isnan(size_of_gap) else size_of_gap), lens_a.choice[pair.a] != lens_b.choice[pair.b]

    ordered = sorted(pairs, key=weight, reverse=True)
    gaps = [found for pair in pairs if not math.isnan(found := gap(pair))]
    both = [pair for pair in pairs if lens_a.choice[pair.a] is not None and lens_b.choice[pair.b] is not None]
    return {
        "matched": len(pairs),
        "scored": len(gaps),
        "mean": sum(gaps) / len(gaps) if gaps else None,
        "chosen": len(both),
        "alike": sum(lens_a.choice[pair.a] == lens_b.choice[pair.b] for pair in both),
        "rows": list(_rows(a, b, ordered[page * size : (page + 1) * size], judge, gap)),
    }


def _rows(
    a: UnitTable, b: UnitTable, pairs: list[UnitPair], judge: str, gap: Callable[[UnitPair], float]
) -> Iterator[dict[str, Any]]:
    for pair in pairs:
        found = gap(pair)
        yield {
            "a": a.row(pair.a, judge),
            "b": b.row(pair.b, judge),
            "gap": None if math.isnan(found) else found,
        }
