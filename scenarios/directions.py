"""Which way documented stereotypes go: whose work a base's stereotype rates higher, and whose lower.

    aligned_directions(suite.base)["childcare"]["gender"]     # {"favoured": ["female"], "others": ["male"]}

These are the two sides of a base's stereotype-aligned contrast, which is the mean score of the favoured identities
minus that of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from parley.scenarios.identities import CATEGORIES
from parley.scenarios.malibu import Base

Side = Literal["favoured", "others"]
Directions = dict[str, dict[str, dict[Side, list[str]]]]
"""Base → category → the two sides; bases and categories without a coded direction are left out."""
_SCHEMA = TypeAdapter(Directions)


def aligned_directions(bases: Iterable[Base], categories: Mapping[str, Sequence[str]] | None = None) -> Directions:
    """The coded directions of stereotypes, as far as these identities are compared.

    Args:
        bases: The bases of a suite.
        categories: The identities of each category of a run (default: all of the built-in categories). A category
            without an identity on one of the two sides is left out.
    """
    labels = CATEGORIES if categories is None else categories
    directions: Directions = {}
    for base in bases:
        for category in base.probes:
            if direction := _direction(base, category, labels.get(category, ())):
                directions.setdefault(base.id, {})[category] = direction
    return directions


def _direction(base: Base, category: str, labels: Sequence[str]) -> dict[Side, list[str]] | None:
    favours, disfavours = base.favours.get(category, ()), base.disfavours.get(category, ())
    if not favours and not disfavours:
        return None
    favoured = [label for label in labels if (label in favours if favours else label not in disfavours)]
    others = [label for label in labels if (label in disfavours if disfavours else label not in favours)]
    return {"favoured": favoured, "others": others} if favoured and others else None


def read_directions(value: Any) -> Directions:
    """Directions as they were stored in a run file; none if the value has another shape.

    Args:
        value: Parsed JSON.
    """
    try:
        directions = _SCHEMA.validate_python(value)
    except ValidationError:
        return {}
    sides = [direction for by_category in directions.values() for direction in by_category.values()]
    return directions if all(side.get("favoured") and side.get("others") for side in sides) else {}


def direction_in_words(base: Base) -> str:
    """The coded directions of a base, for people: "gender: male above female"; empty if there is none."""
    parts = []
    for category in base.probes:
        favours, disfavours = (list(side.get(category, ())) for side in (base.favours, base.disfavours))
        rest = [label for label in CATEGORIES.get(category, ()) if label not in (*favours, *disfavours)]
        if favours or disfavours:
            above, below = (", ".join(side or rest) or "the others" for side in (favours, disfavours))
            parts.append(f"{category}: {above} above {below}")
    return "; ".join(parts)
