"""The facets of a run's units as columns: for each facet its labels, and for each unit the number of its label."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from parley.runs.reading import parse_facets
from parley.viewer import bitmaps

MAX_FILTER_VALUES = 5000
"""A facet with more values identifies units and is not offered as a filter."""


class FacetColumn(NamedTuple):
    labels: list[str]
    codes: array[int]
    """For each unit the number of its label; -1 where it lacks the facet."""
    masks: list[int]


def facet_columns(rows: Sequence[str]) -> dict[str, FacetColumn]:
    """Facets by name, from one JSON text per unit, parsed one at a time to keep memory small."""
    labels: dict[str, dict[str, int]] = {}
    codes: dict[str, array[int]] = {}
    for position, text in enumerate(rows):
        for name, value in parse_facets(text).items():
            if name not in codes:
                labels[name], codes[name] = {}, array("i", [-1]) * len(rows)
            known = labels[name]
            codes[name][position] = known.setdefault(value, len(known))
    return {
        name: FacetColumn(
            list(known),
            codes[name],
            bitmaps.from_codes(codes[name], len(known)) if len(known) <= MAX_FILTER_VALUES else [0] * len(known),
        )
        for name, known in labels.items()
    }


def partners(facets: Mapping[str, FacetColumn], size: int) -> array[int]:
    """For each unit that shows a pair, the position of the unit with the other order; -1 where there is none."""
    partner = array("i", [-1]) * size
    if "order" not in facets:
        return partner
    swapped = {name for name in facets if name == "order" or name.endswith(("_a", "_b"))}
    shared = [column.codes for name, column in facets.items() if name not in swapped]
    unpaired: dict[tuple[int, ...], int] = {}
    for position, key in enumerate(zip(*shared, strict=True) if shared else ()):
        if facets["order"].codes[position] < 0:
            continue
        other = unpaired.pop(key, None)
        if other is None:
            unpaired[key] = position
        else:
            partner[position], partner[other] = other, position
    return partner
