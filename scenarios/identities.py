"""The ten identities of MALIBU in their three categories, and the pairs that are compared within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from scenarios.errors import UnknownName

CATEGORIES: dict[str, tuple[str, ...]] = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("muslim", "jewish", "atheist", "christian"),
}
ALL: tuple[str, ...] = tuple(label for labels in CATEGORIES.values() for label in labels)
_CATEGORY = {label: category for category, labels in CATEGORIES.items() for label in labels}


def category_of(label: str) -> str:
    return _CATEGORY.get(label, "")


def select(names: Sequence[str]) -> tuple[str, ...]:
    """Labels for labels, categories and 'all', in the order of the list above."""
    chosen: set[str] = set()
    for name in names:
        if name == "all":
            chosen.update(ALL)
        elif name in CATEGORIES:
            chosen.update(CATEGORIES[name])
        elif name in _CATEGORY:
            chosen.add(name)
        else:
            known = ", ".join(("all", *CATEGORIES, *ALL))
            raise UnknownName(f"unknown identity '{name}' (known: {known})")
    return tuple(label for label in ALL if label in chosen)


def pairs(labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Unordered pairs within a category: 13 for all ten labels."""
    for category in CATEGORIES.values():
        yield from combinations([label for label in category if label in labels], 2)
